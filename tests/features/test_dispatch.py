"""Dispatching: what is written, what is refused, what waits."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.operations import find, ledger, recover
from agent_bus.operations.settle import write
from agent_bus.times import stamp
from tests.tools.buses import BOSS, NOON, Make
from tests.tools.desk import Desk, Server, refused

SEED_KEYS = ["task_id", "from", "to", "instruction", "priority", "context", "status", "created_at"]


def in_s(seconds: float) -> str:
    return stamp(NOON + timedelta(seconds=seconds))


def everything(bus: Bus) -> list[str]:
    """All keys of tasks and of the ledger."""
    folders = [f"{top}/{n}" for top in ("inbox", "archive", ".bus/ledger") for n in bus.store.folders(top)]
    return [k for f in (*folders, "approvals", "waiting", "dead_letter") for k in bus.store.keys(f)]


@pytest.mark.req("core:1")
def test_a_dispatch_writes_a_pending_task_with_the_seed_keys_first(boss: Desk) -> None:
    sent = boss.dispatch_task("coder", "x")
    assert sent["status"] == "pending"
    assert re.fullmatch(r"t-\d{8}-\d{6}-\d{3,}", sent["task_id"])
    value = boss.doc(f"inbox/coder/{sent['task_id']}")
    assert list(value)[:8] == SEED_KEYS
    assert value | {"status": "pending", "created_at": "2026-03-07T12:00:00.000Z", "from": "boss"} == value


@pytest.mark.req("core:2")
def test_processes_that_dispatch_at_once_get_different_ids(live: Bus, server: Callable[..., Server]) -> None:
    servers = [server(BOSS) for _ in range(4)]
    for one in servers:
        one.send({"do": "dispatch", "count": 50})
    sent = [task_id for one in servers for task_id in one.answer()]
    assert len(set(sent)) == 200
    assert sorted(k.rpartition("/")[2] for k in live.store.keys("inbox/coder")) == sorted(sent)
    assert all(ledger.state(live, task_id) == ledger.LIVE for task_id in sent)


@pytest.mark.req("core:3")
@pytest.mark.parametrize(
    ("given", "kept", "noted"),
    [
        ('{"new_project": true}', {"new_project": True}, False),
        ("plain words", "plain words", False),
        ("{broken", "{broken", True),
        ("[1, 2]", "[1, 2]", False),
        ("", None, False),
    ],
)
def test_context_is_an_object_or_text_and_never_an_error(boss: Desk, given: str, kept: Any, noted: bool) -> None:
    boss.dispatch_task("coder", "x")
    sent = boss.dispatch_task("coder", "x", context=given)
    assert boss.task(sent["task_id"])["context"] == kept
    assert any("kept as text" in w for w in sent["warnings"]) == noted


@pytest.mark.req("core:4")
@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("invalid", {"priority": "urgent"}),
        ("invalid", {"target": "../x"}),
        ("invalid", {"target": "CON"}),
        ("invalid", {"target": ""}),
        ("invalid", {"target": "a" * 65}),
        ("invalid", {"instruction": ""}),
        ("invalid", {"instruction": " \n"}),
        ("too_large", {"instruction": "x" * 200_001}),
        ("too_large", {"context": "x" * (256 * 1024 + 1)}),
        ("too_large", {"depends_on": ["t-20260307-120000-001"] * 51}),
        ("invalid", {"options": "[]"}),
        ("invalid", {"options": '{"nonsense": 1}'}),
        ("invalid", {"options": '{"parent": "t-20260307-120000-001"}'}),
        ("invalid", {"options": '{"expires_at": "2026-03-07T11:00:00Z"}'}),
        ("too_large", {"instruction": "\x01" * 200_000, "context": "\x01" * 200_000}),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(bus: Bus, boss: Desk, code: str, given: dict[str, Any]) -> None:
    with refused(code):
        boss.dispatch_task(**{"target": "coder", "instruction": "x", **given})
    assert everything(bus) == []


def test_the_largest_instruction_is_taken_and_worked_on(boss: Desk, coder: Desk) -> None:
    sent = boss.dispatch_task("coder", "\U0001f600" * 200_000)
    got = coder.receive_task()
    assert got["task"]["task_id"] == sent["task_id"]
    done = coder.submit_report(sent["task_id"], summary="\U0001f600" * 20_000, artifacts=["\U0001f600" * 1000] * 200)
    assert done["task_state"] == "completed"


@pytest.mark.req("core:5")
def test_an_unknown_target_is_accepted_with_the_nearest_name(boss: Desk) -> None:
    boss.dispatch_task("coder", "x")
    sent = boss.dispatch_task("codr", "x")
    assert sent["status"] == "pending"
    assert "coder" in " ".join(sent["warnings"])
    assert boss.dispatch_task("coder", "x")["warnings"] == []


@pytest.mark.req("core:5")
def test_an_agent_may_be_named_in_any_script(boss: Desk) -> None:
    sent = boss.dispatch_task("ナナ", "x")
    assert boss.places(sent["task_id"]) == [f"inbox/ナナ/{sent['task_id']}"]


@pytest.mark.parametrize("spelling", ["ナナ", "ﾅﾅ"])
def test_names_that_are_equal_mean_one_inbox(bus: Bus, boss: Desk, spelling: str) -> None:
    boss.dispatch_task("ナナ", "first")
    sent = boss.dispatch_task(spelling, "x")
    assert boss.places(sent["task_id"]) == [f"inbox/ナナ/{sent['task_id']}"]
    assert Desk(bus).receive_task(spelling)["task"]["instruction"] == "first"


@pytest.mark.req("core:6")
def test_two_processes_with_one_dedupe_key_make_one_task(live: Bus, server: Callable[..., Server]) -> None:
    servers = [server(BOSS), server(BOSS)]
    order = {"verb": "dispatch_task", "args": {"target": "coder", "instruction": "x", "dedupe_key": "k"}}
    for one in servers:
        one.send(order)
    answers = [one.answer() for one in servers]
    assert len({a["task_id"] for a in answers}) == 1
    assert sorted(a["deduplicated"] for a in answers) == [False, True]
    assert len(live.store.keys("inbox/coder")) == 1


@pytest.mark.req("core:6")
def test_a_dedupe_key_makes_a_new_task_after_a_day(boss: Desk, clock: ManualClock) -> None:
    first = boss.dispatch_task("coder", "x", dedupe_key="k")
    clock.advance(86_399)
    again = boss.dispatch_task("coder", "x", dedupe_key="k")
    assert (again["task_id"], again["deduplicated"]) == (first["task_id"], True)
    clock.advance(2)
    later = boss.dispatch_task("coder", "x", dedupe_key="k")
    assert later["task_id"] != first["task_id"]
    assert later["deduplicated"] is False


def test_a_dedupe_key_with_another_request_is_a_conflict_and_belongs_to_its_sender(bus: Bus, boss: Desk) -> None:
    first = boss.dispatch_task("coder", "x", dedupe_key="k")
    with refused("conflict", first["task_id"]):
        boss.dispatch_task("coder", "y", dedupe_key="k")
    other = Desk(bus, Caller(agent="chef")).dispatch_task("coder", "y", dedupe_key="k")
    assert other["deduplicated"] is False


def test_a_dedupe_key_whose_task_is_lost_makes_a_new_one(bus: Bus, boss: Desk) -> None:
    first = boss.dispatch_task("coder", "x", dedupe_key="k")
    doc = bus.store.get(f"inbox/coder/{first['task_id']}")
    assert doc is not None
    bus.store.delete(doc)
    again = boss.dispatch_task("coder", "x", dedupe_key="k")
    assert again["task_id"] != first["task_id"]
    assert boss.folder(again["task_id"]) == "inbox"


def finish(boss: Desk, coder: Desk, task_id: str, status: str) -> None:
    got = coder.receive_task()
    assert got["task"]["task_id"] == task_id
    coder.submit_report(task_id, status=status, summary="done")


@pytest.mark.req("core:7")
def test_a_task_waits_until_all_have_ended_and_is_blocked_by_a_failure(boss: Desk, coder: Desk) -> None:
    a = boss.dispatch_task("coder", "a", priority="high")["task_id"]
    b = boss.dispatch_task("coder", "b")["task_id"]
    strict = boss.dispatch_task("coder", "c", depends_on=[a, b])["task_id"]
    lenient = boss.dispatch_task("coder", "d", depends_on=[a, f"{b}:always"])["task_id"]
    failing = boss.dispatch_task("coder", "e", depends_on=[f"{b}:failure"])["task_id"]
    finish(boss, coder, a, "completed")
    assert {boss.task(t)["status"] for t in (strict, lenient, failing)} == {"waiting"}
    finish(boss, coder, b, "failed")
    blocked = boss.task(strict)
    assert blocked["status"] == "blocked"
    assert b in blocked["reason"]
    assert "failure" in blocked["reason"]
    assert boss.task(lenient)["status"] == boss.task(failing)["status"] == "pending"
    assert b in boss.get_task(strict)["why"]


def test_a_task_blocked_by_a_dependency_can_be_run_anyway_or_given_up(boss: Desk, coder: Desk) -> None:
    a = boss.dispatch_task("coder", "a")["task_id"]
    one, other = (boss.dispatch_task("coder", "b", depends_on=[a])["task_id"] for _ in range(2))
    after = boss.dispatch_task("coder", "c", depends_on=[f"{other}:failure"])["task_id"]
    boss.share_context(f"task-chain-{other}", '{"next_tasks": [{"target": "m", "instruction": "n", "when": "failed"}]}')
    boss.cancel_task(a)
    assert boss.task(one)["status"] == boss.task(other)["status"] == "blocked"
    assert boss.retry_task(one)["task_state"] == "pending"
    given_up = boss.acknowledge_report(other)
    assert given_up["task_state"] == "failed"
    assert len(given_up["dispatched"]) == 1
    assert boss.task(after)["status"] == "pending"


@pytest.mark.parametrize("first", ["accept", "nobody"])
def test_a_dead_letter_is_a_failure_for_others_once_a_person_has_acknowledged_it(
    bus: Bus, boss: Desk, person: Desk, first: str
) -> None:
    a = boss.dispatch_task("coder", "a", options='{"max_attempts": 1}')["task_id"]
    b = boss.dispatch_task("coder", "b", depends_on=[f"{a}:failure"])["task_id"]
    doc = boss.doc(f"inbox/coder/{a}")
    die(boss, doc)
    assert boss.folder(a) == "dead_letter"
    assert boss.task(b)["status"] == "waiting"
    if first == "accept":
        person.acknowledge_report(a)
        assert boss.task(b)["status"] == "pending"
    else:
        person.retry_task(a)
        assert boss.task(b)["status"] == "waiting"


def die(boss: Desk, value: dict[str, Any]) -> None:
    """The task's holder is a process of an earlier boot that has called: gone."""
    task_id = value["task_id"]
    desk = Desk(boss.bus, Caller(agent="coder", process=True))
    got = desk.receive_task()
    assert got["task"]["task_id"] == task_id
    found = find.need(boss.bus, task_id)
    assert found.task.lease is not None
    holder = found.task.lease.holder.model_copy(update={"boot": "an earlier one"})
    held = found.task.lease.model_copy(update={"holder": holder, "called_at": boss.bus.stamp()})
    dead = write(boss.bus, found, found.task.model_copy(update={"lease": held}))
    assert recover.if_lost(boss.bus, dead) is not None


