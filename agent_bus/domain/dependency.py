"""Dependencies: when a waiting task may run, and when it never can."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from agent_bus import ids
from agent_bus.domain.task import BLOCKED, COMPLETED, DEAD_LETTER, PENDING, SCHEDULED, WAITING, Task
from agent_bus.errors import invalid
from agent_bus.times import parse_stamp

EDGES = ("success", "failure", "always")


def parse_dependency(text: str) -> dict[str, str]:
    """`id`, `id:success`, `id:failure` or `id:always` → `{task, on}`.

    Raises:
        BusError: `invalid`.
    """
    task_id, _, edge = text.partition(":")
    ids.check_task_id(task_id, "depends_on")
    if (edge or "success") not in EDGES:
        raise invalid(
            "depends_on",
            f"must end in :success, :failure or :always, got {edge[:20]!a}",
            f'Use "{task_id}".',
        )
    return {"task": task_id, "on": edge or "success"}


def outcome(task: Task) -> str:
    """What a task means for those that wait for it: `success`, `failure`, or "" while it may still end otherwise.

    A dead letter counts as failure only once a person has acknowledged it: until then they may retry it.
    """
    if task.status == COMPLETED:
        return "success"
    if task.ended or (task.status == DEAD_LETTER and task.verdict is not None):
        return "failure"
    return ""


def readiness(task: Task, outcomes: Mapping[str, str], now: datetime) -> tuple[str, str]:
    """Where a task that is free to run belongs now, and why if it is blocked.

    Args:
        outcomes: `outcome` of each task that it depends on.

    Returns:
        (scheduled | waiting | blocked | pending, reason).
    """
    if task.not_before and _in_future(task.not_before, now):
        return SCHEDULED, ""
    missing = [d for d in task.depends_on if not outcomes.get(d["task"])]
    if missing:
        return WAITING, ""
    for needed in task.depends_on:
        got = outcomes[needed["task"]]
        if needed["on"] not in ("always", got):
            return BLOCKED, f"it needs {needed['on']} of {needed['task']}, which ended as a {got}"
    return PENDING, ""


def _in_future(text: str, now: datetime) -> bool:
    try:
        return parse_stamp(text) > now
    except ValueError:
        return False
