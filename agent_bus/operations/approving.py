"""A person's decision on a task that waits at the gate, however it comes: command line, page, a client's question."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.domain import approval, dependency
from agent_bus.domain.report import end
from agent_bus.domain.task import PENDING_APPROVAL, REJECTED, Task, follow
from agent_bus.errors import BusError
from agent_bus.operations import find, gate, stop
from agent_bus.operations.find import Found
from agent_bus.operations.settle import commit
from agent_bus.store.port import Stale

_TRIES = 20


def approve(bus: Bus, task_id: str, note: str = "", only: str = "") -> Task:
    """Lets a waiting task run, exactly as its text stands now.

    Args:
        task_id: the task.
        note: a remark for the record.
        only: the fingerprint of the text that the person saw; "" = whatever stands there now.

    Returns:
        The task after it, with the `approval` that was recorded.

    Raises:
        BusError: `conflict` if it does not wait or has another text, `not_found`, `stopped`, `busy`.
    """
    stop.refuse_if_stopped(bus)
    for _ in range(_TRIES):
        found = _waiting(bus, task_id, only)
        task, now = found.task, bus.now()
        sha = gate.fingerprint(task)
        record = approval.granted(task.approval or {}, _who(bus), bus.stamp(), bus.caller.channel, sha)
        status, reason = dependency.readiness(task, find.outcomes(bus, task), now)
        fresh = follow(task, "approve", status, _who(bus), now, note, approval=record, reason=reason)
        try:
            return commit(bus, found, fresh, "task.approved").task
        except Stale:
            continue
    raise _busy(task_id)


def reject(bus: Bus, task_id: str, note: str = "", only: str = "") -> Task:
    """Refuses a waiting task for good; its sender gets a failed report with the reason.

    Args and errors are those of `approve`, but for `stopped`.
    """
    for _ in range(_TRIES):
        found = _waiting(bus, task_id, only)
        task, now = found.task, bus.now()
        record = approval.denied(
            task.approval or {}, _who(bus), bus.stamp(), bus.caller.channel, gate.fingerprint(task)
        )
        words = f"rejected by {_who(bus)}" + (f": {note}" if note else "")
        ended = end(task, "reject", REJECTED, _who(bus), now, words).model_copy(update={"approval": record})
        try:
            return commit(bus, found, ended, "task.rejected").task
        except Stale:
            continue
    raise _busy(task_id)


def _waiting(bus: Bus, task_id: str, only: str) -> Found:
    found = find.need(bus, task_id)
    if found.task.status != PENDING_APPROVAL:
        raise BusError(
            "conflict",
            f"{task_id} is {found.task.status}, it does not wait for approval.",
            "list_tasks(state=pending_approval) shows those that do.",
        )
    if only and gate.fingerprint(found.task) != only:
        raise BusError("conflict", f"the text of {task_id} is not the one that was shown.", "Look at it anew.")
    return found


def _who(bus: Bus) -> str:
    return bus.caller.agent or "a person"


def _busy(task_id: str) -> BusError:
    return BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")
