"""The sessions that one MCP session got by its own joins, so that a call need not repeat them; in memory alone."""

from __future__ import annotations

from typing import cast

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import mentions
from agent_bus.errors import BusError
from agent_bus.operations import rooms


def remember(bus: Bus, handle: str, session: str) -> None:
    """Notes a session for the calls that follow; callers that cannot be told apart are not noted."""
    if (known := _known(bus)) is not None:
        known[(rooms.room_of(session), mentions.key(handle))] = session


def recall(bus: Bus, session: str, room: str = "", handle: str = "") -> str:
    """The session of a call: the given one, else the only one that was noted for it.

    Raises:
        BusError: `bad_token`, `ambiguous_room`.
    """
    if session:
        return session
    wanted, key = ids.folder_of(room), mentions.key(handle)
    rows = {
        one
        for (name, who), one in (_known(bus) or {}).items()
        if wanted in ("", name) and key in ("", who) and rooms.settled(bus, name).is_open | bool(room)
    }
    if len(rows) == 1:
        return rows.pop()
    if rows:
        names = ", ".join(sorted({rooms.room_of(one) for one in rows}))
        raise BusError("ambiguous_room", f"this client joined more than once: {names}.", "Give session.")
    raise BusError("bad_token", "session is missing.", "Give the one that joining or opening gave.")


def _known(bus: Bus) -> dict[tuple[str, str], str] | None:
    caller = bus.caller
    if not caller.process and not caller.session:
        return None
    return cast("dict[tuple[str, str], str]", bus.memo.setdefault(f"rooms:{caller.session}", {}))
