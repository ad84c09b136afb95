"""The gate's other side, for people: let a waiting task run, or refuse it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import approval, dependency
from agent_bus.domain.report import end
from agent_bus.domain.task import PENDING_APPROVAL, REJECTED, follow
from agent_bus.errors import BusError
from agent_bus.operations import find, gate, stop
from agent_bus.operations.find import Found
from agent_bus.operations.settle import commit
from agent_bus.store.port import Stale

_TRIES = 20


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
    stop.refuse_if_stopped(bus)
    for _ in range(_TRIES):
        found = _waiting(bus, task_id)
        task, now = found.task, bus.now()
        sha = gate.fingerprint(task)
        record = approval.granted(task.approval or {}, _who(bus), bus.stamp(), bus.caller.channel, sha)
        status, reason = dependency.readiness(task, find.outcomes(bus, task), now)
        try:
            done = commit(
                bus,
                found,
                follow(task, "approve", status, _who(bus), now, note, approval=record, reason=reason),
                "task.approved",
            ).task
        except Stale:
            continue
        return _decided(done.task_id, done.status, record, sha, f"It is {done.status} now.")
    raise BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")


@command(group="approval", writes=True, people=True)
def reject(
    bus: Bus,
    task_id: Annotated[str, Param("The task that waits for approval.", max_chars=60)],
    note: Annotated[str, Param("Why, for its sender.", max_chars=500)] = "",
) -> Decided:
    """Refuse a task that waits for approval; its sender sees a failed report with the reason."""
    for _ in range(_TRIES):
        found = _waiting(bus, task_id)
        task, now = found.task, bus.now()
        sha = gate.fingerprint(task)
        record = approval.denied(task.approval or {}, _who(bus), bus.stamp(), bus.caller.channel, sha)
        words = f"rejected by {_who(bus)}" + (f": {note}" if note else "")
        ended = end(task, "reject", REJECTED, _who(bus), now, words).model_copy(update={"approval": record})
        try:
            done = commit(bus, found, ended, "task.rejected").task
        except Stale:
            continue
        return _decided(done.task_id, done.status, record, sha, "It will never run; its sender sees why.")
    raise BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")


def _waiting(bus: Bus, task_id: str) -> Found:
    found = find.need(bus, task_id)
    if found.task.status != PENDING_APPROVAL:
        raise BusError(
            "conflict",
            f"{task_id} is {found.task.status}, it does not wait for approval.",
            "list_tasks(state=pending_approval) shows those that do.",
        )
    return found


def _decided(task_id: str, state: str, record: dict[str, object], sha: str, follow_up: str) -> Decided:
    terms = record.get("terms")
    return Decided(
        task_id=task_id,
        task_state=state,
        terms=paging.some([str(t) for t in terms]) if isinstance(terms, list) else [],
        sha256=sha,
        next=follow_up,
    )


def _who(bus: Bus) -> str:
    return bus.caller.agent or "a person"
