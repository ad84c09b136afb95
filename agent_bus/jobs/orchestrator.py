"""The orchestrator: acknowledges what needs no person, so that chains go on by themselves (docs/protocol.md "Chains").

| report                  | what it does                                              |
|-------------------------|-----------------------------------------------------------|
| completed, no review    | acknowledges; the chain's steps run with it               |
| completed, needs review | nothing: a person or the sender decides                   |
| failed                  | acknowledges; steps for failed or always run with it      |
| blocked, dead letter    | nothing: it stays open for a person                       |

Every act is one that acknowledge_report would do, so any number of orchestrators, and kills of them, end in one.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain.task import DEAD_LETTER, Task
from agent_bus.errors import BusError
from agent_bus.operations import find, finish, settle, stop
from agent_bus.store.port import Doc, Feed, Unreadable

log = logging.getLogger(__name__)
EVERY_S = 10.0
_AGAIN_S = 1.0
BY = "orchestrator"


class OrchestratorReport(BaseModel):
    """What one pass did, by task id."""

    acknowledged: list[str] = []
    finished: list[str] = []
    waiting: list[str] = []
    problems: list[str] = []


class Orchestrator:
    """Keeps its place in the stream of reports between ticks.

    Args:
        interval_s: seconds between full looks at the folder; hints come in between.
    """

    def __init__(self, interval_s: float = EVERY_S) -> None:
        self._interval_s = interval_s
        self._feed: Feed | None = None
        self._full_at = float("-inf")
        self._open: set[str] = set()

    def tick(self, bus: Bus, now: datetime) -> float:
        """See `jobs.loop`: one pass; by itself at every interval."""
        done = self.scan(bus)
        return _AGAIN_S if done.problems else self._interval_s

    def scan(self, bus: Bus) -> OrchestratorReport:
        """One pass over new reports; at each interval over all of them."""
        bus.check_writable()
        done = OrchestratorReport()
        for name in sorted(self._names(bus)):
            try:
                _decide(bus, name, done)
            except (BusError, Unreadable) as error:
                done.problems.append(f"{name}: {error}")
                log.warning("orchestrator: %s: %s", name, error)
        self._open |= {p.partition(":")[0] for p in done.problems}
        return done

    def _names(self, bus: Bus) -> set[str]:
        if self._feed is None:
            self._feed = bus.store.feed("reports/pending")
        full = bus.clock.boot_s() - self._full_at >= self._interval_s
        names = {k.rpartition("/")[2] for k, doc in self._feed.poll(full) if isinstance(doc, Doc)} | self._open
        self._open.clear()
        if full:
            self._full_at = bus.clock.boot_s()
            names |= {k.rpartition("/")[2] for k in bus.store.keys("reports/pending")}
        return {n for n in names if ids.is_task_id(n)}


def _decide(bus: Bus, task_id: str, done: OrchestratorReport) -> None:
    found = find.find(bus, task_id)
    if found is None:
        done.waiting.append(task_id)
    elif found.task.verdict is not None or found.task.report is None:
        settle.settle(bus, found)  # an acknowledgement or rework that was cut short, or a chain that waited for resume
        done.finished.append(task_id)
    elif needs_nobody(found.task):
        if stop.is_stopped(bus):
            done.waiting.append(task_id)
            return
        finish.judge(bus, task_id, "accept", "", BY)
        done.acknowledged.append(task_id)
    else:
        done.waiting.append(task_id)


def needs_nobody(task: Task) -> bool:
    """Whether a report may be acknowledged without a person."""
    report: dict[str, Any] = task.report or {}
    return task.ended and task.status != DEAD_LETTER and report.get("status") in ("completed", "failed")
