"""Rooms as documents: `.bus/rooms/<room>/` with `setup`, `head`, `messages/<number>`, `private/` and `ballots/`.

Acting is the exclusive create of `messages/<head.number + 1>`, after the act was checked on that head; then the head is
moved on by `apply`. Whoever finds a record that the head does not know yet applies it, so a kill between the two writes
is harmless, and every act is judged by exactly one state, without a lock.
"""

from __future__ import annotations

import hashlib
import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent_bus import host, ids
from agent_bus.bus import Bus
from agent_bus.domain import room, room_acts, room_news
from agent_bus.domain.room_acts import Record, Who
from agent_bus.errors import BusError
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

PREFIX = ".bus/rooms"
OPEN = 200
_TRIES = 200


@dataclass(frozen=True)
class Room:
    """A room as it stands: its setup, and its head with every record applied."""

    setup: dict[str, Any]
    doc: Doc

    @property
    def name(self) -> str:
        """Its name as it was given."""
        return str(self.setup["room"])

    @property
    def folder(self) -> str:
        """Where its documents lie."""
        return f"{PREFIX}/{ids.folder_of(self.name)}"

    @property
    def head(self) -> dict[str, Any]:
        """Its head."""
        return self.doc.value

    @property
    def is_open(self) -> bool:
        """Whether it is not closed."""
        return bool(self.head["state"] != room.CLOSED)


def settled(bus: Bus, name: str) -> Room:
    """A room with every record applied that is there, and those made that time asks for.

    Raises:
        BusError: `not_found`; `conflict` naming the number of a record that cannot be read.
    """
    at = f"{PREFIX}/{ids.folder_of(ids.check_agent(name, 'room'))}"
    setup = bus.store.get(f"{at}/setup")
    if setup is None:
        raise BusError("not_found", f"there is no room {name}.", "room_open makes one.")
    while True:
        doc = _head(bus, at, setup.value)
        record = _record(bus, at, doc.value["number"] + 1)
        if record is None:
            timely = room.due(setup.value, doc.value, bus.now())
            if timely is None:
                return Room(setup.value, doc)
            put(bus, Room(setup.value, doc), {**timely, "from": "system"})
            continue
        with suppress(Stale):
            bus.store.replace(doc, room.apply(setup.value, doc.value, record))


def put(bus: Bus, found: Room, value: Record) -> Record | None:
    """Puts a record where the head asks for the next one, with what it tells; None if another was quicker."""
    head = found.head
    full = {"schema": 1, "number": head["number"] + 1, "at": bus.stamp(), **value, "by": _by(bus)}
    body = str(full.pop("content", "")) if "seen" in full else None
    after = room.apply(found.setup, head, full)
    if told := room_news.notices(found.setup, head, after, full):
        full["notices"] = told
    if body is not None:
        full["private"] = secrets.token_hex(8)
        bus.store.create(f"{found.folder}/private/{full['private']}", {"schema": 1, "content": body}, private=True)
    try:
        bus.store.create(_place(found.folder, full["number"]), full)
    except Exists:
        if body is not None:
            _drop(bus, f"{found.folder}/private/{full['private']}")
        return None
    with suppress(Stale):
        bus.store.replace(found.doc, after)
    _journal(bus, found, after, full)
    return full


def act(bus: Bus, name: str, make: Callable[[Room], Record | None]) -> tuple[Room, Record | None]:
    """Does one act: `make` checks it on the room as it stands and gives its record; None if nothing is to be done.

    Raises:
        BusError: what `make` raises; `busy` if too many act at once.
    """
    for turn in range(_TRIES):
        found = settled(bus, name)
        value = make(found)
        if value is None:
            return found, None
        made = put(bus, found, value)
        if made is not None:
            return settled(bus, name), made
        time.sleep(random.uniform(0, 0.002 * min(turn + 1, 10)))
    raise BusError("busy", f"too many act in the room {name} at once.", "Try again in a moment.")


def who(found: Room, session: str) -> Who:
    """Whose session it is.

    Raises:
        BusError: `bad_token`.
    """
    sha = digest(session)
    is_host = sha == found.setup["host_sha256"]
    for key, member in found.head["members"].items():
        if member["sha"] == sha:
            return Who(key, member["handle"], is_host)
    if is_host:
        return Who("", "", True)
    raise BusError("bad_token", f"this is no session of the room {found.name}.", "Join again.")


def new_session(name: str) -> str:
    """A new session: its secret has 128 bits of the system's random source."""
    return f"s_{name}_{secrets.token_hex(16)}"


def room_of(session: str) -> str:
    """The room of a session; "" if it has not the form of one."""
    name, _, secret = session.rpartition("_")
    return name[2:] if session.startswith("s_") and len(secret) == 32 else ""


def digest(session: str) -> str:
    """What is stored of a session."""
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()


