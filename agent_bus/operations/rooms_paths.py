"""The note that a conversation names: where it may lie, and the room's name that is made of it."""

from __future__ import annotations

import re
from pathlib import Path

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.errors import BusError, invalid
from agent_bus.operations import rooms


def check(bus: Bus, filepath: str) -> None:
    """Refuses a path outside the vault, one that is no note, and a file that is there.

    Raises:
        BusError: `invalid`, `path_exists`.
    """
    if not filepath:
        return
    good = "Give a path in the vault that ends in .md, or an empty one."
    if not filepath.lower().endswith(".md"):
        raise invalid("filepath", f"must end in .md, got {filepath[:80]!a}", good)
    if bus.layout is None:
        return
    root = Path(bus.layout.root).resolve()
    path = (root / filepath).resolve()
    if not path.is_relative_to(root):
        raise invalid("filepath", "must lie in the vault", good)
    if path.exists():
        raise BusError("path_exists", f"there is a file {filepath} already; it stays as it is.", good)


def name_for(bus: Bus, filepath: str) -> str:
    """A room's name from a path, else the first of room-1, room-2 … that is free."""
    stem = filepath.replace("\\", "/").rpartition("/")[2][:-3]
    plain = re.sub(r"[^\w-]+", "-", stem).strip("-_")[:60]
    try:
        return ids.check_agent(plain, "room")
    except BusError:
        number = 1
        while bus.store.exists(f"{rooms.PREFIX}/room-{number}/setup"):
            number += 1
        return f"room-{number}"
