"""The person who speaks from the vault: the member `user` of a room, with a session that the bus keeps for them."""

from __future__ import annotations

from contextlib import suppress

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import room_acts
from agent_bus.domain.room_acts import Record
from agent_bus.domain.room_messages import Wish
from agent_bus.errors import BusError
from agent_bus.operations import rooms, rooms_acting
from agent_bus.operations.rooms import Room
from agent_bus.store.port import Exists

HANDLE = "user"
FOLDER = ".bus/vault/rooms"


def say(bus: Bus, room: str, text: str, key: str) -> int:
    """Says something as `@user`, who comes in first if need be; the number of the message.

    Args:
        key: makes a repeat safe.

    Raises:
        BusError: as the room's own acts; `handle_taken` if somebody else sits there as `user`.
    """
    session = _session(bus, room)
    rooms.act(bus, room, lambda found: _join(found, session))
    return rooms_acting.say(bus, room, session, Wish(text, key=key)).number


def _session(bus: Bus, room: str) -> str:
    """The session of a room; it is kept before it is used, so that a kill between the two locks nobody out."""
    name = ids.folder_of(ids.check_agent(room, "room"))
    place = f"{FOLDER}/{name}"
    with suppress(Exists):
        made = bus.store.create(place, {"session": rooms.new_session(name), "at": bus.stamp()}, private=True)
        return str(made.value["session"])
    doc = bus.store.get(place)
    if doc is None:
        raise BusError("unavailable", f"the session of {HANDLE} in {room} is being made.", "Try again in a moment.")
    return str(doc.value["session"])


def _join(found: Room, session: str) -> Record | None:
    sha = rooms.digest(session)
    member = found.head["members"].get(ids.fold(HANDLE))
    if member is not None and member["sha"] == sha:
        return None
    if member is not None and member["sha"]:
        why = f"somebody else is {HANDLE} in the room {found.name}."
        raise BusError("handle_taken", why, f"agent-bus room release {found.name} {HANDLE} frees it.")
    return room_acts.join(found.setup, found.head, HANDLE, HANDLE, "", sha, {})