def join(bus: Bus, name: str, given: str, shown: str, description: str, session: str) -> tuple[Room, str, bool]:
    """A member comes in; the room, its session, and whether it was there already.

    Raises:
        BusError: `handle_taken`, `closed`, `bad_handle`, `bad_token`.
    """
    fresh = new_session(ids.folder_of(name))
    owner = host.as_record(host.this_process()) if bus.caller.process else {}

    def make(found: Room) -> Record | None:
        room_acts.check_open(found.head)
        member = found.head["members"].get(ids.fold(room_acts.handle(given)))
        if member is not None and session and member["sha"] == digest(session):
            return None
        if session:
            raise BusError("bad_token", f"this is no session of {given}.", "Join without one.")
        if member is not None and member["sha"] and not _is_dead(member["owner"]):
            who_frees = "Its own session, or a release by the host, frees it."
            raise BusError("handle_taken", f"{member['handle']} is in the room {name}.", who_frees)
        return room_acts.join(found.setup, found.head, given, shown, description, digest(fresh), owner)

    found, made = act(bus, name, make)
    return found, fresh if made else session, made is None


def records(bus: Bus, found: Room, after: int, until: int = 0) -> Iterator[Record]:
    """The records after a number, in order."""
    for number in range(after + 1, (until or found.head["number"]) + 1):
        record = _record(bus, found.folder, number)
        if record is not None:
            yield record


def last_public(bus: Bus, found: Room) -> Record | None:
    """The last public message; None before the first."""
    for number in range(found.head["number"], 0, -1):
        record = _record(bus, found.folder, number)
        if record is not None and room.is_public(record):
            return record
    return None


def content(bus: Bus, found: Room, record: Record) -> str:
    """A message's text, also a private one: ask only for those who see it."""
    if "private" not in record:
        return str(record.get("content", ""))
    doc = bus.store.get(f"{found.folder}/private/{record['private']}")
    return str(doc.value["content"]) if doc else ""


def ballot(bus: Bus, found: Room, text: str) -> str:
    """Keeps a ballot; the name by which its record names it."""
    name = secrets.token_hex(8)
    value = {"schema": 1, "ballot": text.strip()}
    bus.store.create(f"{found.folder}/ballots/{name}", value, private=True)
    return name


def ballots(bus: Bus, found: Room) -> dict[str, str]:
    """By voter the ballots of the open vote."""
    named = (found.head["poll"] or {"ballots": {}})["ballots"]
    docs = {key: bus.store.get(f"{found.folder}/ballots/{name}") for key, name in named.items()}
    return {key: str(doc.value["ballot"]) for key, doc in docs.items() if doc}


def all_rooms(bus: Bus) -> list[Room]:
    """All rooms, by name."""
    found = []
    for name in bus.store.folders(PREFIX):
        with suppress(BusError):
            found.append(settled(bus, name))
    return found


def key_of(name: str, number: int) -> str:
    """The key of a record."""
    return _place(f"{PREFIX}/{ids.folder_of(name)}", number)


def damaged(bus: Bus, name: str) -> int:
    """The number of the first record that cannot be read; 0 if there is none."""
    number = 1
    while True:
        try:
            if bus.store.get(key_of(name, number)) is None:
                return 0
        except Unreadable:
            return number
        number += 1


def _head(bus: Bus, at: str, setup: dict[str, Any]) -> Doc:
    """The head; made anew from the records if it is not there or damaged."""
    try:
        doc = bus.store.get(f"{at}/head")
    except Unreadable:
        raise BusError("corrupt", f"{at}/head cannot be read.", "Delete that file; it is made anew.") from None
    if doc is not None:
        return doc
    head = room.begin(setup)
    while (record := _record(bus, at, head["number"] + 1)) is not None:
        head = room.apply(setup, head, record)
    with suppress(Exists):
        return bus.store.create(f"{at}/head", head)
    return _head(bus, at, setup)


def _record(bus: Bus, at: str, number: int) -> Record | None:
    try:
        doc = bus.store.get(_place(at, number))
    except Unreadable as error:
        hint = f"agent-bus room-repair {at.rpartition('/')[2]} puts an empty one in its place."
        raise BusError("conflict", f"record {number} cannot be read ({error.reason}).", hint) from None
    return doc.value if doc else None


def _place(at: str, number: int) -> str:
    return f"{at}/messages/{number:06d}"


def _drop(bus: Bus, key: str) -> None:
    with suppress(Stale):
        if (doc := bus.store.get(key)) is not None:
            bus.store.delete(doc)


def _by(bus: Bus) -> dict[str, Any]:
    here = host.this_process()
    return {"host": here.host, "pid": here.pid, "client": bus.caller.client}


def _is_dead(owner: dict[str, Any]) -> bool:
    return bool(owner) and host.liveness(host.ProcessId(**owner)) == host.DEAD


_EVENTS = {"message": "room.message", "collect": "room.round", "poll": "room.poll", "close": "room.closed",
           "turn_skipped": "room.skipped"}  # fmt: skip


def _journal(bus: Bus, found: Room, after: dict[str, Any], record: Record) -> None:
    """What happened, for the journal: never a word of a message."""
    line = {"at": record["at"], "room": found.name, "number": record["number"], "outcome": "ok"}
    if event := _EVENTS.get(str(record["kind"])):
        bus.journal.write(bus.now(), {**line, "event": event} | ({"private": True} if "seen" in record else {}))
    if found.head["state"] == room.GATHERING and after["state"] == room.RUNNING:
        bus.journal.write(bus.now(), {**line, "event": "room.started"})
