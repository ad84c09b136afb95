"""Effects: everything that follows from a task's document, made good by whoever finds it missing.

One operation is one write of the task document. What else belongs to it (the report's file, the folder, the ledger, the
chain, waiting dependents) is an effect, keyed by task and step, and is made here: by the call itself, and if that was
killed, by the next one that sees the task. Order, and what a reader sees between two lines:

    report file     a task that embeds a report has ended its lease; the file is only its copy
    folder          a file in a folder that its status does not belong to is taken by its status
    ledger done     the archive is the truth, the ledger its index
    chain           while the report lies in reports/pending/ and the task has a verdict, the chain may be unfinished
    report away     last, as it is the mark that the rest is to be done
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import dependency
from agent_bus.domain.task import IN_PROGRESS, PENDING, Task, place
from agent_bus.operations import chains, ledger, stop, waiting
from agent_bus.operations.find import Found, put_in_place
from agent_bus.operations.witness import record
from agent_bus.store.port import Doc, Exists, Stale, Unreadable


def commit(bus: Bus, found: Found, task: Task, event: str = "", **line: Any) -> Found:
    """The one write of an operation, its line in the journal, and its effects.

    Raises:
        Stale: somebody else was first; nothing was done.
    """
    done = write(bus, found, task)
    if event:
        record(bus, event, task, **line)
    return settle(bus, done)


def write(bus: Bus, found: Found, task: Task) -> Found:
    """The write alone, for operations without effects (receive, renew).

    Raises:
        Stale: somebody else was first.
    """
    return Found(bus.store.replace(found.doc, task.value()), task)


def settle(bus: Bus, found: Found) -> Found:
    """Makes every effect of a task's document that is missing; harmless if none is."""
    task = found.task
    _file_report(bus, task)
    found = put_in_place(bus, found)
    if task.ended:
        ledger.set_done(bus, task.task_id, place(task))
    if task.verdict is not None:
        _finish_verdict(bus, task)
    if dependency.outcome(task):
        waiting.advance_dependents(bus, task.task_id)
    return found


def pending_report(bus: Bus, task_id: str) -> Doc | None:
    """The report that waits for a verdict; an unreadable file counts as none (the task embeds the report)."""
    with suppress(Unreadable):
        return bus.store.get(f"reports/pending/{task_id}")
    return None


def _file_report(bus: Bus, task: Task) -> None:
    """The file in reports/pending/ is the report that the task embeds; another lease's report makes way.

    A file of a later step than the task at hand stays: somebody has gone on meanwhile.
    """
    if task.verdict is not None:
        return
    there = pending_report(bus, task.task_id)
    if there is not None and _step(there.value) > task.step:
        return
    if task.report is None or task.status in (PENDING, IN_PROGRESS):
        if there is not None:
            _to_processed(bus, there)
        return
    if there is None:
        with suppress(Exists):
            bus.store.create(f"reports/pending/{task.task_id}", task.report)
    elif there.value.get("lease_id") != task.report.get("lease_id"):
        keep_stale(bus, there.value)
        with suppress(Stale):
            bus.store.replace(there, task.report)


def keep_stale(bus: Bus, report: dict[str, Any]) -> None:
    """Keeps a report that no longer counts beside the others."""
    lease = str(report.get("lease_id") or "none")
    with suppress(Exists):
        bus.store.create(f"reports/stale/{report['task_id']}.{lease}", report)


def _finish_verdict(bus: Bus, task: Task) -> None:
    there = pending_report(bus, task.task_id)
    if there is None:
        return
    if chains.has_steps(bus, task):
        if stop.is_stopped(bus):
            return  # the verdict stands, the chain waits for resume: the report stays as its mark
        chains.run(bus, task)
    _to_processed(bus, there)


def _step(report: dict[str, Any]) -> int:
    step = report.get("step", 0)
    return step if isinstance(step, int) else 0


def _to_processed(bus: Bus, report: Doc) -> None:
    """A copy under the step that made the report, then the old file goes: a kill between leaves both, and a
    next pass.
    """
    step = report.value.get("step", 0)
    with suppress(Exists):
        bus.store.create(f"reports/processed/{report.name}.{step}", report.value)
    with suppress(Stale):
        bus.store.delete(report)
