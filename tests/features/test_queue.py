"""The queue's hand tools: cancel, release, retry, and the sentence that says why a task does not move."""

import json
from typing import Any

import pytest

from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.jobs import reaper
from tests.tools.buses import CODER
from tests.tools.desk import Desk, refused

LATER = "2026-03-08T00:00:00Z"


def sweep(bus: Bus) -> reaper.ReapReport:
    return reaper.sweep(bus, bus.now())


@pytest.mark.parametrize("state", ["pending", "scheduled", "waiting", "pending_approval", "blocked"])
def test_a_task_that_nobody_holds_is_cancelled_at_once(boss: Desk, coder: Desk, state: str) -> None:
    first = boss.dispatch_task("other", "first")["task_id"]
    more: dict[str, dict[str, Any]] = {"scheduled": {"not_before": LATER}, "waiting": {"depends_on": [first]}}
    given = more.get(state, {})
    risky = state == "pending_approval"
    task_id = boss.dispatch_task("coder", "delete all files" if risky else "x", **given)["task_id"]
    if state == "blocked":
        coder.receive_task()
        coder.submit_report(task_id, status="blocked", summary="what?")
    assert boss.task(task_id)["status"] == state
    assert boss.cancel_task(task_id, "no need")["task_state"] == "cancelled"
    assert boss.cancel_task(task_id)["next"] == "It was asked for already."
    assert boss.places(task_id) == [f"archive/2026-03/{task_id}"]
    [report] = boss.get_reports(task_id=task_id)["reports"][:1]
    assert (report["status"], report["worker"], report["reason"]) == ("failed", "bus", "cancelled by boss: no need")
    assert coder.receive_task()["task"] is None


def test_a_running_task_is_asked_and_ended_a_minute_later(
    bus: Bus, boss: Desk, coder: Desk, clock: ManualClock
) -> None:
    sweep(bus)
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    asked = boss.cancel_task(task_id, "no need")
    assert (asked["task_state"], asked["cancel_requested"]) == ("in_progress", True)
    clock.advance(59)
    assert sweep(bus).cancelled == []
    assert coder.update_status(current_task_id=task_id)["cancel_requested"] is True
    clock.advance(1)
    assert sweep(bus).cancelled == [task_id]
    assert boss.folder(task_id) == "archive"
    with refused("conflict", "cancelled"):
        boss.acknowledge_report(task_id, "rework")


def test_a_task_asked_to_stop_ends_when_its_holder_lets_go_or_is_lost(bus: Bus, boss: Desk, coder: Desk) -> None:
    one = boss.dispatch_task("coder", "1")["task_id"]
    coder.receive_task()
    boss.cancel_task(one)
    assert coder.release_task(one)["task_state"] == "cancelled"
    assert boss.get_reports(task_id=one)["reports"][0]["worker"] == "bus"
    two = boss.dispatch_task("coder", "2")["task_id"]
    coder.receive_task()
    boss.cancel_task(two)
    held = boss.task(two)["lease"]
    boss.edit(f"inbox/coder/{two}", lease={**held, "holder": {**held["holder"], "boot": "an earlier one"}})
    assert coder.receive_task()["task"] is None
    assert boss.task(two)["status"] == "cancelled"
    assert boss.get_reports(task_id=two)["reports"][0]["worker"] == "bus"


def test_nothing_is_ended_by_a_clock_that_jumped(bus: Bus, boss: Desk, coder: Desk, clock: ManualClock) -> None:
    sweep(bus)
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    boss.cancel_task(task_id)
    clock.jump(7200)
    assert sweep(bus).cancelled == []
    assert sweep(bus).cancelled == [task_id]


@pytest.mark.parametrize("state", ["completed", "in_review"])
def test_what_has_its_report_cannot_be_cancelled(boss: Desk, coder: Desk, state: str) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    coder.submit_report(task_id, summary="s", needs_review=state == "in_review")
    with refused("conflict", state):
        boss.cancel_task(task_id)


