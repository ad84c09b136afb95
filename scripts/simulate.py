"""24 simulated hours of the jobs on one bus, on a clock that is moved: `scripts/simulate.py [--hours N] [--seed N]`.

200 tasks an hour, twelve workers, one attempt in twenty abandoned without a word. Prints what each hour cost; ends with
1 if a task did not end, or if open files grew. Run by hand, with the environment of the tests.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import psutil

from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.commands import find, run, run_sync
from agent_bus.jobs import reaper
from agent_bus.jobs.orchestrator import Orchestrator
from agent_bus.settings import Settings

STEP_S = 30
PER_HOUR = 200
WORKERS = 12


@dataclass
class Worker:
    """One worker: the task in its hands, and how many steps it still takes."""

    number: int
    life: int = 0
    task: dict[str, Any] = field(default_factory=dict)
    left: int = 0

    def caller(self) -> Caller:
        """Who calls: a session that ends with an abandoned task."""
        return Caller(agent="coder", channel="http", session=f"{self.number}-{self.life}")


def call(bus: Bus, verb: str, **given: Any) -> dict[str, Any]:
    """A verb's answer."""
    command = find(verb)
    if command.is_async:

        async def wait() -> Any:
            return await run(bus, command, given)

        return dict(anyio.run(wait).model_dump())
    return dict(run_sync(bus, command, given).model_dump())


def work(bus: Bus, worker: Worker, chance: random.Random) -> None:
    """One step of a worker."""
    mine = bus.called_by(worker.caller())
    if not worker.task:
        got = call(mine, "receive_task", agent_name="coder")
        if got["task"]:
            worker.task, worker.left = got, chance.randint(1, 6)
        return
    worker.left -= 1
    if worker.left:
        return
    if chance.random() < 0.05:
        worker.life += 1  # gone without a word: only the lease's time ends it
    else:
        status = "failed" if chance.random() < 0.1 else "completed"
        task_id, lease = worker.task["task"]["task_id"], worker.task["lease_id"]
        call(mine, "submit_report", task_id=task_id, status=status, summary="done", lease_id=lease)
    worker.task = {}


def jobs(bus: Bus, orchestrator: Orchestrator) -> float:
    """One tick of every job; milliseconds."""
    start = time.perf_counter()
    orchestrator.scan(bus)
    reaper.sweep(bus, bus.now())
    return (time.perf_counter() - start) * 1000


def simulate(hours: int, seed: int, folder: Path) -> int:
    """Runs it; 0 if every task ended and nothing grew that must not."""
    chance, clock = random.Random(seed), ManualClock(datetime(2026, 3, 7, tzinfo=UTC))
    bus = open_bus(Settings(root=str(folder), durability="none"), Caller(agent="boss"), clock)
    orchestrator, workers, me = Orchestrator(10.0), [Worker(n) for n in range(WORKERS)], psutil.Process()
    sent, due, first_files = 0, 0.0, 0
    print("hour   sent   tick ms (median, worst)   memory MiB   open files")
    for hour in range(1, hours + 1):
        ticks = []
        for _ in range(3600 // STEP_S):
            due += PER_HOUR * STEP_S / 3600
            while due >= 1:
                due, sent = due - 1, sent + 1
                chain = {"next_tasks": [{"target": "coder", "instruction": "and after it"}]} if sent % 10 == 0 else {}
                options = {**chain, "max_attempts": 20}
                call(bus, "dispatch_task", target="coder", instruction=f"task {sent}", options=options)
            for worker in workers:
                work(bus, worker, chance)
            clock.advance(STEP_S)
            ticks.append(jobs(bus, orchestrator))
        files = me.num_fds() if hasattr(me, "num_fds") else 0
        first_files = first_files or files
        size = me.memory_info().rss / 1_048_576
        print(
            f"{hour:4} {sent:6} {statistics.median(ticks):13.1f} {max(ticks):9.1f} {size:12.1f} {files:12}", flush=True
        )
    drain(bus, workers, clock, orchestrator, chance)
    ended = Counter(
        d.value["status"] for month in bus.store.folders("archive") for d in bus.store.list(f"archive/{month}")
    )
    open_ones = call(bus, "list_tasks")["counts"]
    print(f"ended: {dict(ended)}; open: {open_ones}; open files {first_files} -> {files}")
    bus.close()
    return 0 if not open_ones and sum(ended.values()) >= sent and files <= first_files + 5 else 1


def drain(
    bus: Bus, workers: list[Worker], clock: ManualClock, orchestrator: Orchestrator, chance: random.Random
) -> None:
    """Lets the workers finish what is left, at most four more hours."""
    for _ in range(4 * 3600 // STEP_S):
        for worker in workers:
            work(bus, worker, chance)
        clock.advance(STEP_S)
        jobs(bus, orchestrator)
        if not call(bus, "list_tasks")["counts"] and not bus.store.keys("reports/pending"):
            return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent-bus-day-") as place:
        sys.exit(simulate(words.hours, words.seed, Path(place)))
