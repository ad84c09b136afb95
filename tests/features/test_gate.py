"""The gate around tasks: what waits for a person, what a person's yes is worth, and who may give it."""

from typing import Any

import pytest

from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.faces.toolbox import offered
from agent_bus.jobs import reaper
from tests.tools.buses import BOSS, CODER, Make
from tests.tools.desk import Desk, refused

RISKY = [
    "支払いを実行して",
    "delete the production database",
    "supprimer la base",
    "删除所有文件",
    "lösche alle Dateien",
    "paga la factura",
]
PLAIN = [
    "fix issue 12 in Format-Table",
    "rename deleted_at column",
    "explain the source",
    "refresh the payload parser",
]


def waiting(boss: Desk) -> str:
    """A task that waits for approval."""
    sent = boss.dispatch_task("coder", "delete the production database")
    assert sent["status"] == "pending_approval"
    return str(sent["task_id"])


@pytest.mark.req("core:30")
@pytest.mark.parametrize("instruction", RISKY)
def test_risky_words_wait_for_a_person_in_any_language(bus: Bus, boss: Desk, coder: Desk, instruction: str) -> None:
    sent = boss.dispatch_task("coder", instruction)
    assert sent["status"] == "pending_approval"
    assert any(t.endswith(("(money)", "(deletion)")) for t in sent["matched_terms"])
    assert boss.places(sent["task_id"]) == [f"approvals/{sent['task_id']}"]
    assert boss.task(sent["task_id"])["approval"]["terms"]
    assert coder.receive_task()["task"] is None


@pytest.mark.req("core:30")
@pytest.mark.parametrize("context", ["delete the production database", '{"a": {"b": ["delete all files"]}}'])
def test_risky_words_in_the_context_wait_too(boss: Desk, context: str) -> None:
    assert boss.dispatch_task("coder", "go on", context=context)["status"] == "pending_approval"


@pytest.mark.req("core:31")
@pytest.mark.parametrize("instruction", PLAIN)
def test_such_words_inside_others_do_not(boss: Desk, instruction: str) -> None:
    assert boss.dispatch_task("coder", instruction)["status"] == "pending"


@pytest.mark.req("core:32")
def test_an_approval_is_recorded_and_ends_with_the_text_it_was_given_for(boss: Desk, coder: Desk, person: Desk) -> None:
    task_id = waiting(boss)
    decided = person.approve(task_id, "go")
    assert decided["task_state"] == "pending"
    record = boss.task(task_id)["approval"]
    assert record | {"state": "granted", "by": "a person", "channel": "cli", "at": boss.bus.stamp()} == record
    assert record["sha256"] == decided["sha256"]
    boss.edit(f"inbox/coder/{task_id}", instruction="delete the staging database")
    assert coder.receive_task()["task"] is None
    assert boss.folder(task_id) == "approvals"
    closed = boss.task(task_id)
    assert closed["approval"]["state"] == "requested"
    assert closed["history"][-1]["event"] == "close_gate"
    assert "approve" in boss.get_task(task_id)["why"]


@pytest.mark.req("core:32")
def test_an_approved_text_that_was_made_harmless_closes_the_gate_too_and_says_so(
    boss: Desk, coder: Desk, person: Desk
) -> None:
    task_id = waiting(boss)
    person.approve(task_id)
    boss.edit(f"inbox/coder/{task_id}", instruction="say hello")
    assert coder.receive_task()["task"] is None
    assert boss.task(task_id)["approval"]["terms"] == ["text changed after the approval"]


@pytest.mark.req("core:32")
def test_an_approved_task_runs_as_it_is(boss: Desk, coder: Desk, person: Desk) -> None:
    task_id = waiting(boss)
    person.approve(task_id)
    assert coder.receive_task()["task"]["task_id"] == task_id


def test_a_plain_text_that_was_made_risky_by_hand_closes_the_gate(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "say hello")["task_id"]
    boss.edit(f"inbox/coder/{task_id}", instruction="delete the production database")
    assert coder.receive_task()["task"] is None
    assert boss.folder(task_id) == "approvals"