def test_only_sender_holder_and_orchestrator_may_touch_a_task(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    stranger = Desk(bus, Caller(agent="stranger"))
    with refused("not_yours", "boss", "coder"):
        stranger.cancel_task(task_id)
    with refused("not_yours", "boss", "coder"):
        stranger.release_task(task_id)
    assert boss.task(task_id)["status"] == "in_progress"
    assert Desk(bus, Caller(agent="x", role="orchestrator")).release_task(task_id)["task_state"] == "pending"


def test_a_release_names_its_lease_and_may_come_with_a_delay(boss: Desk, coder: Desk, clock: ManualClock) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    lease_id = coder.receive_task()["lease_id"]
    with refused("not_yours"):
        coder.release_task(task_id, lease_id="another")
    done = coder.release_task(task_id, lease_id=lease_id, delay_s=30)
    assert (done["task_state"], boss.folder(task_id)) == ("scheduled", "waiting")
    assert coder.release_task(task_id)["next"] == "Nobody holds it."
    clock.advance(29)
    assert coder.receive_task()["task"] is None
    clock.advance(1)
    assert coder.receive_task()["task"]["attempt"] == 2
    assert boss.task(task_id).get("crashes", 0) == 0


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_an_ended_task_is_run_again_as_a_new_one(boss: Desk, coder: Desk, end: str) -> None:
    task_id = boss.dispatch_task("coder", "x", context="c", options='{"labels": ["l"]}')["task_id"]
    if end == "cancelled":
        boss.cancel_task(task_id)
    else:
        coder.receive_task()
        coder.submit_report(task_id, status=end, summary="s")
    before = boss.task(task_id)
    new = boss.retry_task(task_id, "try B")["new_task_id"]
    assert boss.task(task_id) == before
    value = boss.task(new)
    assert (value["parent"], value["context"], value["labels"], value["status"]) == (task_id, "c", ["l"], "pending")
    assert coder.receive_task()["task"]["comment"]["text"] == "try B"


@pytest.mark.parametrize("state", ["pending", "in_progress", "in_review"])
def test_what_has_not_ended_is_not_run_again(boss: Desk, coder: Desk, state: str) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    if state != "pending":
        coder.receive_task()
    if state == "in_review":
        coder.submit_report(task_id, summary="s", needs_review=True)
    with refused("conflict", state):
        boss.retry_task(task_id)


def test_why_says_what_a_task_waits_for(bus: Bus, boss: Desk, coder: Desk, clock: ManualClock) -> None:
    def why(task_id: str) -> str:
        return str(boss.get_task(task_id)["why"])

    a = boss.dispatch_task("coder", "a")["task_id"]
    assert "coder has not received it" in why(a)
    b = boss.dispatch_task("coder", "b", depends_on=[a])["task_id"]
    assert f"waits for {a}" in why(b)
    c = boss.dispatch_task("coder", "c", not_before=LATER)["task_id"]
    assert "2026-03-08T00:00:00" in why(c)
    d = boss.dispatch_task("coder", "delete all files")["task_id"]
    assert "approval" in why(d)
    coder.receive_task()
    clock.advance(7200)
    assert "held by coder" in why(a)
    assert "alive, silent for 120 min" in why(a)
    coder.submit_report(a, status="blocked", summary="which one?")
    assert "which one?" in why(a)
    boss.acknowledge_report(a)
    assert why(a) == "It has ended: failed (which one?)."


def test_get_task_shows_the_whole_document(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    shown = boss.get_task(task_id)
    assert json.loads(shown["task_json"]) == boss.task(task_id)
    assert shown["rev"]


def test_no_lease_id_is_shown_to_those_who_do_not_hold_it(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "Write the tests.")["task_id"]
    first = coder.receive_task()["lease_id"]
    coder.release_task(task_id)
    second = coder.receive_task()["lease_id"]
    shown = json.dumps([boss.get_task(task_id), boss.list_tasks(), boss.get_all_status(), boss.system_health()])
    assert first not in shown
    assert second not in shown
    assert [h["event"] for h in json.loads(boss.get_task(task_id)["task_json"])["history"]].count("receive") == 2
    assert coder.receive_task()["lease_id"] == second


def test_lists_show_what_is_open_with_counts(bus: Bus, boss: Desk) -> None:
    for n in range(3):
        boss.dispatch_task("coder", f"task {n}" * 50)
    boss.dispatch_task("chef", "delete all files")
    Desk(bus, CODER).receive_task()
    page = boss.list_tasks()
    assert page["counts"] == {"in_progress": 1, "pending": 2, "pending_approval": 1}
    assert [t["state"] for t in page["tasks"]] == ["in_progress", "pending", "pending", "pending_approval"]
    assert all(len(t["instruction"]) <= 121 for t in page["tasks"])
    assert page["tasks"][0]["worker"] == "coder"
    assert [t["to"] for t in boss.list_tasks(state="pending_approval")["tasks"]] == ["chef"]
    assert len(boss.list_tasks(agent_name="CODER", state="pending")["tasks"]) == 2
    with refused("invalid", "cursor"):
        boss.list_tasks(cursor="x")
