"""Waiting: how soon a blocked receive wakes, what waiting costs, and a watcher that drops events."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bench.boxes import Box, fill
from bench.crew import context
from bench.measure import Row, Scale, Side, interleave, median, us

_MAKES = context()
_PATIENCE_S = 90.0
_IN_MOVED_TO = 0x80
_FOLDERS = 100


class Waiter:
    """Another process that waits for something and tells when it came, by the one monotonic clock of the machine."""

    def __init__(self, target: Callable[..., None], *args: Any) -> None:
        self._ours, theirs = _MAKES.Pipe()
        self.process: BaseProcess = _MAKES.Process(target=target, args=(theirs, *args), daemon=True)
        self.process.start()
        self.hear()

    def say(self, word: Any) -> None:
        """Sends an order."""
        self._ours.send(word)

    def hear(self) -> Any:
        """Its next answer."""
        if not self._ours.poll(_PATIENCE_S):
            raise TimeoutError("a waiting process does not answer")
        return self._ours.recv()

    def latency(self, act: Callable[[], object], times: int, settle_s: float = 0.03) -> float:
        """The median time from the start of `act` to the waiter's wake-up in seconds."""
        found = []
        for _ in range(times):
            self.say("wait")
            self.hear()
            time.sleep(settle_s)  # it is about to block: what is measured is a wake-up, not a look
            start = time.monotonic()
            act()
            found.append(self.hear() - start)
        return median(found)

    def close(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.join()


def wake(folder: Path, scale: Scale) -> Iterator[Row]:
    """Dispatch in this process, blocked receive in another: from the call of the one to the return of the other."""
    one, hundred, soft = Box(folder / "one"), Box(folder / "hundred"), Box(folder / "soft", durable=False)
    for number in range(_FOLDERS):
        hundred.verbs.dispatch_task(f"other-{number}", "wait", from_agent="boss")
    raw, slow = folder / "raw", folder / "slow"
    raw.mkdir()
    slow.mkdir()
    waiters = {
        "one": (Waiter(wait_receive, one.root, True), one.dispatch),
        "hundred": (Waiter(wait_receive, hundred.root, True), hundred.dispatch),
        "soft": (Waiter(wait_receive, soft.root, False), soft.dispatch),
        "inotify": (Waiter(wait_inotify, raw), lambda: _put(raw)),
        "watchfiles": (Waiter(wait_watchfiles, slow), lambda: _put(slow)),
    }
    for waiter, act in waiters.values():
        waiter.latency(act, 1, settle_s=1.0)  # watchers start with the first wait
    calls = max(5, scale.calls // 5)
    sides: dict[str, Side] = {
        name: lambda pair=pair, n=calls if name != "watchfiles" else 2: pair[0].latency(pair[1], n)  # type: ignore[misc]
        for name, pair in waiters.items()
    }
    found = interleave(sides, scale.rounds)
    for waiter, _ in waiters.values():
        waiter.close()
    ours = {name: us(median(found[name])) for name in waiters}
    low = us(min(found["inotify"]))
    yield Row("wake-up, fsync", ours["one"], "µs", low, "raw inotify, rename", "<=", 4.0)
    yield Row("wake-up, no fsync", ours["soft"], "µs", low, "raw inotify, rename", "<=", 4.0)
    yield Row("wake-up, fsync", ours["one"], "µs", ours["watchfiles"], "watchfiles' default", "<=", 0.1)
    yield Row(f"wake-up, {_FOLDERS} folders", ours["hundred"], "µs", ours["one"], "one folder", "<=", 1.5)
    for box in (one, hundred, soft):
        box.close()


def idle(folder: Path, scale: Scale) -> Iterator[Row]:
    """The processor time of a receive that waits and gets nothing."""
    psutil: Any = importlib.import_module("psutil")
    box = Box(folder / "bus")
    waiter = Waiter(wait_receive, box.root, True)
    waiter.say("wait")
    waiter.hear()
    time.sleep(0.5)
    process = psutil.Process(waiter.process.pid)
    before, start = process.cpu_times(), time.monotonic()
    time.sleep(scale.idle_s)
    after, seconds = process.cpu_times(), time.monotonic() - start
    waiter.close()
    used = (after.user + after.system) - (before.user + before.system)
    yield Row("processor time of a blocked receive", used / seconds * 100, "%", None, "", "<=", 0.5)
    box.close()


def burst(folder: Path, scale: Scale) -> Iterator[Row]:
    """Files from outside while the watcher's queue in the kernel overflows: how many tasks are never given out."""
    box = Box(folder / "bus", durable=False)
    box.dispatch()
    box.run(box.received_p50(1))
    waiter = Waiter(wait_receive, box.root, False)
    task = box.run(box.receive())
    assert task is not None
    box.submit(task)
    waiter.say("all")
    waiter.hear()
    time.sleep(0.5)
    pid = waiter.process.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    fill(box, scale.burst)
    _overflow(box.root / ".bus" / "hints")
    os.kill(pid, signal.SIGCONT)
    found = waiter.hear()
    waiter.close()
    missed = scale.burst - len(set(found))
    yield Row(f"burst of {scale.burst:,} files, watcher overflowed: missed", missed, "", None, "", "<=", 0)
    yield Row("  given out twice", len(found) - len(set(found)), "", None, "", "<=", 0)
    box.close()


def wait_receive(pipe: Connection, root: Path, durable: bool) -> None:
    """Order `wait`: one blocked receive, answers when it returned. Order `all`: takes everything, answers the ids."""
    box = Box(root, durable)
    pipe.send("ready")
    box.run(_wait_receive(box, pipe))


async def _wait_receive(box: Box, pipe: Connection) -> None:
    while True:
        order = pipe.recv()
        pipe.send("waiting")
        task = await box.receive(50)
        when = time.monotonic()
        taken = []
        while order == "all" and task is not None:
            taken.append(task["task_id"])
            box.submit(task)
            task = await box.receive()
        pipe.send(when if order == "wait" else taken)
        if task is not None:
            box.submit(task)


def wait_inotify(pipe: Connection, folder: Path) -> None:
    """The limit: a blocking read of the kernel's own events."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(0)
    libc.inotify_add_watch(handle, os.fsencode(folder), _IN_MOVED_TO)
    pipe.send("ready")
    while True:
        pipe.recv()
        pipe.send("waiting")
        os.read(handle, 4096)
        pipe.send(time.monotonic())


def wait_watchfiles(pipe: Connection, folder: Path) -> None:
    """The peer: watchfiles with its own defaults."""
    changes: Any = importlib.import_module("watchfiles").watch(folder)
    pipe.send("ready")
    while True:
        pipe.recv()
        pipe.send("waiting")
        next(changes)
        pipe.send(time.monotonic())


def _put(folder: Path) -> None:
    """One document by write and rename from another folder."""
    temp = folder.with_suffix(".tmp")
    temp.write_bytes(b"x" * 500)
    os.rename(temp, folder / f"{time.monotonic_ns()}.json")


def _overflow(folder: Path) -> None:
    """More events than the kernel keeps for a watcher; two files in turn, as equal neighbours become one."""
    limit = Path("/proc/sys/fs/inotify/max_queued_events")
    count = int(limit.read_text()) if limit.exists() else 0
    names = [folder / "overflow-1", folder / "overflow-2"]
    with contextlib.ExitStack() as stack:
        handles = [stack.enter_context(open(name, "ab", buffering=0)) for name in names]
        for number in range(count + 1000):
            handles[number % 2].write(b"x")
    for name in names:
        name.unlink()
