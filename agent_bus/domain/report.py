"""Reports: what a worker says of a task, what the bus says in its place, and what either does to the task."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from agent_bus.domain.task import (
    BLOCKED,
    COMPLETED,
    FAILED,
    IN_REVIEW,
    PENDING,
    SCHEDULED,
    Task,
    follow,
    note_event,
)
from agent_bus.times import stamp

STATUSES = ("completed", "failed", "blocked")
BUS = "bus"
_CONTENT = ("worker", "status", "summary", "artifacts", "needs_review")


def make_report(
    task: Task,
    worker: str,
    status: str,
    summary: str,
    artifacts: list[str],
    needs_review: bool,
    now: datetime,
) -> dict[str, Any]:
    """A worker's report of its current lease; the seed's keys first."""
    return {
        "task_id": task.task_id,
        "worker": worker,
        "status": status,
        "summary": summary,
        "artifacts": artifacts,
        "completed_at": stamp(now),
        "needs_review": needs_review,
        "attempt": task.attempt,
        "lease_id": task.lease.id if task.lease else "",
        "received_at": stamp(now),
        "step": task.step + 1,
    }


def bus_report(task: Task, reason: str, now: datetime) -> dict[str, Any]:
    """What a sender sees when the bus itself ended the task: a failed report by `bus`, with the reason."""
    report = make_report(task, BUS, FAILED, reason, [], False, now)
    return report | {"lease_id": f"bus-{task.step}", "reason": reason, "step": task.step}


def same_content(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two reports say the same (times apart)."""
    return all(one.get(k) == other.get(k) for k in _CONTENT)


def submit(task: Task, report: dict[str, Any], now: datetime, retry_after_s: float = 0.0) -> Task:
    """in_progress → what the report says; the report is embedded, so that it and the new state are one write.

    Args:
        report: `make_report`.
        retry_after_s: the back-off if a failed task is to run again by itself (`retry_failed`); 0 = it stays failed.
    """
    status = str(report["status"])
    changes: dict[str, Any] = {"report": report, "reason": "", "cancel": None}
    if status == COMPLETED:
        target = IN_REVIEW if report["needs_review"] else COMPLETED
        return follow(task, "submit", target, str(report["worker"]), now, **changes)
    if status == BLOCKED:
        reason = str(report["summary"])[:500]
        return follow(task, "submit", BLOCKED, str(report["worker"]), now, **changes | {"reason": reason})
    if retry_after_s:
        later = stamp(now + timedelta(seconds=retry_after_s))
        extra = {"not_before": later, "crashes": task.crashes + 1, "lease": None}
        return follow(
            task,
            "submit",
            SCHEDULED,
            str(report["worker"]),
            now,
            "failed, will run again",
            **changes,
            **extra,
        )
    return follow(task, "submit", FAILED, str(report["worker"]), now, **changes)


def backoff_s(failures: int, base_s: int, cap_s: int, share: float) -> float:
    """The wait before a failed task runs again: base · 2^n with full jitter (`share` in 0 … 1), at least a second."""
    return max(1.0, share * float(min(cap_s, base_s * 2 ** min(failures, 30))))


def end(task: Task, event: str, status: str, by: str, now: datetime, reason: str) -> Task:
    """An end that the bus makes (cancel, expire, reject, dead letter): state and bus report in one write."""
    ended = follow(task, event, status, by, now, reason, reason=reason, lease=None)
    return ended.model_copy(update={"report": bus_report(ended, reason, now)})


def accept(task: Task, by: str, now: datetime, comment: str = "") -> Task:
    """The verdict `accept`: a task in review becomes completed, a blocked one failed, an ended one keeps its state."""
    verdict: dict[str, Any] = {"verdict": "accept", "by": by, "at": stamp(now), "step": task.step + 1} | (
        {"comment": comment} if comment else {}
    )
    if task.status == IN_REVIEW:
        return follow(task, "accept", COMPLETED, by, now, comment, verdict=verdict)
    if task.status == BLOCKED:
        return follow(task, "accept", FAILED, by, now, comment, verdict=verdict)
    return note_event(task, "accept", by, now, comment, verdict=verdict)


def give_up(task: Task, by: str, now: datetime) -> Task:
    """A blocked task that nobody worked on gets the report on which a verdict can be given."""
    noted = note_event(task, "give_up", by, now, task.reason)
    return noted.model_copy(update={"report": bus_report(noted, task.reason or "it could not run", now)})


def rework(task: Task, event: str, by: str, now: datetime, comment: str) -> Task:
    """Back to pending with a comment (`event` is rework or retry); the report leaves the document."""
    words = {"text": comment, "by": by, "at": stamp(now)} if comment else task.comment
    changes: dict[str, Any] = {
        "report": None,
        "verdict": None,
        "lease": None,
        "reason": "",
        "not_before": "",
        "cancel": None,
    }
    if event == "retry":
        changes["crashes"] = 0
    return follow(task, event, PENDING, by, now, comment, comment=words, **changes)
