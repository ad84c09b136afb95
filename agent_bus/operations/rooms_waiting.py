"""Waiting in a room: level-triggered, so that nothing is missed by being away; of two waits the older gives way."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import room, room_news, turns
from agent_bus.domain.room_acts import Who
from agent_bus.errors import BusError
from agent_bus.operations import rooms, rooms_reading, waits
from agent_bus.operations.rooms import Room

Answer = dict[str, Any]


class Look:
    """One wait's look at a room.

    Args:
        after: the last number that the caller has; 0 = what it was last given.
        everything: every message wakes, not only those for the caller.
    """

    def __init__(self, bus: Bus, name: str, session: str, after: int, everything: bool) -> None:
        self._bus, self._name, self._session = bus, name, session
        self._after, self._everything = after, everything
        self._start, self._clear, self._mark = -1, 0, secrets.token_hex(4)
        self.started = False

    def __call__(self, first: bool) -> Answer | None:
        """What ends the wait, None if nothing does yet."""
        found = rooms.settled(self._bus, self._name)
        who = rooms.who(found, self._session)
        if first:
            self._start = self._clear = rooms_reading.take(self._bus, found, who, self._after)
        elif not self.started:
            rooms_reading.move(self._bus, found, who, lambda old: {**old, "wait": self._mark})
            self.started = True
        elif rooms_reading.cursor(self._bus, found, who)["wait"] != self._mark:
            return {"status": "superseded"}
        due = room_news.obligations(found.setup, found.head, who)
        number = found.head["number"]
        woken = number > self._clear and rooms_reading.wakes(self._bus, found, who, self._clear, self._everything)
        if not due and not woken and found.is_open:
            self._clear = number
            return None
        return answer(self._bus, found, who, self._start, due)

    def timeout(self) -> Answer:
        """What a wait that was in vain says."""
        found = rooms.settled(self._bus, self._name)
        who = rooms.who(found, self._session)
        return {"status": "timeout", "cursor": max(0, self._start), **place(found, who)}


async def wait(bus: Bus, name: str, session: str, after: int, timeout_s: int, everything: bool) -> Answer:
    """Waits until there is something to do or to read; the answer says what."""
    look = Look(bus, name, session, after, everything)
    found = await waits.until(bus, look, timeout_s, lambda _: take_back(bus, name, session))
    return found if found is not None else await waits.on_thread(look.timeout)


def answer(bus: Bus, found: Room, who: Who, start: int, due: list[dict[str, Any]]) -> Answer:
    """Everything new for somebody, and what they must do; it counts as delivered."""
    page = rooms_reading.news(bus, found, who, start)
    rooms_reading.delivered(bus, found, who, page["cursor"])
    status = "ready" if found.is_open or page["more"] else "closed"
    return {"status": status, "obligations": due, **page, **place(found, who)}


def take_back(bus: Bus, name: str, session: str) -> None:
    """An answer that never reached its caller has delivered nothing: the next call does not acknowledge it."""
    if not session:
        return
    with suppress(BusError):
        found = rooms.settled(bus, name)
        who = rooms.who(found, session)
        rooms_reading.move(bus, found, who, lambda old: {**old, "delivered": old["acked"]})


def place(found: Room, who: Who) -> dict[str, Any]:
    """Where somebody stands: the place in the queue, 0 = not in it, and whom a room that gathers waits for."""
    line = turns.queue(found.head)
    return {
        "queue_position": line.index(who.key) + 1 if who.key in line else 0,
        "waiting_for": room.waiting_for(found.setup, found.head),
    }
