"""Many processes at one inbox: nothing twice, nothing lost, also while workers are killed; and how fast."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bench.boxes import TEXT, Box, fill
from bench.measure import Row, Scale, interleave, median
from bench.peers import PEERS

WORKERS, PRODUCERS = 8, 4
_KILL_EVERY_S = 0.4
_PATIENCE_S = 240.0
_PAUSE_S = 0.002


def context() -> Any:
    """Processes that share nothing with this one and start fast: a killed worker's successor must get to work."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["bench.crew"])
    return made


_MAKES = context()


def exactly_once(folder: Path, scale: Scale) -> Iterator[Row]:
    """Eight workers until the inbox is empty: how many tasks were received, reported or archived other than once."""
    yield from _rounds(folder, scale, "", 0.0)


def exactly_once_killed(folder: Path, scale: Scale) -> Iterator[Row]:
    """The same while one of them is killed at random every 0.4 s and replaced."""
    yield from _rounds(folder, scale, ", kill -9", _KILL_EVERY_S)


def _rounds(folder: Path, scale: Scale, words: str, kill_every_s: float) -> Iterator[Row]:
    found: Counter[str] = Counter()
    rates = []
    for number in range(scale.crews):
        root = folder / f"bus{number}"
        box = Box(root, durable=False)
        fill(box, scale.jobs)
        seconds, kills = _crew(root, kill_every_s, number)
        found += _judge(box, scale.jobs)
        found["kills"] += kills
        rates.append(scale.jobs / seconds)
        box.close()
    what = f"{WORKERS} workers × {scale.jobs:,} jobs × {scale.crews}{words}"
    told = f"{found['kills']} kills" if kill_every_s else ""
    yield Row(f"{what}: reported twice", found["twice"], "", None, told, "<=", 0)
    if not kill_every_s:
        yield Row(f"{what}: given out twice", found["given"], "", None, "", "<=", 0)
    yield Row(f"{what}: lost", found["lost"], "", None, told, "<=", 0)
    yield Row(f"{what}: jobs", median(rates), "/s", None, "no fsync")


def _crew(root: Path, kill_every_s: float, seed: int) -> tuple[float, int]:
    """Lets workers work until all have ended; seconds and kills."""
    chance, kills = random.Random(seed), 0
    crew: list[BaseProcess] = [_worker(root) for _ in range(WORKERS)]
    start = time.monotonic()
    due = start + kill_every_s
    while crew and time.monotonic() - start < _PATIENCE_S:
        crew[0].join(timeout=0.02)
        crew = [p for p in crew if p.exitcode is None]
        if kill_every_s and crew and time.monotonic() >= due:
            victim = chance.choice(crew)
            victim.kill()
            victim.join()
            crew = [p for p in crew if p is not victim] + [_worker(root)]
            due, kills = time.monotonic() + kill_every_s * chance.uniform(0.5, 1.5), kills + 1
    for late in crew:
        late.kill()
        late.join()
    return time.monotonic() - start, kills


def _worker(root: Path) -> BaseProcess:
    process: BaseProcess = _MAKES.Process(target=work, args=(root,))
    process.start()
    return process


def work(root: Path) -> None:
    """Receives and reports until the inbox is empty; each act goes to the log once it was answered."""
    box = Box(root, durable=False)
    log = os.open(root.with_suffix(".log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    box.run(_work(box, log))


async def _work(box: Box, log: int) -> None:
    while True:
        task = await box.receive()
        if task is None:
            if not box.bus.store.keys(f"inbox/{box.agent}"):
                return
            await asyncio.sleep(_PAUSE_S)
            continue
        os.write(log, f"given {task['task_id']}\n".encode())
        if box.submit(task):
            os.write(log, f"reported {task['task_id']}\n".encode())


def _judge(box: Box, jobs: int) -> Counter[str]:
    acts = Counter(tuple(line.split()) for line in box.root.with_suffix(".log").read_text().splitlines())
    archived = box.bus.store.keys("archive/2026-03")
    left = box.bus.store.keys(f"inbox/{box.agent}")
    return Counter(
        twice=sum(1 for (act, _), n in acts.items() if act == "reported" and n > 1),
        given=sum(1 for (act, _), n in acts.items() if act == "given" and n > 1),
        lost=abs(jobs - len(set(archived))) + len(left),
    )


def many(folder: Path, scale: Scale) -> Iterator[Row]:
    """Four producers and four workers at once: jobs put, taken and finished a second, both with fsync."""
    count = max(PRODUCERS * 10, scale.jobs // 10)
    numbers = iter(range(1000))

    def side(kind: str) -> float:
        return _pump(folder / f"many{next(numbers)}", kind, count)

    found = interleave({"ours": lambda: side("ours"), "huey": lambda: side("huey-SQLite")}, scale.rounds)
    ours, theirs = median(found["ours"]), median(found["huey"])
    yield Row(f"jobs, {PRODUCERS} producers + {PRODUCERS} workers, fsync", ours, "/s", theirs, "huey-SQLite", ">=", 1.3)


def _pump(root: Path, kind: str, count: int) -> float:
    ready, left = _MAKES.Barrier(2 * PRODUCERS + 1), _MAKES.Value("i", count)
    if kind == "ours":
        Box(root).close()
    else:
        PEERS[kind](root).close()
    each = count // PRODUCERS
    crew = [_MAKES.Process(target=produce, args=(root, kind, each, ready)) for _ in range(PRODUCERS)]
    crew += [_MAKES.Process(target=consume, args=(root, kind, left, ready)) for _ in range(PRODUCERS)]
    for process in crew:
        process.start()
    ready.wait(60)
    start = time.monotonic()
    for process in crew:
        process.join(timeout=_PATIENCE_S)
        process.kill()
    return each * PRODUCERS / (time.monotonic() - start)


def produce(root: Path, kind: str, count: int, ready: Any) -> None:
    """Puts so many jobs."""
    put: Callable[[], object] = Box(root).dispatch if kind == "ours" else partial(PEERS[kind](root).put, TEXT)
    ready.wait(60)
    for _ in range(count):
        put()


def consume(root: Path, kind: str, left: Any, ready: Any) -> None:
    """Takes and finishes jobs until none is left anywhere."""
    if kind == "ours":
        box = Box(root)
        ready.wait(60)
        box.run(_consume(box, left))
        return
    peer = PEERS[kind](root)
    ready.wait(60)
    while left.value > 0:
        job = peer.fetch()
        if job is None:
            time.sleep(_PAUSE_S)
            continue
        peer.finish(job)
        with left.get_lock():
            left.value -= 1


async def _consume(box: Box, left: Any) -> None:
    while left.value > 0:
        task = await box.receive()
        if task is None:
            await asyncio.sleep(_PAUSE_S)
        elif box.submit(task):
            with left.get_lock():
                left.value -= 1
