"""The queue's hand tools: see one task whole and why it waits, cancel it, give it back, run it again."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel
from pydantic_core import to_json

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import lease, report
from agent_bus.domain.task import BLOCKED, CANCELLED, DEAD_LETTER, IN_PROGRESS, Task, may, note_event
from agent_bus.errors import BusError
from agent_bus.operations import find, holders, reading, recover, why
from agent_bus.operations.dispatch import Order, dispatch
from agent_bus.operations.find import Found
from agent_bus.operations.settle import commit, settle
from agent_bus.store.port import Stale
from agent_bus.times import stamp

_TRIES = 20


class TaskShown(BaseModel):
    """One whole task as JSON text, in parts if it is long, and why it does not move."""

    task_id: str
    state: str
    why: str
    rev: str
    task_json: str
    cursor: str
    next: str


class TaskMoved(BaseModel):
    """What became of a task."""

    task_id: str
    task_state: str
    cancel_requested: bool = False
    new_task_id: str = ""
    next: str


@command(group="queue", writes=False)
def get_task(
    bus: Bus,
    task_id: Annotated[str, Param("The task.", max_chars=60)],
    cursor: Annotated[str, Param("From the last answer, for the rest of a long task.", max_chars=20)] = "",
) -> TaskShown:
    """See one whole task with its history, and in one sentence why it does not move."""
    found = find.need(bus, task_id)
    text = to_json(reading.without_leases(found.task)).decode("utf-8")
    words = paging.brief(why.in_words(bus, found.task), 1500)
    part, rest = paging.slice_text(text, cursor, paging.ROOM - 300 - paging.size(words))
    hint = (
        "Call again with this cursor for the rest." if rest else "cancel_task, release_task and retry_task act on it."
    )
    return TaskShown(
        task_id=task_id,
        state=found.task.status,
        why=words,
        rev=found.doc.rev,
        task_json=part,
        cursor=rest,
        next=hint,
    )


@command(group="queue", writes=True, idempotent=True, destructive=True)
def cancel_task(
    bus: Bus,
    task_id: Annotated[str, Param("The task.", max_chars=60)],
    reason: Annotated[str, Param("Why, for its worker and its sender.", max_chars=500)] = "",
) -> TaskMoved:
    """Cancel a task: one that is not running ends at once; a running one is asked to stop, and ended a minute later."""
    by = _who(bus)
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        task = found.task
        _may_touch(bus, task, "cancel")
        if task.status == CANCELLED or (task.status == IN_PROGRESS and task.cancel):
            settle(bus, found)
            return TaskMoved(
                task_id=task_id,
                task_state=task.status,
                cancel_requested=bool(task.cancel),
                next="It was asked for already.",
            )
        if not may(task, "cancel"):
            raise BusError(
                "conflict",
                f"{task_id} is {task.status}, which cannot be cancelled.",
                "acknowledge_report decides on reports.",
            )
        try:
            return _cancel(bus, found, by, reason)
        except Stale:
            continue
    raise _busy(task_id)


@command(group="queue", writes=True, idempotent=True)
def release_task(
    bus: Bus,
    task_id: Annotated[str, Param("The task that you hold, or want taken from its holder.", max_chars=60)],
    lease_id: Annotated[str, Param("From receive_task; then only this lease is released.", max_chars=80)] = "",
    delay_s: Annotated[int, Param("Seconds until it may be received again, 0 to 86400.", low=0, high=86_400)] = 0,
) -> TaskMoved:
    """Give a task back without a report; it is not counted as a failure."""
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        task = found.task
        if task.status != IN_PROGRESS:
            return TaskMoved(task_id=task_id, task_state=task.status, next="Nobody holds it.")
        if lease_id and (task.lease is None or task.lease.id != lease_id):
            raise BusError("not_yours", f"{task_id} is held by another lease now.", "Nothing was released.")
        if not lease_id:
            _may_touch(bus, task, "release")
        try:
            done = recover.let_go(bus, found, _who(bus), delay_s).task
            hint = "It is over: its sender had cancelled it." if done.ended else "It can be received again."
            return TaskMoved(task_id=task_id, task_state=done.status, next=hint)
        except Stale:
            continue
    raise _busy(task_id)


@command(group="queue", writes=True)
def retry_task(
    bus: Bus,
    task_id: Annotated[str, Param("A blocked, dead or ended task.", max_chars=60)],
    comment: Annotated[str, Param("An answer or advice for the next attempt.", max_chars=20_000)] = "",
) -> TaskMoved:
    """Run a task again: a blocked or dead one goes back to its inbox, an ended one is dispatched anew with
    parent set.
    """
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        task = found.task
        if task.status == DEAD_LETTER and not (bus.caller.person or bus.caller.role == "operator"):
            raise BusError(
                "refused",
                f"{task_id} is a dead letter: a person decides.",
                f"A person runs: agent-bus retry {task_id}",
            )
        if task.ended or (task.status == DEAD_LETTER and task.attempt >= lease.attempt_cap(task)):
            return _again(bus, task, comment)
        if task.status not in (BLOCKED, DEAD_LETTER):
            raise BusError(
                "conflict",
                f"{task_id} is {task.status}, there is nothing to run again.",
                why.in_words(bus, task),
            )
        try:
            done = commit(bus, found, report.rework(task, "retry", _who(bus), bus.now(), comment), "task.retried").task
            return TaskMoved(task_id=task_id, task_state=done.status, next="It can be received again.")
        except Stale:
            continue
    raise _busy(task_id)


def _cancel(bus: Bus, found: Found, by: str, reason: str) -> TaskMoved:
    now = bus.now()
    if found.task.status != IN_PROGRESS:
        words = f"cancelled by {by}" + (f": {reason}" if reason else "")
        done = commit(
            bus, found, report.end(found.task, "cancel", CANCELLED, by, now, words), "task.cancelled", by=by
        ).task
        return TaskMoved(
            task_id=found.task.task_id,
            task_state=done.status,
            next="It is over; its sender sees a failed report.",
        )
    firm = stamp(now + timedelta(seconds=bus.settings.cancel_grace_s))
    asked = {"by": by, "at": stamp(now), "reason": reason, "firm_at": firm}
    done = commit(
        bus,
        found,
        note_event(found.task, "cancel_requested", by, now, reason, cancel=asked),
        "task.cancel_requested",
        by=by,
    ).task
    hint = f"Its worker is told at its next call; at {firm} the task is ended."
    return TaskMoved(task_id=done.task_id, task_state=done.status, cancel_requested=True, next=hint)


def _again(bus: Bus, task: Task, comment: str) -> TaskMoved:
    extra: dict[str, Any] = {
        "parent": task.task_id,
        "thread": task.thread,
        "labels": task.labels,
        "limits": task.limits,
    }
    extra |= {
        "retry_failed": task.retry_failed,
        "max_attempts": task.max_attempts,
        "next_tasks": task.next_tasks,
    }
    if comment:
        extra["comment"] = {"text": comment, "by": _who(bus), "at": bus.stamp()}
    order = Order(
        task.to,
        task.instruction,
        task.sender,
        task.priority,
        task.context,
        extra={k: v for k, v in extra.items() if v},
    )
    sent = dispatch(bus, order).task
    return TaskMoved(
        task_id=task.task_id,
        task_state=task.status,
        new_task_id=sent.task_id,
        next=f"The new task is {sent.task_id}, {sent.status}.",
    )


def _may_touch(bus: Bus, task: Task, act: str) -> None:
    """The sender, the holder, an orchestrator, an operator, a person, or a caller that is bound to nobody."""
    caller = bus.caller
    if caller.person or caller.role in ("orchestrator", "operator") or not caller.agent:
        return
    mine = (
        task.sender if act == "cancel" else "",
        task.to,
        ids.agent_of(task.lease.worker) if task.lease else "",
    )
    if not any(n and ids.same_name(n, caller.agent) for n in mine):
        held = f", held by {holders.in_words(task.lease)}" if task.lease else ""
        raise BusError(
            "not_yours",
            f"{task.task_id} is from {task.sender or 'nobody'} for {task.to}{held}.",
            f"Only they or an orchestrator may {act} it.",
        )


def _who(bus: Bus) -> str:
    return bus.caller.agent or ("a person" if bus.caller.person else bus.caller.channel)


def _busy(task_id: str) -> BusError:
    return BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")