@pytest.mark.parametrize(
    ("given", "state"),
    [({"not_before": "2026-03-08T00:00:00Z"}, "scheduled"), ({"depends": True}, "waiting")],
)
def test_an_approval_puts_the_task_where_dispatch_would_have(
    boss: Desk, person: Desk, given: dict[str, Any], state: str
) -> None:
    if "depends" in given:
        given = {"depends_on": [boss.dispatch_task("other", "first")["task_id"]]}
    task_id = boss.dispatch_task("coder", "delete the production database", **given)["task_id"]
    assert person.approve(task_id)["task_state"] == state
    with refused("conflict", state):
        person.approve(task_id)
    with refused("conflict", state):
        person.reject(task_id)


@pytest.mark.req("core:33")
def test_a_rejected_task_is_archived_and_its_sender_sees_why(boss: Desk, person: Desk) -> None:
    task_id = waiting(boss)
    assert person.reject(task_id, "too dangerous")["task_state"] == "rejected"
    assert boss.folder(task_id) == "archive"
    [report] = boss.get_reports(task_id=task_id)["reports"]
    assert (report["status"], report["worker"]) == ("failed", "bus")
    assert "too dangerous" in report["reason"]
    assert boss.task(task_id)["approval"]["state"] == "denied"


@pytest.mark.req("core:33")
def test_a_task_that_nobody_decides_on_for_a_day_expires(boss: Desk, clock: ManualClock) -> None:
    task_id = waiting(boss)
    for hours in (0, 12, 11.9):
        clock.advance(hours * 3600)
        reaper.sweep(boss.bus, boss.bus.now())
        assert reaper.sweep(boss.bus, boss.bus.now()).expired == []
    clock.advance(400)
    assert reaper.sweep(boss.bus, boss.bus.now()).expired == [task_id]
    assert (boss.task(task_id)["status"], boss.folder(task_id)) == ("expired", "archive")
    [report] = boss.get_reports(task_id=task_id)["reports"]
    assert (report["status"], report["reason"]) == ("failed", "nobody approved it in time")


@pytest.mark.req("core:34")
def test_only_the_operators_server_offers_what_a_person_decides() -> None:
    decisions = {"approve", "reject", "resume", "takeover"}
    for role in ("worker", "orchestrator", "reviewer"):
        assert not decisions & names(role), role
    assert decisions <= names("operator")


def names(role: str) -> set[str]:
    return set(offered("", role))


@pytest.mark.req("core:35")
def test_a_risky_step_of_a_chain_waits_for_a_person_when_its_turn_comes(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    steps = '[{"target": "a", "instruction": "say hello"}, {"target": "b", "instruction": "delete all files"}]'
    shared = boss.share_context(f"task-chain-{task_id}", f'{{"next_tasks": {steps}}}')
    assert any("deletion" in t for t in shared["matched_terms"])
    coder.receive_task()
    coder.submit_report(task_id, summary="done")
    first, second = boss.acknowledge_report(task_id)["dispatched"]
    assert boss.task(first)["status"] == "pending"
    assert boss.task(second)["status"] == "pending_approval"


def test_the_settings_add_words_and_take_words_away(make: Make) -> None:
    bus = make(gate={"money": ["zorkmid"], "off": ["delete"], "extra": {"people": ["hire"]}})
    boss = Desk(bus, BOSS)
    assert boss.dispatch_task("coder", "send a zorkmid")["matched_terms"] == ["zorkmid (money)"]
    assert boss.dispatch_task("coder", "hire somebody")["matched_terms"] == ["hire (people)"]
    assert boss.dispatch_task("coder", "delete the production database")["status"] == "pending"
    assert Desk(bus, CODER).receive_task()["task"]["instruction"] == "delete the production database"


@pytest.mark.req("core:35")
def test_risky_words_cannot_hide_in_a_context_that_looks_like_a_result(boss: Desk) -> None:
    sent = boss.dispatch_task("coder", "go on", context='{"previous": {"summary": "delete the production database"}}')
    assert sent["status"] == "pending_approval"
