"""What operations tell the journal."""

from __future__ import annotations

from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain.task import Task


def record(bus: Bus, event: str, task: Task, **line: Any) -> None:
    """One line of the journal about a task."""
    by = {"agent": bus.caller.agent, "channel": bus.caller.channel, "client": bus.caller.client}
    seen = {"at": bus.stamp(), "event": event, "agent": task.to, "task_id": task.task_id, "step": task.step}
    bus.journal.write(bus.now(), {**seen, "by": by, "outcome": task.status, **line})
