"""Dispatch, receive and report in one process: against bare system calls, against other queues, and as folders grow."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.bare import Bare
from bench.boxes import TEXT, Box, fill
from bench.measure import Row, Scale, Side, each, interleave, median, p50, us
from bench.peers import PEERS, Peer

_SOFT, _HARD = "no fsync", "fsync"
_COSTLY = 5
"""Fetches a round of a queue that reads its whole folder each time."""


def dispatch(folder: Path, scale: Scale) -> Iterator[Row]:
    """Dispatch against the limit, with and without fsync, and against what other queues take to enqueue."""
    hard, soft = Box(folder / "hard"), Box(folder / "soft", durable=False)
    bare_hard, bare_soft = Bare(folder / "bare-hard", True), Bare(folder / "bare-soft", False)
    with _peers(folder, ["huey-SQLite", "huey-file", "litequeue", "persist-queue", "kombu, filesystem"]) as peers:
        acts: dict[str, Callable[[], object]] = {
            "hard": hard.dispatch,
            "soft": soft.dispatch,
            "hard same": bare_hard.dispatch,
            "hard one": bare_hard.document,
            "soft same": bare_soft.dispatch,
            "soft one": bare_soft.document,
            **{name: partial(peer.put, TEXT) for name, peer in peers.items()},
        }
        found = interleave({name: partial(p50, act, scale.calls) for name, act in acts.items()}, scale.rounds)
    hard_us, soft_us = us(median(found["hard"])), us(median(found["soft"]))
    for kind, ours, limit in ((_HARD, hard_us, 1.5), (_SOFT, soft_us, 3.0)):
        low = {n: us(min(found[f"{'hard' if kind == _HARD else 'soft'} {n}"])) for n in ("same", "one")}
        yield Row(f"dispatch, {kind}", ours, "µs", low["same"], "bare, same documents", "<=", limit)
        yield Row(f"dispatch, {kind}", ours, "µs", low["one"], "bare, one document", "<=", limit)
    yield Row("dispatch, no fsync", soft_us, "µs", us(median(found["huey-file"])), "huey-file enqueue", "<=", 1.5)
    rate = 1 / median(found["huey-SQLite"])
    yield Row("dispatch, fsync", 1e6 / hard_us, "/s", rate, "huey-SQLite enqueue", ">=", 0.4)
    for name in ("litequeue", "persist-queue", "kombu, filesystem"):
        yield Row("dispatch, no fsync", soft_us, "µs", us(median(found[name])), f"{name} put")
    _close(hard, soft, bare_hard, bare_soft)


def dispatch_growth(folder: Path, scale: Scale) -> Iterator[Row]:
    """Dispatch into a full inbox against an empty one."""
    empty, full = Box(folder / "empty"), Box(folder / "full")
    fill(full, scale.deep)
    sides: dict[str, Side] = {
        "empty": partial(p50, empty.dispatch, scale.calls),
        "full": partial(p50, full.dispatch, scale.calls),
    }
    found = {name: us(median(times)) for name, times in interleave(sides, scale.rounds).items()}
    yield Row(f"dispatch, {scale.deep:,} queued", found["full"], "µs", found["empty"], "empty inbox", "<=", 1.5)
    empty.close()
    full.close()


def receive(folder: Path, scale: Scale) -> Iterator[Row]:
    """A long-lived server's receive at three depths against the limit, and against other queues at one depth."""
    depths = {"empty": 0, "depth": scale.depth, "deep": scale.deep}
    boxes = {name: Box(folder / name) for name in depths}
    boxes["soft"] = Box(folder / "soft", durable=False)
    for name, box in boxes.items():
        fill(box, depths.get(name, 0))
        box.dispatch()
        box.run(box.received_p50(2))
    bare_hard, bare_soft = Bare(folder / "bare-hard", True), Bare(folder / "bare-soft", False)
    names = ["huey-SQLite", "huey-file", "litequeue", "persist-queue", "naive JSON bus"]
    with _peers(folder, names) as peers:
        for peer in peers.values():
            for _ in range(scale.depth):
                peer.put(TEXT)
        sides: dict[str, Side] = {n: partial(_received, box, scale.calls) for n, box in boxes.items()}
        sides["bare hard"] = partial(p50, bare_hard.receive, scale.calls)
        sides["bare soft"] = partial(p50, bare_soft.receive, scale.calls)
        sides |= {n: partial(_fetched, peer) for n, peer in peers.items()}
        found = interleave(sides, scale.rounds)
    ours = {name: us(median(found[name])) for name in boxes}
    yield Row("receive, fsync", ours["empty"], "µs", us(min(found["bare hard"])), "bare read and write", "<=", 6.0)
    yield Row("receive, no fsync", ours["soft"], "µs", us(min(found["bare soft"])), "bare read and write", "<=", 6.0)
    goals = {"huey-file": 20.0, "litequeue": 10.0, "naive JSON bus": 300.0}
    for name in names:
        sense = ">=" if name in goals else ""
        rate = 1 / median(found[name])
        what = f"receive, {scale.depth:,} queued"
        yield Row(what, 1e6 / ours["depth"], "/s", rate, name, sense, goals.get(name, 0.0))
    yield Row(f"receive, {scale.deep:,} queued", ours["deep"], "µs", ours["empty"], "empty inbox", "<=", 1.6)
    _close(*boxes.values(), bare_hard, bare_soft)


