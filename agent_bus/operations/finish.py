"""Reports on documents: whose report counts, what it does, and the verdict on it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import lease, report
from agent_bus.domain.task import BLOCKED, DEAD_LETTER, IN_PROGRESS, PENDING, Task, cut_note, may
from agent_bus.errors import BusError
from agent_bus.operations import agents, find, holders
from agent_bus.operations.find import Found
from agent_bus.operations.settle import commit, keep_stale, settle, write
from agent_bus.operations.witness import record
from agent_bus.store.port import Stale

_TRIES = 20
_EVENTS = {"completed": "report.submitted", "failed": "task.failed", "blocked": "task.blocked"}


@dataclass(frozen=True)
class Given:
    """A report as it came, checked."""

    worker: str
    status: str
    summary: str
    artifacts: tuple[str, ...]
    needs_review: bool
    lease_id: str


@dataclass(frozen=True)
class Accepted:
    """What became of a report."""

    task: Task
    duplicate: bool = False
    stale: bool = False


def submit(bus: Bus, task_id: str, given: Given) -> Accepted:
    """Takes a report of the current lease; the same again is a duplicate, one of an old lease is kept aside.

    Raises:
        BusError: `not_found`, `not_yours` naming the holder, `conflict` showing the stored report.
    """
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        if (done := _settled_already(bus, found, given)) is not None:
            return done
        _check_lease(bus, found.task, given)
        try:
            return _commit(bus, found, given)
        except Stale:
            continue
    raise BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")


def _commit(bus: Bus, found: Found, given: Given) -> Accepted:
    task, now = found.task, bus.now()
    made = report.make_report(
        task, given.worker, given.status, given.summary, list(given.artifacts), given.needs_review, now
    )
    again = given.status == "failed" and task.retry_failed and task.crashes + 1 < task.max_attempts and not task.cancel
    settings = bus.settings
    wait = report.backoff_s(task.crashes, settings.backoff_s, settings.backoff_max_s, random.random()) if again else 0.0
    done = report.submit(task, made, now, wait)
    event = "report.needs_review" if done.status == "in_review" else _EVENTS[given.status]
    commit(bus, found, done, event, worker=given.worker, summary=given.summary[:200])
    agents.set_status(bus, task.to, {"last_completed_task": task.task_id} if given.status == "completed" else {})
    return Accepted(done)


def _settled_already(bus: Bus, found: Found, given: Given) -> Accepted | None:
    """The answer for a lease that has its report already, or is no longer the current one."""
    task = found.task
    stored, current = task.report, task.lease.id if task.lease else ""
    if task.status != IN_PROGRESS and stored is not None and given.lease_id in ("", stored.get("lease_id")):
        if report.same_content(stored, _content(given)):
            settle(bus, found)
            return Accepted(task, duplicate=True)
        if stored.get("worker") == report.BUS and (old := lease.last_lease(task, given.worker)):
            return _stale(bus, task, given, old)  # the bus ended it meanwhile; nothing that was written is thrown away
        first = next(iter(str(stored.get("summary", "")).splitlines()), "")[:120]
        words = f"{task.task_id} has a report of this lease already: {stored.get('status')}, {first!r}"
        raise BusError("conflict", f"{words}.", "It stands; a sender may ask for rework.")
    if given.lease_id and given.lease_id != current:
        if given.lease_id not in lease.held_leases(task):
            raise BusError(
                "not_yours",
                f"{task.task_id} never had the lease {given.lease_id[:40]!a}.",
                "Leave lease_id out, or use the one that receive_task gave.",
            )
        return _stale(bus, task, given, given.lease_id)
    return None


def _check_lease(bus: Bus, task: Task, given: Given) -> None:
    if task.status != IN_PROGRESS or task.lease is None:
        if task.status == IN_PROGRESS and ids.same_name(ids.agent_of(given.worker), task.to):
            return  # a seed-made task in progress, which nobody holds by a lease yet
        hint = "Call receive_task first; it gives you the task and its lease."
        raise BusError("conflict", f"{task.task_id} is {task.status}, so no report is awaited.", hint)
    if given.lease_id == task.lease.id or _may_speak(bus, task, given):
        return
    hint = "If it was yours before, call receive_task for new work; your lease_id keeps the report for the record."
    raise BusError("not_yours", f"{task.task_id} is held by {holders.in_words(task.lease)}.", hint)


def _may_speak(bus: Bus, task: Task, given: Given) -> bool:
    """Whether a report without a lease id may count for the current lease (docs/protocol.md "Fencing")."""
    held = task.lease
    if held is None:
        return False
    caller = bus.caller
    if caller.lease_id and caller.lease_id == held.id:
        return True
    has_identity = caller.process or caller.session or caller.run
    if has_identity and lease.owns(held, holders.holder_of(bus)):
        return ids.fold(given.worker) not in lease.former_workers(task)
    names = (given.worker, caller.agent) if caller.agent else (given.worker,)
    return task.attempt <= 1 and any(ids.same_name(n, o) for n in names for o in (held.worker, task.to))


def _stale(bus: Bus, task: Task, given: Given, lease_id: str) -> Accepted:
    made = report.make_report(
        task, given.worker, given.status, given.summary, list(given.artifacts), given.needs_review, bus.now()
    )
    keep_stale(bus, made | {"lease_id": lease_id})
    record(bus, "report.stale", task, worker=given.worker, lease_id=lease_id)
    return Accepted(task, stale=True)


def _content(given: Given) -> dict[str, Any]:
    return {
        "worker": given.worker,
        "status": given.status,
        "summary": given.summary,
        "artifacts": list(given.artifacts),
        "needs_review": given.needs_review,
    }


def judge(bus: Bus, task_id: str, verdict: str, comment: str, by: str) -> tuple[Task, bool]:
    """The verdict on a report; the second value says that it stood already.

    Raises:
        BusError: `not_found`; `conflict` with the verdict that stands, or if there is nothing to judge.
    """
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        task = found.task
        if task.verdict is not None:
            if verdict == "accept":
                return settle(bus, found).task, True
            raise BusError(
                "conflict",
                f"{task_id} was accepted by {task.verdict.get('by') or 'somebody'} already.",
                "Dispatch a new task instead.",
            )
        if verdict == "rework" and _reworked_already(task, comment):
            return settle(bus, found).task, True
        try:
            if verdict == "accept":
                return _accept(bus, found, by, comment), False
            return _rework(bus, found, by, comment), False
        except Stale:
            continue
    raise BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")


def _reworked_already(task: Task, comment: str) -> bool:
    """Whether this very call has been made a moment ago, and nothing has happened since."""
    last = task.history[-1] if task.history else {}
    same = last.get("event") == "rework" and last.get("note", "") == cut_note(comment)
    return same and task.status == PENDING


def _accept(bus: Bus, found: Found, by: str, comment: str) -> Task:
    task = found.task
    if task.report is None and not task.ended and task.status != BLOCKED:
        raise BusError(
            "conflict",
            f"{task.task_id} is {task.status} and has no report yet.",
            "get_reports(task_id=…, wait_s=45) waits for it.",
        )
    if task.report is None and task.status == BLOCKED:
        found = write(bus, found, report.give_up(task, by, bus.now()))
    # The file in reports/pending is the mark that a verdict's effects are due: it must be there before the verdict.
    found = settle(bus, found)
    return commit(bus, found, report.accept(found.task, by, bus.now(), comment), "report.acknowledged", by=by).task


def _rework(bus: Bus, found: Found, by: str, comment: str) -> Task:
    task = found.task
    if task.ended or task.status == DEAD_LETTER:
        raise BusError(
            "conflict",
            f"{task.task_id} has ended as {task.status}, so it cannot be reworked.",
            "Dispatch a new task with options parent.",
        )
    if not may(task, "rework"):
        raise BusError(
            "conflict",
            f"{task.task_id} is {task.status} and has no report that waits for a verdict.",
            "Wait for its report first.",
        )
    return commit(bus, found, report.rework(task, "rework", by, bus.now(), comment), "task.rework", by=by).task
