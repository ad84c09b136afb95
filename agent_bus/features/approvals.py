"""The gate's other side, for people: let a waiting task run, or refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.commands import Confirmation, Param, command
from agent_bus.domain.task import PENDING_APPROVAL, Task
from agent_bus.operations import approving, asking, find, gate


class Decided(BaseModel):
    """What a person decided, and where the task is now."""

    task_id: str
    task_state: str
    terms: list[str]
    sha256: str
    next: str


def confirm_approval(bus: Bus, given: Mapping[str, Any]) -> Confirmation | None:
    """What a person at a terminal sees before they approve, and the fingerprint of just that; None if nothing waits."""
    found = find.find_quietly(bus, str(given.get("task_id", "")))
    if found is None or found.task.status != PENDING_APPROVAL:
        return None
    return Confirmation(asking.shown(bus, found.task), {"sha256": gate.fingerprint(found.task)})


@command(group="approval", writes=True, people=True, confirm=confirm_approval)
def approve(
    bus: Bus,
    task_id: Annotated[str, Param("The task that waits for approval.", max_chars=60)],
    note: Annotated[str, Param("A remark for the record.", max_chars=500)] = "",
    sha256: Annotated[str, Param("Fingerprint of the text that was read; another text is refused.", max_chars=64)] = "",
) -> Decided:
    """Let a task that waits for approval run, exactly as its text stands now."""
    task = approving.approve(bus, task_id, note, sha256)
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
