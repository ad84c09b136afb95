"""The gate's other side, for people: let a waiting task run, or refuse it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain.task import Task
from agent_bus.operations import approving


class Decided(BaseModel):
    """What a person decided, and where the task is now."""

    task_id: str
    task_state: str
    terms: list[str]
    sha256: str
    next: str


@command(group="approval", writes=True, people=True)
def approve(
    bus: Bus,
    task_id: Annotated[str, Param("The task that waits for approval.", max_chars=60)],
    note: Annotated[str, Param("A remark for the record.", max_chars=500)] = "",
) -> Decided:
    """Let a task that waits for approval run, exactly as its text stands now."""
    task = approving.approve(bus, task_id, note)
    return _decided(task, f"It is {task.status} now.")


@command(group="approval", writes=True, people=True)
def reject(
    bus: Bus,
    task_id: Annotated[str, Param("The task that waits for approval.", max_chars=60)],
    note: Annotated[str, Param("Why, for its sender.", max_chars=500)] = "",
) -> Decided:
    """Refuse a task that waits for approval; its sender sees a failed report with the reason."""
    return _decided(approving.reject(bus, task_id, note), "It will never run; its sender sees why.")


def _decided(task: Task, follow_up: str) -> Decided:
    record = task.approval or {}
    terms = record.get("terms")
    return Decided(
        task_id=task.task_id,
        task_state=task.status,
        terms=paging.some([str(t) for t in terms]) if isinstance(terms, list) else [],
        sha256=str(record.get("sha256", "")),
        next=follow_up,
    )
