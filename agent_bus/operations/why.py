"""Why a task does not move, in one sentence."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.domain.task import (
    BLOCKED,
    DEAD_LETTER,
    IN_PROGRESS,
    IN_REVIEW,
    PENDING,
    PENDING_APPROVAL,
    SCHEDULED,
    WAITING,
    Task,
)
from agent_bus.operations import find, holders, launching, stop
from agent_bus.times import parse_stamp


def in_words(bus: Bus, task: Task) -> str:
    """One sentence for people and models."""
    if not task.ended and task.status not in (IN_REVIEW, BLOCKED) and (stopped := stop.read(bus)) is not None:
        reason = stopped.get("reason") or "no reason given"
        return f"The bus was stopped by {stopped.get('by') or 'somebody'}: {reason}; a person resumes it."
    say = _WORDS.get(task.status)
    return say(bus, task) if say else f"It has ended: {task.status}" + (f" ({task.reason})." if task.reason else ".")


def _approval(_: Bus, task: Task) -> str:
    terms = ", ".join((task.approval or {}).get("terms", [])) or "its sender"
    return f"It waits for a person's approval because of: {terms}. agent-bus approve {task.task_id}"


def _scheduled(_: Bus, task: Task) -> str:
    return f"It starts at {task.not_before}."


def _waiting(bus: Bus, task: Task) -> str:
    ends = find.outcomes(bus, task)
    open_ones = [d["task"] for d in task.depends_on if not ends.get(d["task"])]
    return f"It waits for {', '.join(open_ones[:5])}{' …' if len(open_ones) > 5 else ''}."


def _pending(bus: Bus, task: Task) -> str:
    plan = launching.for_task(bus, task)
    if plan.start:
        return f"It is ready; a run of {task.to} starts within a moment."
    said = f" ({plan.launch}: {plan.reason})" if plan.reason else ""
    return f"It is ready; {task.to} has not received it yet{said}."


def _held(bus: Bus, task: Task) -> str:
    if task.lease is None:
        return f"{task.to} works on it, without a lease (made by an older program)."
    if task.lease.holder.run:
        return f"It is held by {holders.in_words(task.lease)} in run {task.lease.holder.run}{_asked(task)}."
    state = holders.liveness(task.lease)
    quiet = silent_s(bus, task)
    words = {
        "alive": "alive",
        "dead": "gone; the next receive takes it back",
        "unknown": "known only by its lease",
    }[state]
    asked = _asked(task)
    until = f"silent for {quiet // 60} min, lease until {task.lease.until}{asked}"
    return f"It is held by {holders.in_words(task.lease)}, {words}, {until}."


def _asked(task: Task) -> str:
    return "; it was asked to stop" if task.cancel else ""


def silent_s(bus: Bus, task: Task) -> int:
    """Seconds since the holder of a task made a call about it."""
    last = (task.lease.called_at if task.lease else "") or (task.history[-1]["at"] if task.history else task.created_at)
    try:
        return max(0, int((bus.now() - parse_stamp(last)).total_seconds()))
    except ValueError:
        return 0


def _review(_: Bus, task: Task) -> str:
    return f"Its report waits for acknowledge_report(task_id={task.task_id}, verdict accept or rework)."


def _blocked(_: Bus, task: Task) -> str:
    way = "acknowledge_report with rework, or retry_task, puts it back."
    return f"It is blocked: {task.reason or 'no reason given'}. {way}"


def _dead(_: Bus, task: Task) -> str:
    return f"It is a dead letter: {task.reason}. A person may run: agent-bus retry {task.task_id}"


_WORDS = {
    PENDING_APPROVAL: _approval,
    SCHEDULED: _scheduled,
    WAITING: _waiting,
    PENDING: _pending,
    IN_PROGRESS: _held,
    IN_REVIEW: _review,
    BLOCKED: _blocked,
    DEAD_LETTER: _dead,
}
