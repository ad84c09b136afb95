"""One operation is one commit: a verb that is cut off after any of its writes is finished by the next ones, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent_bus.bus import Bus
from agent_bus.domain.task import place, read_task
from agent_bus.jobs import reaper
from agent_bus.operations import find, ledger
from agent_bus.operations.settle import settle
from tests.tools.desk import Desk

WRITES = ("create", "replace", "move", "delete")
CHAIN = '{"next_tasks": [{"target": "a", "instruction": "b"}, {"target": "c", "instruction": "d", "when": "always"}]}'


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(store: Any, number: int) -> Iterator[list[int]]:
    """Ends the process before its n-th write; what it yields counts the writes."""
    count = [0]
    depth: list[str] = []  # a replace that the memory engine makes by a move is one write
    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(store, name, _counted(getattr(store, name), count, number, depth))
        try:
            yield count
        except Killed:
            return


def _counted(real: Callable[..., Any], count: list[int], number: int, depth: list[str]) -> Callable[..., Any]:
    def write(*args: Any, **kwargs: Any) -> Any:
        if not depth:
            count[0] += 1
            if count[0] == number:
                raise Killed
        depth.append("in")
        try:
            return real(*args, **kwargs)
        finally:
            depth.pop()

    return write


def submit(boss: Desk, coder: Desk, task_id: str, **more: Any) -> Callable[[], object]:
    coder.receive_task()
    return lambda: coder.submit_report(task_id, summary="done", **more)


def accept(boss: Desk, coder: Desk, task_id: str, **more: Any) -> Callable[[], object]:
    submit(boss, coder, task_id, **more)()
    boss.share_context(f"task-chain-{task_id}", CHAIN)
    return lambda: boss.acknowledge_report(task_id)


def rework(boss: Desk, coder: Desk, task_id: str) -> Callable[[], object]:
    submit(boss, coder, task_id, needs_review=True)()
    return lambda: boss.acknowledge_report(task_id, "rework", "more")


ACTS: dict[str, Callable[[Desk, Desk, str], Callable[[], object]]] = {
    "submit": submit,
    "submit blocked": lambda b, c, t: submit(b, c, t, status="blocked"),
    "submit for review": lambda b, c, t: submit(b, c, t, needs_review=True),
    "accept": accept,
    "accept review": lambda b, c, t: accept(b, c, t, needs_review=True),
    "accept blocked": lambda b, c, t: accept(b, c, t, status="blocked"),
    "rework": rework,
    "cancel": lambda b, c, t: lambda: b.cancel_task(t),
}


MOST = dict.fromkeys(ACTS, 4) | {"submit": 7, "cancel": 6, "accept": 12, "accept review": 16, "accept blocked": 13}
"""How many writes each has."""


@pytest.mark.req("core:39")
@pytest.mark.parametrize("by", ["reaper", "same call"])
@pytest.mark.parametrize(("name", "number"), [(name, n) for name, most in MOST.items() for n in range(1, most + 1)])
def test_a_verb_that_is_cut_off_is_finished_once(
    bus: Bus, boss: Desk, coder: Desk, name: str, by: str, number: int
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    after = boss.dispatch_task("late", "y", depends_on=[f"{task_id}:always"])["task_id"]
    act = ACTS[name](boss, coder, task_id)
    before = boss.task(task_id)
    with killed_at(bus.store, number) as count:
        act()
    if count[0] < number:
        return  # it has no such write
    committed = find.need(bus, task_id).task.step > before["step"]
    if by == "same call" or not committed:
        act()
    reaper.sweep(bus, bus.now())
    check(bus, boss, task_id)
    once = snapshot(bus)
    settle(bus, find.need(bus, task_id))
    reaper.sweep(bus, bus.now())
    assert snapshot(bus) == once
    ended = find.need(bus, task_id).task.ended
    assert boss.task(after)["status"] == ("pending" if ended else "waiting")


def snapshot(bus: Bus) -> dict[str, Any]:
    """Every document."""
    nested = [f"{top}/{n}" for top in ("inbox", "archive") for n in bus.store.folders(top)]
    flat = ["approvals", "waiting", "dead_letter", "reports/pending", "reports/processed", "reports/stale"]
    return {k: bus.store.get(k) for f in (*nested, *flat) for k in bus.store.keys(f)}


def check(bus: Bus, boss: Desk, task_id: str) -> None:
    """The task is once, in its place, and its report where its verdict puts it."""
    [key] = boss.places(task_id)
    task = read_task(boss.task(task_id))
    assert key == place(task)
    assert (ledger.state(bus, task_id) == ledger.DONE) == task.ended
    waits = task.report is not None and task.verdict is None and task.status != "pending"
    assert bus.store.exists(f"reports/pending/{task_id}") == waits
    reports = [k for k in bus.store.keys("reports/processed") if task_id in k]
    assert len(reports) == (1 if task.verdict or "rework" in [h["event"] for h in task.history] else 0)
    if task.verdict is not None:
        targets = {"completed": {"a", "c"}, "failed": {"c"}}[task.status]
        assert {n for n in ("a", "c") if bus.store.keys(f"inbox/{n}")} == targets
        assert all(len(bus.store.keys(f"inbox/{n}")) == 1 for n in targets)


@pytest.mark.req("core:39")
@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("key", ["", "k"])
def test_a_dispatch_that_is_cut_off_and_repeated_makes_one_task(bus: Bus, boss: Desk, number: int, key: str) -> None:
    with killed_at(bus.store, number) as count:
        boss.dispatch_task("coder", "x", dedupe_key=key)
    cut = count[0] >= number
    reaper.sweep(bus, bus.now())
    if cut and (key or not bus.store.keys("inbox/coder")):
        sent = boss.dispatch_task("coder", "x", dedupe_key=key)
        assert bus.store.keys("inbox/coder") == [f"inbox/coder/{sent['task_id']}"]
    [only] = bus.store.keys("inbox/coder")
    assert boss.list_tasks()["counts"] == {"pending": 1}
    assert Desk(bus).receive_task("coder")["task"]["task_id"] == only.rpartition("/")[2]


@pytest.mark.req("core:39")
@pytest.mark.parametrize("number", range(1, 4))
def test_a_receive_that_is_cut_off_leaves_the_task_to_somebody(bus: Bus, boss: Desk, coder: Desk, number: int) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    with killed_at(bus.store, number):
        coder.receive_task()
    assert coder.receive_task()["task"]["task_id"] == task_id
    assert boss.task(task_id)["attempt"] == 1


@pytest.mark.req("core:39")
@pytest.mark.parametrize("status", ["completed", "blocked"])
@pytest.mark.parametrize("first", [2, 3, 5])
@pytest.mark.parametrize("second", [99, 1, 2, 3, 5, 8, 11])
def test_a_verdict_on_a_report_that_was_cut_off_loses_neither_report_nor_chain(
    bus: Bus, boss: Desk, coder: Desk, status: str, first: int, second: int
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", CHAIN)
    coder.receive_task()
    with killed_at(bus.store, first):
        coder.submit_report(task_id, status=status, summary="done")
    with killed_at(bus.store, second):
        boss.acknowledge_report(task_id)
    if second == 99:
        check(bus, boss, task_id)
    reaper.sweep(bus, bus.now())
    if "accept" not in boss.events(task_id):
        boss.acknowledge_report(task_id)
    check(bus, boss, task_id)
