"""Leases: given, renewed, lost. When a holder counts as gone, and what its end costs the task
(docs/protocol.md "Leases").
"""

from __future__ import annotations

from datetime import datetime, timedelta

from agent_bus import ids
from agent_bus.domain.task import (
    CANCELLED,
    DEAD_LETTER,
    IN_PROGRESS,
    PENDING,
    SCHEDULED,
    Holder,
    Lease,
    Task,
    follow,
    note_event,
)
from agent_bus.times import parse_stamp, stamp

KEEP, LOST = "keep", "lost"
GIVING = ("receive", "adopt")
"""The events of a history whose note is the id of the lease that they gave."""


def claim(task: Task, lease_id: str, worker: str, holder: Holder, now: datetime, ttl_s: int) -> Task:
    """pending → in_progress, held by `holder` for `ttl_s` seconds; `attempt` + 1."""
    lease = Lease(id=lease_id, worker=worker, holder=holder, until=stamp(now + timedelta(seconds=ttl_s)))
    changes = {"lease": lease, "attempt": task.attempt + 1, "report": None, "verdict": None, "reason": ""}
    return follow(task, "receive", IN_PROGRESS, worker, now, lease_id, **changes)


def renew(task: Task, now: datetime, ttl_s: int, called: bool = True) -> Task:
    """A fresh time for the lease; `called` marks that the holder itself has called since it received."""
    assert task.lease is not None
    changes = {"until": stamp(now + timedelta(seconds=ttl_s))} | ({"called_at": stamp(now)} if called else {})
    return task.model_copy(update={"step": task.step + 1, "lease": task.lease.model_copy(update=changes)})


def needs_renewal(task: Task, now: datetime, ttl_s: int) -> bool:
    """Whether a call by the holder is worth a write: the first one, or a tenth of the time has gone."""
    lease = task.lease
    return lease is not None and (not lease.called_at or left_s(lease, now) < ttl_s * 0.9)


def left_s(lease: Lease, now: datetime) -> float:
    """Seconds until the lease ends; an unreadable time has ended."""
    try:
        return (parse_stamp(lease.until) - now).total_seconds()
    except ValueError:
        return -1.0


def same_holder(lease: Lease, worker: str, holder: Holder) -> bool:
    """Whether the lease is this caller's: the same run; else the same process or session, and the same worker label."""
    return owns(lease, holder) and (bool(holder.run) or ids.same_name(lease.worker, worker))


def owns(lease: Lease, holder: Holder) -> bool:
    """Whether the run, else the process or session, of a lease is this one; several workers may share it."""
    held = lease.holder
    return held.run == holder.run if held.run or holder.run else held == holder


def judge(lease: Lease, now: datetime, liveness: str, start_s: int) -> str:
    """`lost` if the holder is gone, else `keep`.

    Args:
        liveness: `alive`, `dead` or `unknown`, of the holder's process (host.liveness).
        start_s: the further time that a lease of a launcher's run gets, whose run document decides before.
    """
    if lease.holder.run:
        return LOST if left_s(lease, now) < -start_s else KEEP
    if liveness == "alive":
        return KEEP
    if liveness == "dead":
        return LOST
    return LOST if left_s(lease, now) < 0 else KEEP


def recover(task: Task, now: datetime, start_s: int, why: str, counted: bool | None = None) -> Task:
    """in_progress → pending, or dead_letter once the crashes are used up, or cancelled if that was asked.

    Args:
        start_s: a holder that made no call and held the task no longer than this never began: not counted.
        why: what happened, in words.
        counted: overrides the rule above.
    """
    assert task.lease is not None
    crash = _crash_counts(task, now, start_s) if counted is None else counted
    crashes = task.crashes + crash
    changes = {"lease": None, "crashes": crashes}
    if task.cancel is not None:
        return follow(task, "recover", CANCELLED, "bus", now, why, **changes, reason=cancel_words(task))
    if crashes >= task.max_attempts or task.attempt >= attempt_cap(task):
        words = f"{why}; {crashes} crashes in {task.attempt} attempts"
        return follow(task, "recover", DEAD_LETTER, "bus", now, why, **changes, reason=words)
    return follow(task, "recover", PENDING, "bus", now, why, **changes)


def attempt_cap(task: Task) -> int:
    """The number of leases after which a task is dead whatever crashed."""
    return 3 * task.max_attempts + 3


def release(task: Task, by: str, now: datetime, delay_s: int = 0, note: str = "") -> Task:
    """in_progress → pending, or scheduled in `delay_s` seconds, or cancelled if that was asked; never counted."""
    if task.cancel is not None:
        words = cancel_words(task)
        return follow(task, "release", CANCELLED, by, now, note or words, lease=None, reason=words)
    if delay_s:
        later = stamp(now + timedelta(seconds=delay_s))
        return follow(task, "release", SCHEDULED, by, now, note, lease=None, not_before=later)
    return follow(task, "release", PENDING, by, now, note, lease=None)


def adopt(task: Task, lease_id: str, now: datetime, ttl_s: int) -> Task:
    """A seed-made task in progress without a lease gets one for whoever works on it; only its time can end it."""
    lease = Lease(id=lease_id, worker=task.to, holder=Holder(), until=stamp(now + timedelta(seconds=ttl_s)))
    return note_event(task, "adopt", "bus", now, lease_id, lease=lease, attempt=max(1, task.attempt))


def held_leases(task: Task) -> set[str]:
    """The ids of all leases that the history still knows."""
    known = {str(h.get("note", "")) for h in task.history if h.get("event") in GIVING}
    return known | ({task.lease.id} if task.lease else set())


def last_lease(task: Task, worker: str) -> str:
    """The id of the last lease that the history knows of a worker, "" if there is none."""
    given = (h for h in reversed(task.history) if h.get("event") == "receive")
    return next((str(h.get("note", "")) for h in given if ids.same_name(str(h.get("by", "")), worker)), "")


def former_workers(task: Task) -> set[str]:
    """The folded labels of workers that held the task before, the present one left out."""
    known = {ids.fold(str(h.get("by", ""))) for h in task.history if h.get("event") == "receive"}
    return known - ({ids.fold(task.lease.worker)} if task.lease else set())


def _crash_counts(task: Task, now: datetime, start_s: int) -> bool:
    assert task.lease is not None
    if task.lease.called_at:
        return True
    received = [h["at"] for h in task.history if h.get("event") in GIVING]
    try:
        return bool(received) and (now - parse_stamp(received[-1])).total_seconds() > start_s
    except ValueError:
        return True


def cancel_words(task: Task) -> str:
    """Who cancelled the task, and why."""
    cancel = task.cancel or {}
    return f"cancelled by {cancel.get('by', '?')}" + (f": {cancel['reason']}" if cancel.get("reason") else "")
