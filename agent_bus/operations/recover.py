"""Taking a task back from a holder that is gone; letting go of one on request."""

from __future__ import annotations

from agent_bus import host
from agent_bus.bus import Bus
from agent_bus.domain import lease, report
from agent_bus.domain.task import CANCELLED, DEAD_LETTER, IN_PROGRESS, Task
from agent_bus.operations import clocks, holders, runs
from agent_bus.operations.find import Found
from agent_bus.operations.settle import commit
from agent_bus.store.port import Stale


def if_lost(bus: Bus, found: Found) -> Found | None:
    """Takes the task back if its holder is gone.

    Returns:
        The task as it is then (pending, dead letter or cancelled); None if it stays with its holder, or
        somebody was first.
    """
    task = found.task
    if task.status != IN_PROGRESS:
        return None
    if task.lease is None:
        _adopt(bus, found)
        return None
    if not is_lost(bus, task):
        return None
    if task.lease.holder.run:
        if not runs.bury(bus, task.lease.holder.run):
            return None
        why = f"the run of {task.lease.worker} ended without a report"
        return take_back(bus, found, why, runs.crash_counts(bus, task.lease.holder.run))
    alive = holders.liveness(task.lease)
    if alive != host.DEAD and not clocks.steady(bus):
        return None
    why = (
        f"{holders.in_words(task.lease)} ended without a report"
        if alive == host.DEAD
        else f"the lease of {task.lease.worker} ran out"
    )
    return take_back(bus, found, why)


def is_lost(bus: Bus, task: Task) -> bool:
    """Whether a task in progress has a lease whose holder is gone."""
    if task.lease is None:
        return False
    if task.lease.holder.run:
        return runs.lost(bus, task.lease)
    alive = holders.liveness(task.lease)
    return lease.judge(task.lease, bus.now(), alive, bus.settings.start_s) == lease.LOST


def take_back(bus: Bus, found: Found, why: str, counted: bool | None = None) -> Found | None:
    """in_progress → pending, dead_letter or cancelled; None if somebody was first."""
    now = bus.now()
    task = lease.recover(found.task, now, bus.settings.start_s, why, counted)
    if task.status in (DEAD_LETTER, CANCELLED):
        task = with_bus_report(bus, task)
    event = {DEAD_LETTER: "task.dead_letter", CANCELLED: "task.cancelled"}.get(task.status, "task.recovered")
    try:
        return commit(bus, found, task, event, reason=why, crashes=task.crashes)
    except Stale:
        return None


def let_go(bus: Bus, found: Found, by: str, delay_s: int = 0, why: str = "") -> Found:
    """in_progress → pending or scheduled, uncounted; cancelled if that was asked.

    Raises:
        Stale: somebody else was first.
    """
    task = lease.release(found.task, by, bus.now(), delay_s, why)
    if task.status == CANCELLED:
        return commit(bus, found, with_bus_report(bus, task), "task.cancelled", by=by)
    return commit(bus, found, task, "task.released", by=by, reason=why)


def undo_claim(bus: Bus, found: Found, why: str) -> None:
    """Gives back a task that was claimed a moment ago and could not be delivered; never counted."""
    try:
        let_go(bus, found, "bus", why=why)
    except Stale:
        return  # the holder has done something with it already: then it was delivered


def with_bus_report(bus: Bus, task: Task) -> Task:
    """The task with the report that the bus makes in its holder's place."""
    return task.model_copy(update={"report": report.bus_report(task, task.reason, bus.now())})


def _adopt(bus: Bus, found: Found) -> None:
    task = lease.adopt(found.task, bus.token(), bus.now(), bus.settings.lease_s)
    try:
        commit(bus, found, task, "task.adopted")
    except Stale:
        return
