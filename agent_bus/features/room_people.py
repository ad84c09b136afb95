"""Rooms for people: which there are, how one stands, its messages as JSON, and what helps when something is stuck."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from pydantic import BaseModel

from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import room_acts, room_note
from agent_bus.domain.room_acts import Who
from agent_bus.errors import BusError
from agent_bus.operations import quarantine, rooms, rooms_export
from agent_bus.operations.rooms import Room
from agent_bus.store.port import Exists
from agent_bus.texts import Texts

Name = Annotated[str, Param("The room's name.", max_chars=200)]


class Rooms(BaseModel):
    """All rooms."""

    rooms: list[dict[str, Any]]


class Shown(BaseModel):
    """A room in words."""

    room: str
    text: str


class Exported(BaseModel):
    """The messages of a room."""

    room: str
    file: str
    messages: list[dict[str, Any]]


class Freed(BaseModel):
    """A handle that is free to join."""

    room: str
    name: str


class Repaired(BaseModel):
    """Which records of a room were put aside."""

    room: str
    numbers: list[int]


@command(group="rooms", writes=True, people=True)
def room_list(bus: Bus) -> Rooms:
    """List the rooms: name, mode, state, who has the floor, members, messages."""
    return Rooms(rooms=[_row(found) for found in rooms.all_rooms(bus)])


@command(group="rooms", writes=True, people=True)
def room_show(bus: Bus, room: Name) -> Shown:
    """Show a room as its note would: topic, state, last public message, queue and members."""
    found = rooms.settled(bus, room)
    said = rooms.last_public(bus, found)
    language = bus.settings.language
    texts = Texts("en" if language == "auto" else language)
    text = room_note.room_note(texts, found.setup, found.head, said, bus.settings.timezone)
    return Shown(room=found.name, text=text)


@command(group="rooms", writes=True, people=True)
def room_export(
    bus: Bus, room: Name, session: Annotated[str, Param("The host's: private messages as well.", max_chars=200)] = ""
) -> Exported:
    """Give a room's messages as JSON; a closed room's file is written anew if it is missing."""
    found = rooms.settled(bus, room)
    if session and not rooms.who(found, session).host:
        raise room_acts.host_only()
    if not found.is_open:
        rooms_export.make(bus, found)
    rows = rooms_export.rows(bus, found, private=bool(session))
    return Exported(room=found.name, file="" if found.is_open else rooms_export.place(found), messages=rows)


@command(group="rooms", writes=True, people=True)
def room_release(
    bus: Bus, room: Name, name: Annotated[str, Param("The member whose session is lost.", max_chars=200)]
) -> Freed:
    """Free a handle whose session is lost: its member can join again, and goes on where it was."""
    person = Who("", "", True)
    rooms.act(bus, room, lambda found: room_acts.release(found.setup, found.head, person, name))
    return Freed(room=room, name=name)


@command(group="rooms", writes=True, people=True)
def room_repair(bus: Bus, room: Name) -> Repaired:
    """Put damaged records of a room into quarantine and empty ones in their place, so that it goes on."""
    numbers: list[int] = []
    while True:
        try:
            rooms.settled(bus, room)
        except BusError as error:
            number = rooms.damaged(bus, room)
            if error.code != "conflict" or not number:
                raise
            key = rooms.key_of(room, number)
            quarantine.put_aside(bus, key, "damaged record of a room")
            with suppress(Exists):
                lost = {"schema": 1, "number": number, "kind": "lost", "at": bus.stamp(), "from": "", "who": ""}
                bus.store.create(key, lost)
            numbers.append(number)
            continue
        return Repaired(room=room, numbers=numbers)


def _row(found: Room) -> dict[str, Any]:
    head = found.head
    floor = head["members"][head["floor"]]["handle"] if head["floor"] else ""
    return {
        "room": found.name, "mode": found.setup["mode"], "state": head["state"], "floor": floor,
        "members": len(head["members"]), "messages": head["messages"],
    }  # fmt: skip
