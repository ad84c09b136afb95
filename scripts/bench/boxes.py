"""Buses to measure: a fresh folder, its verbs in short words, and thousands of tasks written straight to disk."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from agent_bus import Bus, Caller, Settings, bind, open_bus

T = TypeVar("T")
AGENT = "coder"
TEXT = (
    "Read the module that parses settings and write tests for the cases it does not cover yet: a missing file, "
    "an unknown key, a number that is too large. Keep to the names that the other tests use. Run the suite before "
    "you report, and list the files you changed. If something in the specification is unclear, say so in the summary "
    "instead of guessing; the sender will answer. Do not touch the public interface, as other agents work on it now."
)
"""An ordinary instruction, about 450 bytes: the gate reads every word of it."""
_DAY = "20260301"
_A_SECOND = 900


class Box:
    """One open bus as a long-lived server has it: the caller is this process.

    Args:
        root: its folder, made if missing.
        durable: fsync on or off.
    """

    def __init__(self, root: Path, durable: bool = True, agent: str = AGENT) -> None:
        root.mkdir(parents=True, exist_ok=True)
        settings = Settings(root=str(root), durability="full" if durable else "none")
        self.root = root
        self.bus: Bus = open_bus(settings, Caller(agent="", channel="mcp", process=True))
        self.verbs = bind(self.bus)
        self.agent = agent
        self._loop = asyncio.new_event_loop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end; all on one loop, as in a server."""
        return self._loop.run_until_complete(work)

    def dispatch(self) -> str:
        """Puts a task into the inbox; its id."""
        return str(self.verbs.dispatch_task(self.agent, TEXT, from_agent="boss").task_id)

    async def receive(self, wait_s: int = 0) -> dict[str, Any] | None:
        """Takes a task; None if there is none."""
        found = await self.verbs.receive_task(self.agent, wait_s=wait_s)
        return {"lease_id": found.lease_id, "queued": found.queue_length, **found.task} if found.task else None

    def submit(self, task: dict[str, Any]) -> bool:
        """Reports a task as completed; whether this report counted, and was the first."""
        done = self.verbs.submit_report(
            task["task_id"], self.agent, "completed", "All cases are covered now.", lease_id=task["lease_id"]
        )
        return bool(done.accepted and not done.duplicate)

    async def received_p50(self, calls: int) -> float:
        """The median time of one receive in seconds; what is taken is reported and replaced, not timed."""
        times = []
        for _ in range(calls):
            start = time.perf_counter()
            task = await self.receive()
            times.append(time.perf_counter() - start)
            assert task is not None
            self.submit(task)
            self.dispatch()
        return sorted(times)[calls // 2]

    def close(self) -> None:
        """Closes bus and loop."""
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self.bus.close()


def fill(box: Box, count: int, archived: bool = False) -> None:
    """Writes so many tasks straight to disk with their ledger entries, as if they had been dispatched long ago.

    Args:
        box: an open bus; its processes see the files at their next listing.
        count: how many.
        archived: True writes tasks that have ended, into the archive.
    """
    sample = _sample(box)
    folder = box.root / ("archive/2026-03" if archived else f"inbox/{box.agent}")
    ledger = box.root / ".bus" / "ledger" / _DAY
    entry = {"state": "done" if archived else "live", "sha256": sample.pop("_sha256")}
    for made in (folder, ledger):
        made.mkdir(parents=True, exist_ok=True)
    if archived:
        sample |= {"status": "completed"}
    for number in range(count):
        task_id = _task_id(number)
        created = f"2026-03-01T{task_id[11:13]}:{task_id[13:15]}:{task_id[15:17]}.000Z"
        _write(folder / f"{task_id}.json", {**sample, "task_id": task_id, "created_at": created})
        place = f"{folder.relative_to(box.root).as_posix()}/{task_id}"
        _write(ledger / f"{task_id}.json", {**entry, "place": place})


def _sample(box: Box) -> dict[str, Any]:
    """A task's document as the bus writes it, and the fingerprint that passed the gate; the task is gone afterwards."""
    other = Box(box.root.parent / f"{box.root.name}-sample", durable=False, agent=box.agent)
    task_id = other.dispatch()
    doc = other.bus.store.get(f"inbox/{box.agent}/{task_id}")
    entry = other.bus.store.get(f".bus/ledger/{task_id[2:10]}/{task_id}")
    other.close()
    assert doc is not None
    assert entry is not None
    return {**doc.value, "_sha256": entry.value["sha256"]}


def _task_id(number: int) -> str:
    second, place = divmod(number, _A_SECOND)
    return f"t-{_DAY}-{time.strftime('%H%M%S', time.gmtime(second))}-{place + 1:03d}"


def _write(path: Path, value: dict[str, Any]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(handle, json.dumps(value, indent=2).encode() + b"\n")
    os.close(handle)