@pytest.mark.req("core:8")
def test_unknown_and_circular_dependencies_are_refused_by_name(bus: Bus, boss: Desk) -> None:
    unknown = "t-20260307-120000-999"
    with refused("invalid", unknown):
        boss.dispatch_task("coder", "x", depends_on=[unknown])
    for bad in ("t-1", "", f"{unknown}:sometimes"):
        with refused("invalid", "depends_on"):
            boss.dispatch_task("coder", "x", depends_on=[bad])
    a = boss.dispatch_task("coder", "a", not_before=in_s(60))["task_id"]
    b = boss.dispatch_task("coder", "b", depends_on=[a])["task_id"]
    boss.edit(f"waiting/{a}", depends_on=[{"task": b, "on": "success"}])
    with refused("invalid", a, b, "cycle"):
        boss.dispatch_task("coder", "c", depends_on=[b])
    boss.edit(f"waiting/{a}", depends_on=[{"task": a, "on": "success"}])
    with refused("invalid", a, "cycle"):
        boss.dispatch_task("coder", "c", depends_on=[a])


@pytest.mark.req("core:9")
def test_a_task_is_not_given_out_before_its_time(boss: Desk, coder: Desk, clock: ManualClock) -> None:
    sent = boss.dispatch_task("coder", "x", not_before=in_s(2))
    assert sent["status"] == "scheduled"
    assert coder.receive_task()["task"] is None
    clock.advance(2)
    assert coder.receive_task()["task"]["task_id"] == sent["task_id"]


