"""What the reaper does for records that are no tasks."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.operations import debate_archive, handoffs, presence


def tidy(bus: Bus) -> None:
    """Completes what was left half-done, applies what time asks for, drops who has gone. Idempotent."""
    handoffs.tidy(bus)
    debate_archive.tidy(bus)
    presence.tidy(bus)
