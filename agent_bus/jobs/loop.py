"""The tick scheduler: runs jobs until it is told to end. A job does what is due and says when it wants to be
called again.

Each job has a thread of its own, so a slow one (a webhook that hangs) delays no other; a failing one is logged
and backed off. Hints wake jobs early. Two supervisors at once are harmless, as every job is idempotent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from agent_bus.bus import Bus
from agent_bus.store import records

log = logging.getLogger(__name__)
Tick = Callable[[Bus, datetime], float]
GAP_S = 0.02
"""Least time between two ticks of a job: a job's own writes are hints too."""
BACKOFF_S, BACKOFF_MAX_S = 1.0, 60.0
HEARTBEAT_S = 5.0


@dataclass
class Job:
    """A job by name; `hinted` jobs are woken by every hint, others run by their own timer only."""

    name: str
    tick: Tick
    hinted: bool = True
    failures: int = 0
    last_error: str = ""
    _beat_at: float = field(default=float("-inf"), repr=False)


class Loop:
    """Runs a set of jobs over one bus.

    Args:
        bus: the open bus.
        jobs: what to run.
    """

    def __init__(self, bus: Bus, jobs: Sequence[Job]) -> None:
        self._bus = bus
        self._jobs = jobs
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts every job on its thread."""
        for job in self._jobs:
            thread = threading.Thread(target=self._run, args=(job,), name=f"job-{job.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def wait(self) -> None:
        """Returns when `end` was called."""
        while not self._ending.wait(0.5):  # a bounded wait lets signal handlers run
            pass

    def end(self, within_s: float = 5.0) -> list[str]:
        """Lets every running tick finish and ends; names of jobs that did not in time."""
        self._ending.set()
        for thread in self._threads:
            thread.join(within_s)
        for job in self._jobs:
            if self._bus.layout is not None:
                records.remove(self._bus.layout, record_name(job.name))
        return [t.name for t in self._threads if t.is_alive()]

    def _run(self, job: Job) -> None:
        wake = threading.Event()
        with suppress(RuntimeError), self._bus.watch.subscribe(wake.set if job.hinted else lambda: None):
            while not self._ending.is_set():
                wake.clear()
                delay = run_once(self._bus, job)
                self._beat(job)
                self._sleep(wake, delay)

    def _sleep(self, wake: threading.Event, delay: float) -> None:
        self._ending.wait(GAP_S)
        left = max(0.0, delay - GAP_S)
        while left > 0 and not self._ending.is_set():
            step = min(left, 0.5)  # so that the end is seen soon
            if wake.wait(step):
                return
            left -= step

    def _beat(self, job: Job) -> None:
        """The job's sign of life, for system_health."""
        if self._bus.layout is None or self._bus.clock.boot_s() - job._beat_at < HEARTBEAT_S:
            return
        job._beat_at = self._bus.clock.boot_s()
        value = {"job": job.name, "last_tick": self._bus.stamp(), "failures": job.failures, "error": job.last_error}
        with suppress(OSError):
            records.write(self._bus.layout, record_name(job.name), value)


def record_name(job: str) -> str:
    """The name of a job's record in `.bus/run/`."""
    return f"job-{job}"


def run_once(bus: Bus, job: Job) -> float:
    """One tick with its failure contained; seconds until the next."""
    try:
        delay = job.tick(bus, bus.now())
    except Exception as error:  # the one place where a job's fault ends: its neighbours go on
        job.failures += 1
        job.last_error = f"{type(error).__name__}: {error}"[:300]
        log.exception("job %s failed (%d in a row)", job.name, job.failures)
        return min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** min(job.failures - 1, 10))
    job.failures, job.last_error = 0, ""
    return delay