@pytest.mark.req("core:9")
@pytest.mark.parametrize("text", ["2026-03-07T12:00:02", "tomorrow", "2026-13-01T00:00:00Z", "12"])
def test_a_time_without_a_zone_is_refused_with_an_example(boss: Desk, text: str) -> None:
    with refused("invalid", "not_before", "2026-03-07T10:15:00Z"):
        boss.dispatch_task("coder", "x", not_before=text)


@pytest.mark.req("core:10")
def test_a_bound_server_dispatches_only_as_its_agent(boss: Desk) -> None:
    with refused("not_yours", "boss", "coder"):
        boss.dispatch_task("x", "x", from_agent="coder")
    sent = boss.dispatch_task("x", "x")
    assert boss.task(sent["task_id"])["from"] == "boss"
    assert boss.task(boss.dispatch_task("x", "x", from_agent="BOSS")["task_id"])["from"] == "boss"


def test_orders_of_a_sender_that_the_target_does_not_take_wait_for_a_person(make: Make) -> None:
    bus = make(agents={"coder": {"orders_from": ["boss"]}})
    assert Desk(bus).dispatch_task("coder", "x", from_agent="Boss")["status"] == "pending"
    sent = Desk(bus).dispatch_task("coder", "x", from_agent="stranger")
    assert sent["status"] == "pending_approval"
    assert sent["matched_terms"] == ["stranger (sender)"]


def test_options_are_kept_in_the_task(boss: Desk) -> None:
    parent = boss.dispatch_task("coder", "x")["task_id"]
    options = f'{{"max_attempts": 5, "parent": "{parent}", "thread": "th", "labels": ["a"], "limits": {{"tokens": 9}}}}'
    value = boss.task(boss.dispatch_task("coder", "x", options=options)["task_id"])
    assert value | {"max_attempts": 5, "parent": parent, "thread": "th", "labels": ["a"]} == value
    assert value["limits"] == {"tokens": 9}