def submit(folder: Path, scale: Scale) -> Iterator[Row]:
    """A report against the limit, and with many tasks queued or archived."""
    boxes = {"empty": Box(folder / "empty"), "queued": Box(folder / "queued"), "archived": Box(folder / "archived")}
    fill(boxes["queued"], scale.deep)
    fill(boxes["archived"], scale.deep, archived=True)
    for box in boxes.values():
        box.dispatch()
        box.run(box.received_p50(2))
    bare = Bare(folder / "bare", True)
    sides: dict[str, Side] = {n: partial(_submitted, box, scale.calls) for n, box in boxes.items()}
    sides["same"] = partial(p50, bare.submit, scale.calls)
    sides["one"] = partial(p50, bare.document, scale.calls)
    found = interleave(sides, scale.rounds)
    ours = {name: us(median(found[name])) for name in boxes}
    for name, words in (("same", "bare, same documents"), ("one", "bare, one document")):
        yield Row("submit_report, fsync", ours["empty"], "µs", us(min(found[name])), words, "<=", 2.5)
    for name in ("queued", "archived"):
        yield Row(f"submit_report, {scale.deep:,} {name}", ours[name], "µs", ours["empty"], "empty bus", "<=", 1.5)
    _close(*boxes.values(), bare)


def whole_job(folder: Path, scale: Scale) -> Iterator[Row]:
    """One whole job in one process: put, taken and finished."""
    hard = Box(folder / "hard")
    with _peers(folder, ["huey-SQLite"]) as peers:
        huey = peers["huey-SQLite"]
        sides: dict[str, Side] = {
            "ours": lambda: hard.run(_jobs(hard, scale.calls)),
            "huey": partial(each, partial(_huey_job, huey), scale.calls),
        }
        found = interleave(sides, scale.rounds)
    ours, theirs = 1 / median(found["ours"]), 1 / median(found["huey"])
    yield Row("jobs in one process, fsync", ours, "/s", theirs, "huey-SQLite", ">=", 0.4)
    hard.close()


def _close(*things: Box | Bare) -> None:
    for thing in things:
        thing.close()


async def _jobs(box: Box, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        box.dispatch()
        task = await box.receive()
        assert task is not None
        box.submit(task)
    return (time.perf_counter() - start) / calls


def _huey_job(huey: Peer) -> None:
    huey.put(TEXT)
    huey.finish(huey.fetch())


def _fetched(peer: Peer) -> float:
    """The median time of one fetch; the job is finished and replaced after it, not timed."""
    times = []
    for _ in range(_COSTLY):
        start = time.perf_counter()
        job = peer.fetch()
        times.append(time.perf_counter() - start)
        if job is None:
            raise RuntimeError(f"{type(peer).__name__}: a queue that was filled gave nothing")
        peer.finish(job)
        peer.put(TEXT)
    return median(times)


def _received(box: Box, calls: int) -> float:
    return box.run(box.received_p50(calls))


def _submitted(box: Box, calls: int) -> float:
    """The median time of a report; the tasks are received before, and replaced after it."""
    taken: list[dict[str, object]] = []

    def one_more() -> None:
        box.dispatch()
        task = box.run(box.receive())
        assert task is not None
        taken.append(task)

    one_more()
    found = p50(lambda: box.submit(taken.pop()), calls, one_more)
    box.submit(taken.pop())
    return found


@contextmanager
def _peers(folder: Path, names: list[str]) -> Iterator[dict[str, Peer]]:
    peers = {name: PEERS[name](folder / f"peer-{name}") for name in names}
    try:
        yield peers
    finally:
        for peer in peers.values():
            peer.close()
        for name in names:
            shutil.rmtree(folder / f"peer-{name}", ignore_errors=True)
