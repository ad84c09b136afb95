"""Opening rooms: who takes which name, what is refused, and which room a call means that names none."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import mentions, room, room_acts
from agent_bus.domain.room_acts import Who
from agent_bus.errors import BusError, invalid, too_large
from agent_bus.operations import rooms, stop
from agent_bus.operations.rooms import Room
from agent_bus.store.port import Exists

ALIASES = 16
_TRANSCRIPT = re.compile(r".*-transcript-\d+", re.IGNORECASE)


def open_room(bus: Bus, name: str, wish: dict[str, Any], force: bool) -> tuple[Room, str]:
    """Makes a room; the room and the host's session.

    Args:
        wish: mode, topic, description, host, participants, aliases, first_speaker, barrier, turn_timeout_s, filepath.

    Raises:
        BusError: `stopped`, `room_exists`, `invalid`, `bad_handle`, `too_large`.
    """
    stop.refuse_if_stopped(bus)
    name = ids.check_agent(name, "room")
    if _TRANSCRIPT.fullmatch(name):
        raise invalid("room", "must not end like a transcript", "Take a name without -transcript-1.")
    setup = _setup(wish)
    _check_count(bus)
    old = _there(bus, name)
    if old is not None and old.is_open:
        if not force and not _unused(old):
            hint = "Join it, take another name, or give force to close it and open a new one."
            raise BusError("room_exists", f"the room {name} is open.", hint)
        rooms.act(bus, name, _closing)
    for number in range(1, 1000):
        taken = name if number == 1 else f"{name[:60]}-{number}"
        session = rooms.new_session(ids.folder_of(taken))
        made = {**setup, "room": taken, "host_sha256": rooms.digest(session), "opened_at": bus.stamp()}
        try:
            bus.store.create(f"{rooms.PREFIX}/{ids.folder_of(taken)}/setup", made)
        except Exists:
            continue
        line = {"at": bus.stamp(), "event": "room.opened", "room": taken, "mode": made["mode"], "outcome": "ok"}
        bus.journal.write(bus.now(), line)
        return rooms.settled(bus, taken), session
    raise BusError("room_exists", f"all names from {name} to {name}-999 are taken.", "Take another name.")


def default_room(bus: Bus, given: str, session: str, handle: str = "") -> str:
    """The room that a call means: named, its session's, the only open one with that member, the only open one.

    Raises:
        BusError: `ambiguous_room` with the candidates; `not_found`.
    """
    if given or session:
        found = given or rooms.room_of(session)
        if not found or (session and rooms.room_of(session) != ids.folder_of(found)):
            raise BusError("bad_token", "this is no session of that room.", "Give the session that room_join gave.")
        return found
    there = [one for one in rooms.all_rooms(bus) if one.is_open]
    key = mentions.key(handle)
    mine = [one for one in there if key and key in one.head["members"]]
    for some in (mine, there):
        if len(some) == 1:
            return some[0].name
        if some:
            names = ", ".join(one.name for one in some[:20])
            raise BusError("ambiguous_room", f"several rooms are open: {names}.", "Give room.")
    raise BusError("not_found", "no room is open.", "room_open makes one.")


def default_room_of(session: str) -> str:
    """The room of a session.

    Raises:
        BusError: `bad_token` if it has not the form of one.
    """
    found = rooms.room_of(session)
    if not found:
        raise BusError("bad_token", "this is no session of a room.", "A session looks like s_room_ and 32 hex digits.")
    return found


def read_aliases(given: Sequence[str]) -> dict[str, list[str]]:
    """Aliases by handle, from `@H:alias,alias`, `@H=alias`, or an object's JSON text.

    Raises:
        BusError: `invalid`.
    """
    found: dict[str, list[str]] = {}
    for item in given:
        if item.lstrip().startswith("{"):
            try:
                pairs = [(k, v if isinstance(v, list) else [v]) for k, v in json.loads(item).items()]
            except ValueError:
                raise invalid("aliases", f"must be valid JSON, got {item[:40]!a}", '{"@B": ["MJ"]}') from None
        else:
            handle, _, rest = re.sub(r"[:=]", "\0", item, count=1).partition("\0")
            pairs = [(handle, rest.split(","))]
        for handle, names in pairs:
            clean = [" ".join(str(n).split()) for n in names]
            if not clean or not all(1 <= len(n) <= 64 for n in clean) or len(clean) > ALIASES:
                raise invalid("aliases", f"of {handle[:60]} must be 1 to {ALIASES} of 1 to 64 characters", "@B:MJ")
            found.setdefault(room_acts.handle(handle, "aliases"), []).extend(clean)
    return found


def _setup(wish: dict[str, Any]) -> dict[str, Any]:
    host = room_acts.handle(wish["host"], "host") if wish["host"] else ""
    if wish["mode"] == room.MODERATED and not host:
        raise invalid("host", "must name the host of a moderated room", "host is a member as well.")
    shown = [room_acts.handle(p, "participants") for p in wish["participants"]]
    declared = list({ids.fold(p): p for p in reversed(shown)}.values())[::-1]
    if len(declared) > room_acts.MEMBERS:
        raise too_large("participants", len(declared), room_acts.MEMBERS, "members")
    keys = {ids.fold(p): p for p in [*declared, *([host] if host else [])]}
    first = room_acts.handle(wish["first_speaker"], "first_speaker") if wish["first_speaker"] else ""
    if first and ids.fold(first) not in keys:
        raise invalid("first_speaker", f"must be one of the participants, got {first}", ", ".join(declared))
    aliases = {}
    taken = {*keys, *room_acts.RESERVED}
    for handle, names in wish["aliases"].items():
        if ids.fold(handle) not in keys:
            raise invalid("aliases", f"must be of participants, got {handle}", ", ".join(declared))
        for name in names:
            if ids.fold(name) in taken:
                raise invalid("aliases", f"must not equal another name: {name}", "Take another alias.")
            taken.add(ids.fold(name))
        aliases[keys[ids.fold(handle)]] = names
    return {"schema": 1, "scan_quotes": False, **wish, "host": host, "participants": declared,
            "first_speaker": first, "aliases": aliases}  # fmt: skip


def _check_count(bus: Bus) -> None:
    if len(bus.store.folders(rooms.PREFIX)) < rooms.OPEN:
        return
    count = sum(one.is_open for one in rooms.all_rooms(bus))
    if count >= rooms.OPEN:
        raise BusError("too_large", f"{count} rooms are open, the limit is {rooms.OPEN}.", "Close some.")


def _there(bus: Bus, name: str) -> Room | None:
    if not bus.store.exists(f"{rooms.PREFIX}/{ids.folder_of(name)}/setup"):
        return None
    return rooms.settled(bus, name)


def _unused(old: Room) -> bool:
    return old.head["number"] == 0 and not old.setup["host"]


def _closing(found: Room) -> dict[str, Any] | None:
    return room_acts.close(found.setup, found.head, Who("", "the opener of a new one", True)) if found.is_open else None
