"""Rooms under many processes at once, and under kills before every write: `python -m tests.rooms.forks WORK`.

Prints what was found as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agent_bus.operations import rooms
from tests.board.forks import killed, race
from tests.tools.desk import Desk

EACH = 12


def crowd(work: Path) -> dict[str, Any]:
    """Eight processes join at once, and each says something a dozen times."""

    def act(desk: Desk, _: Any, me: int) -> list[int]:
        session = desk.room_join(f"p{me}", room="r")["session"]
        return [desk.room_send(f"{me}-{n}", session=session)["number"] for n in range(EACH)]

    work.mkdir()
    desk, numbers = race(work, lambda desk: desk.room_open("r", mode="free"), act)
    found = rooms.settled(desk.bus, "r")
    records = list(rooms.records(desk.bus, found, 0))
    notices = [n["type"] for r in records for n in r.get("notices", [])]
    return {
        "numbers": [r["number"] for r in records],
        "said": sorted(r["content"] for r in records if r["kind"] == "message"),
        "told": sum(map(len, numbers)),
        "started": notices.count("started"),
    }


def torn(work: Path) -> dict[str, Any]:
    """A private message that passes the floor, killed before each of its writes and sent again with its key."""

    def before(desk: Desk) -> list[str]:
        desk.room_open("r", mode="mention")
        return [desk.room_join(name, room="r")["session"] for name in "AB"]

    def act(desk: Desk, facts: Any) -> Any:
        return desk.room_send("secret", to=["B"], key="k", session=facts[0])

    def after(desk: Desk, facts: Any) -> list[str]:
        found = rooms.settled(desk.bus, "r")
        said = [r for r in rooms.records(desk.bus, found, 0) if r["kind"] == "message"]
        texts = [rooms.content(desk.bus, found, r) for r in said]
        read = desk.room_read("unread", session=facts[1])["messages"]
        right = texts == ["secret"] and found.head["floor"] == "b" and len(read) == 1
        return [] if right else [f"{texts} {found.head['floor']} {read}"]

    work.mkdir()
    return killed(work, before, act, after)


if __name__ == "__main__":
    print(json.dumps({"crowd": crowd(Path(sys.argv[1]) / "a"), "torn": torn(Path(sys.argv[1]) / "b")}))
