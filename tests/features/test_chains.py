"""Chains: which steps run, once each, and what is refused."""

import json
from typing import Any

import pytest

from agent_bus.bus import Bus
from agent_bus.operations import dispatch
from tests.tools.desk import Desk, refused


def step(target: str, **more: Any) -> dict[str, Any]:
    return {"target": target, "instruction": f"for {target}", **more}


def chain(*steps: dict[str, Any]) -> str:
    return json.dumps({"next_tasks": steps})


def run(boss: Desk, coder: Desk, task_id: str, status: str = "completed") -> list[str]:
    """Works on a task, acknowledges it, and gives what its chain dispatched."""
    assert coder.receive_task()["task"]["task_id"] == task_id
    coder.submit_report(task_id, status=status, summary="done", artifacts=["a.py"])
    return list(boss.acknowledge_report(task_id)["dispatched"])


WHEN = chain(step("a"), step("b", when="failed"), step("c", when="always"), step("d", when="completed"))


@pytest.mark.parametrize(
    ("status", "targets"), [("completed", ["a", "c", "d"]), ("failed", ["b", "c"]), ("blocked", ["b", "c"])]
)
def test_the_steps_that_fit_the_end_are_dispatched(boss: Desk, coder: Desk, status: str, targets: list[str]) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", WHEN)
    sent = [boss.task(t) for t in run(boss, coder, task_id, status)]
    assert [t["to"] for t in sent] == targets
    assert {t["parent"] for t in sent} == {task_id}
    assert sent[0]["context"]["previous"] == {
        "task_id": task_id, "status": status, "summary": "done", "artifacts": ["a.py"],
    }  # fmt: skip


def test_a_chains_key_is_one_in_whatever_letters(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    with refused("invalid"):
        boss.share_context(f"TASK-Chain-{task_id}", '{"next_tasks": 3}')
    assert boss.share_context(f"TASK-Chain-{task_id.upper()}", chain(step("a")))["key"] == f"task-chain-{task_id}"
    assert [boss.task(t)["to"] for t in run(boss, coder, task_id, "completed")] == ["a"]


def test_a_chain_may_ride_in_the_options_and_shared_context_wins(boss: Desk, coder: Desk) -> None:
    options = json.dumps({"next_tasks": [step("a")]})
    one, two = (boss.dispatch_task("coder", "x", options=options)["task_id"] for _ in range(2))
    boss.share_context(f"task-chain-{two}", chain(step("b")))
    assert [boss.task(t)["to"] for t in run(boss, coder, one)] == ["a"]
    assert [boss.task(t)["to"] for t in run(boss, coder, two)] == ["b"]


def test_nested_chains_go_on_with_their_own_results(boss: Desk, coder: Desk) -> None:
    options = json.dumps({"next_tasks": [step("coder", priority="high", next_tasks=[step("coder", context="mine")])]})
    first = boss.dispatch_task("coder", "x", options=options)["task_id"]
    [second] = run(boss, coder, first)
    assert boss.task(second)["priority"] == "high"
    [third] = run(boss, coder, second)
    value = boss.task(third)
    assert value["context"]["text"] == "mine"
    assert value["context"]["previous"]["task_id"] == second
    assert run(boss, coder, third) == []


@pytest.mark.parametrize("context", [{"k": 1}, "text", None])
def test_the_result_before_is_data_beside_the_steps_own_context(boss: Desk, coder: Desk, context: Any) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", chain(step("a", context=context)))
    [sent] = run(boss, coder, task_id)
    got = boss.task(sent)["context"]
    own = {k: v for k, v in got.items() if k != "previous"}
    assert own == ({} if context is None else context if isinstance(context, dict) else {"text": context})


def test_risky_words_in_a_result_are_no_order(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", chain(step("a")))
    coder.receive_task()
    coder.submit_report(task_id, summary="I did not delete the production database")
    [sent] = boss.acknowledge_report(task_id)["dispatched"]
    assert boss.task(sent)["status"] == "pending"


def test_a_chain_written_after_the_acknowledgement_runs_at_its_write_once(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    assert run(boss, coder, task_id) == []
    [sent] = boss.share_context(f"task-chain-{task_id}", chain(step("a")))["dispatched"]
    assert boss.task(sent)["to"] == "a"
    assert boss.share_context(f"task-chain-{task_id}", chain(step("b")))["dispatched"] == [sent]
    assert bus.store.keys("inbox/b") == []
    assert boss.acknowledge_report(task_id)["dispatched"] == [sent]


def test_a_chain_that_is_none_is_refused_at_its_write(boss: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    key = f"task-chain-{task_id}"
    for bad in (
        "words",
        "{}",
        '{"next_tasks": 1}',
        chain({"target": "a"}),
        chain(step("../x")),
        chain(step("a", odd=1)),
    ):
        with refused("invalid"):
            boss.share_context(key, bad)
    with refused("invalid", "next_tasks[1].when"):
        boss.share_context(key, chain(step("a"), step("b", when="never")))
    with refused("not_found", "t-20260307-120000-999"):
        boss.share_context("task-chain-t-20260307-120000-999", chain(step("a")))
    with refused("invalid", "task id"):
        boss.share_context("task-chain-x", chain(step("a")))
    with refused("too_large", "201", "200"):
        boss.share_context(key, chain(*[{"target": "a", "instruction": "b"}] * 201))
    deep = step("a")
    for _ in range(20):
        deep = step("a", next_tasks=[deep])
    with refused("too_large", "21", "20"):
        boss.share_context(key, chain(deep))
    with refused("not_found"):
        boss.get_shared_context(key)


def test_chains_that_feed_themselves_end_after_twenty_levels(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    levels = 0
    while True:
        boss.share_context(f"task-chain-{task_id}", chain(step("coder")))
        sent = run(boss, coder, task_id)
        if not sent:
            break
        [task_id] = sent
        levels += 1
        assert levels <= 20
    assert levels == 20


def test_chains_of_one_root_end_after_two_hundred_tasks(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", chain(step("coder"), *[{"target": "a", "instruction": "b"}] * 150))
    sent = run(boss, coder, task_id)
    assert len(sent) == 151
    boss.share_context(f"task-chain-{sent[0]}", chain(*[{"target": "a", "instruction": "b"}] * 50))
    assert run(boss, coder, sent[0]) == []
    assert len(bus.store.keys("inbox/a")) == 150


def test_a_step_that_is_refused_for_good_does_not_hold_up_the_others(
    boss: Desk, coder: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", chain(step("a", context="\x01" * 40_000), step("b")))
    monkeypatch.setattr(dispatch, "ORDER_BYTES", 100_000)
    coder.receive_task()
    coder.submit_report(task_id, summary="done")
    done = boss.acknowledge_report(task_id)
    assert [boss.task(t)["to"] for t in done["dispatched"]] == ["b"]
    assert boss.acknowledge_report(task_id)["dispatched"] == done["dispatched"]
