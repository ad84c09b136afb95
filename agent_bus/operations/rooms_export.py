"""`archive/rooms/<room>.json`: made when a room closes, from its documents alone, so that it can be made again."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import room_export
from agent_bus.operations import rooms
from agent_bus.operations.rooms import Room
from agent_bus.store import atomic


def place(found: Room) -> str:
    """The file, relative to the bus folder."""
    return f"archive/rooms/{ids.folder_of(found.name)}.json"


def rows(bus: Bus, found: Room, private: bool = False) -> list[dict[str, Any]]:
    """The messages as they are exported; `private` only for the host."""
    said = ((r, rooms.content(bus, found, r)) for r in rooms.records(bus, found, 0) if private or "seen" not in r)
    handles = {key: str(m["handle"]) for key, m in found.head["members"].items()}
    return room_export.rows(found.setup, handles, said, private)


def make(bus: Bus, found: Room) -> None:
    """Writes the file if it is missing; a bus without a folder has none.

    Raises:
        BusError: `unavailable` if it cannot be written.
    """
    if bus.layout is None:
        return
    folder = bus.layout.archive / "rooms"
    path = folder / f"{ids.folder_of(found.name)}.json"
    if path.is_file():
        return
    try:
        atomic.make_folder(str(folder), True)
        atomic.put_file(str(bus.layout.temp), str(path), to_json(rows(bus, found), indent=2) + b"\n", True)
        atomic.sync_folder(str(folder))
    except OSError as error:
        raise atomic.unavailable(error, bus.layout.root) from error
