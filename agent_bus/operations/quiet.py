"""Documents for whoever goes on without one that is damaged."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.store.port import Doc, Unreadable


def get(bus: Bus, key: str) -> Doc | None:
    """A document; None if it is not there, or cannot be read."""
    try:
        return bus.store.get(key)
    except Unreadable:
        return None
