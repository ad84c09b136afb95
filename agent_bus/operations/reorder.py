"""A new priority for a task that has not ended."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.domain.task import Task, note_event
from agent_bus.errors import BusError
from agent_bus.operations import find
from agent_bus.operations.settle import commit
from agent_bus.store.port import Stale

_TRIES = 20


def set_priority(bus: Bus, task_id: str, priority: str) -> Task:
    """Gives a task another place in its inbox; the same priority again changes nothing.

    Args:
        priority: high, normal or low, checked already.

    Raises:
        BusError: `not_found`, `conflict` for a task that has ended, `busy`.
    """
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        task = found.task
        if task.priority == priority:
            return task
        if task.ended:
            raise BusError("conflict", f"{task_id} has ended as {task.status}.", "Dispatch a new task.")
        note = f"{task.priority} → {priority}"
        who = bus.caller.agent or bus.caller.channel
        fresh = note_event(task, "priority", who, bus.now(), note, priority=priority)
        try:
            return commit(bus, found, fresh, "task.priority", priority=priority).task
        except Stale:
            continue
    raise BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")
