"""Reading a room: cursors, unread messages, history, and what is new for somebody who waits.

A cursor says up to which number somebody has taken everything (`acked`), what the last answer held (`delivered`), and
how many messages of others lie up to `acked` (`visible`): with the head's own count the number of unread ones costs the
same at any length. Delivering never moves `acked`: the next call does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.domain import room, room_news
from agent_bus.domain.room_acts import Record, Who
from agent_bus.errors import BusError, invalid
from agent_bus.operations import rooms
from agent_bus.operations.rooms import Room
from agent_bus.store.port import Doc, Exists, Stale

MESSAGES = (room.MESSAGE, room.REVEAL)
ROOM = 6_000
"""Characters of messages and notices in an answer; the rest of it needs some as well."""
_NEW = {"schema": 1, "acked": 0, "delivered": 0, "visible": 0, "wait": ""}


def cursor(bus: Bus, found: Room, who: Who) -> dict[str, Any]:
    """The cursor of a member, or of the host without a voice."""
    doc = bus.store.get(_key(found, who))
    return doc.value if doc else dict(_NEW)


def move(bus: Bus, found: Room, who: Who, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Changes a cursor."""
    key = _key(found, who)
    while True:
        doc: Doc | None = bus.store.get(key)
        old = doc.value if doc else dict(_NEW)
        new = change(old)
        if new == old:
            return old
        with suppress(Stale, Exists):
            made = bus.store.replace(doc, new, durable=False) if doc else bus.store.create(key, new, durable=False)
            return made.value


def take(bus: Bus, found: Room, who: Who, after: int = 0) -> int:
    """Acknowledges what the last answer held, or all up to `after`; the number to read on from.

    Raises:
        BusError: `invalid` for a number that is not there yet.
    """
    if after > found.head["number"]:
        raise invalid("after", f"must be at most {found.head['number']}, got {after}", "Give the last cursor.")
    here = cursor(bus, found, who)
    upto = after or here["delivered"]
    if upto > here["acked"]:
        here = acknowledge(bus, found, who, upto)
    return after or int(here["acked"])


def acknowledge(bus: Bus, found: Room, who: Who, upto: int) -> dict[str, Any]:
    """Everything up to a number was taken."""

    def change(old: dict[str, Any]) -> dict[str, Any]:
        if upto <= old["acked"]:
            return old
        new = sum(_for(record, who) for record in rooms.records(bus, found, old["acked"], upto))
        moved = {"acked": upto, "visible": old["visible"] + new, "delivered": max(upto, old["delivered"])}
        return {**old, **moved}

    return move(bus, found, who, change)


def delivered(bus: Bus, found: Room, who: Who, number: int) -> None:
    """The answer that is about to go out holds everything up to a number; the next call acknowledges that."""
    move(bus, found, who, lambda old: {**old, "delivered": max(number, old["acked"])})


def unread(bus: Bus, found: Room, who: Who) -> int:
    """How many messages of others are not acknowledged."""
    count = found.head["members"][who.key]["visible"] if who.key else found.head["public"]
    return int(count) - int(cursor(bus, found, who)["visible"])


def news(bus: Bus, found: Room, who: Who, start: int, limit: int = 500) -> dict[str, Any]:
    """Messages of others and notices after a number, the oldest first, as many as fit, and how far that goes."""
    messages: list[dict[str, Any]] = []
    notices: list[dict[str, Any]] = []
    used, last = 0, start
    for record in rooms.records(bus, found, start):
        told = [_notice(record, n) for n in record.get("notices", []) if room_news.heard(n, who)]
        said = [shown(bus, found, record)] if _for(record, who) else []
        size = sum(map(paging.size, (*told, *said)))
        if (messages or notices) and (used + size > ROOM or len(messages) >= limit):
            return {"messages": messages, "notices": notices, "cursor": last, "more": True}
        messages += said
        notices += told
        used, last = used + size, int(record["number"])
    return {"messages": messages, "notices": notices, "cursor": last, "more": False}


def wakes(bus: Bus, found: Room, who: Who, start: int, everything: bool) -> bool:
    """Whether something after a number is for somebody."""
    return any(
        any(room_news.heard(n, who) for n in record.get("notices", []))
        or (_for(record, who) and (everything or room_news.addressed(record, who)))
        for record in rooms.records(bus, found, start)
    )


def history(bus: Bus, found: Room, who: Who, limit: int, after: int = 0) -> tuple[list[dict[str, Any]], bool]:
    """Visible messages, own ones too: the first after a number, or without one the last; whether some were left out."""
    if after:
        seen = (r for r in rooms.records(bus, found, after) if visible(r, who))
        return paging.take(seen, limit, lambda r: shown(bus, found, r), ROOM)
    rows: list[dict[str, Any]] = []
    used, number = 0, found.head["number"]
    while number > 0:
        for record in rooms.records(bus, found, number - 1, number):
            if visible(record, who):
                row = shown(bus, found, record)
                used += paging.size(row)
                if len(rows) >= limit or (rows and used > ROOM):
                    return rows[::-1], True
                rows.append(row)
        number -= 1
    return rows[::-1], False


def one(bus: Bus, found: Room, who: Who, number: int, offset: int) -> dict[str, Any]:
    """One message from an offset on.

    Raises:
        BusError: `not_found`, also for what somebody may not see.
    """
    for record in rooms.records(bus, found, number - 1, min(number, found.head["number"])):
        if visible(record, who):
            return shown(bus, found, record, offset)
    raise BusError("not_found", f"there is no message {number} for you.", "room_read shows those there are.")


def visible(record: Record, who: Who) -> bool:
    """Whether it is a message that somebody sees."""
    return record["kind"] in MESSAGES and room.sees(record, who.key)


def shown(bus: Bus, found: Room, record: Record, offset: int = 0) -> dict[str, Any]:
    """A message as answers show it; a long one is cut, and read on by number and offset."""
    text = rooms.content(bus, found, record)[offset:]
    part = paging.fit(text, ROOM - 500)
    kind = "system" if record["kind"] == room.REVEAL else "message"
    row = {
        "number": record["number"], "from": record["from"], "to": record.get("to", []), "content": part,
        "private": "seen" in record, "at": record["at"], "kind": kind,
    }  # fmt: skip
    return row | ({"cut": True, "offset": offset + len(part)} if len(part) < len(text) else {})


def _for(record: Record, who: Who) -> bool:
    return visible(record, who) and (not who.key or record["who"] != who.key)


def _notice(record: Record, notice: dict[str, Any]) -> dict[str, Any]:
    return {"number": record["number"], **{k: v for k, v in notice.items() if k != "to"}}


def _key(found: Room, who: Who) -> str:
    safe = "".join(c if c.isalnum() else "".join(f"-{b:02x}" for b in c.encode()) for c in who.key or "host")
    return f"{found.folder}/cursors/m-{safe}"
