"""Reports: whose counts, what it does to the task, and the verdict on it."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.jobs import reaper
from agent_bus.operations import ledger
from tests.tools.buses import BOSS, CODER
from tests.tools.desk import Desk, Server, refused

REPORT_KEYS = ["task_id", "worker", "status", "summary", "artifacts", "completed_at", "needs_review"]
OTHER = Caller(agent="coder", channel="http", session="other")
CLI = Caller(channel="cli")


def held(boss: Desk, coder: Desk, **given: Any) -> tuple[str, str]:
    """A task in the coder's hands, and its lease."""
    task_id = boss.dispatch_task("coder", "x", **given)["task_id"]
    return task_id, coder.receive_task()["lease_id"]


def reported(boss: Desk, coder: Desk, status: str = "completed", **more: Any) -> str:
    """A task with a report."""
    task_id, _ = held(boss, coder)
    coder.submit_report(task_id, status=status, summary="first line\nsecond", **more)
    return task_id


def again(bus: Bus, boss: Desk, task_id: str) -> Desk:
    """A second attempt by another holder."""
    boss.release_task(task_id)
    other = Desk(bus, OTHER)
    assert other.receive_task()["task"]["attempt"] == 2
    return other


@pytest.mark.req("core:22")
def test_a_completed_task_leaves_the_inbox_for_the_archive(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id, lease_id = held(boss, coder)
    done = coder.submit_report(task_id, "coder", "completed", "done", ["a.py"])
    assert (done["accepted"], done["task_state"]) == (True, "completed")
    assert boss.places(task_id) == [f"archive/2026-03/{task_id}"]
    value = boss.task(task_id)
    assert value["status"] == "completed"
    assert value["lease"]["id"] == lease_id
    assert boss.events(task_id) == ["dispatch", "receive", "submit"]
    report = boss.doc(f"reports/pending/{task_id}")
    assert list(report)[:7] == REPORT_KEYS
    assert (report["lease_id"], report["attempt"]) == (lease_id, 1)
    assert ledger.state(bus, task_id) == ledger.DONE


@pytest.mark.req("core:23")
@pytest.mark.parametrize("with_lease", [True, False])
def test_the_same_report_again_is_a_duplicate_and_another_a_conflict(boss: Desk, coder: Desk, with_lease: bool) -> None:
    task_id, lease_id = held(boss, coder)
    given = {"summary": "first line\nsecond"} | ({"lease_id": lease_id} if with_lease else {})
    coder.submit_report(task_id, **given)
    before = boss.task(task_id)
    assert coder.submit_report(task_id, **given)["duplicate"] is True
    assert boss.task(task_id) == before
    for other in ({"summary": "else"}, {"status": "failed"}, {"artifacts": ["x"]}, {"needs_review": True}):
        with refused("conflict", "first line"):
            coder.submit_report(task_id, **{**given, **other})
    assert boss.task(task_id) == before


@pytest.mark.req("core:23")
def test_a_repeated_report_makes_good_what_a_killed_one_left_undone(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = reported(boss, coder)
    doc = bus.store.get(f"reports/pending/{task_id}")
    assert doc is not None
    bus.store.delete(doc)
    coder.submit_report(task_id, summary="first line\nsecond")
    assert bus.store.exists(f"reports/pending/{task_id}")


@pytest.mark.req("core:24")
def test_a_report_of_an_old_lease_is_kept_aside_and_changes_nothing(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id, old = held(boss, coder)
    again(bus, boss, task_id)
    before = boss.task(task_id)
    done = coder.submit_report(task_id, summary="late", lease_id=old)
    assert (done["accepted"], done["stale_attempt"]) == (False, True)
    assert boss.task(task_id) == before
    assert boss.doc(f"reports/stale/{task_id}.{old}")["summary"] == "late"
    rows = boss.get_reports(task_id=task_id)["reports"]
    assert [(r["summary"], r["stale"]) for r in rows] == [("late", True)]


@pytest.mark.req("core:24")
def test_a_report_without_a_lease_of_one_who_holds_nothing_is_refused_naming_the_holder(
    bus: Bus, boss: Desk, coder: Desk
) -> None:
    task_id, _ = held(boss, coder)
    again(bus, boss, task_id)
    with refused("not_yours", "held by coder"):
        coder.submit_report(task_id, summary="late")
    assert boss.task(task_id)["status"] == "in_progress"


@pytest.mark.parametrize(
    ("caller", "worker", "attempt", "code"),
    [
        (CODER, "", 1, ""),  # the process that received it
        (CODER, "coder#7", 1, ""),  # … whatever it calls itself
        (CODER, "", 2, ""),
        (CLI, "coder", 1, ""),  # an old client: one lease in the task's life, and the name fits
        (CLI, "CODER", 1, ""),
        (CLI, "chef", 1, "not_yours"),
        (CLI, "coder", 2, "not_yours"),
        (Caller(agent="coder", channel="cli"), "", 1, ""),
        (Caller(agent="coder", channel="cli"), "", 2, "not_yours"),
        (Caller(agent="chef", channel="cli"), "", 1, "not_yours"),
        (Caller(agent="chef", channel="cli"), "coder", 1, "not_yours"),
        (OTHER, "", 2, "not_yours"),
    ],
)
def test_without_a_lease_id_a_report_counts_only_from_its_holder_or_an_old_client(
    bus: Bus, boss: Desk, coder: Desk, caller: Caller, worker: str, attempt: int, code: str
) -> None:
    task_id, _ = held(boss, coder)
    if attempt == 2:
        coder.release_task(task_id)
        assert coder.receive_task()["task"]["attempt"] == 2
    given = {"worker": worker} if worker else {}
    if code:
        with refused(code):
            Desk(bus, caller).submit_report(task_id, summary="s", **given)
        assert boss.task(task_id)["status"] == "in_progress"
    else:
        assert Desk(bus, caller).submit_report(task_id, summary="s", **given)["accepted"] is True


def test_a_process_started_with_the_lease_may_report_without_naming_it(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id, _ = held(boss, coder)
    coder.release_task(task_id)
    lease_id = coder.receive_task()["lease_id"]
    launched = Caller(channel="cli", lease_id=lease_id)
    assert Desk(bus, launched).submit_report(task_id, worker="coder", summary="s")["accepted"] is True


def test_of_two_workers_in_one_process_the_former_holder_cannot_report_for_the_present_one(
    bus: Bus, boss: Desk, coder: Desk
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task(worker="coder#1")
    coder.release_task(task_id)
    coder.receive_task(worker="coder#2")
    with refused("not_yours", "coder#2"):
        coder.submit_report(task_id, worker="coder#1", summary="s")
    assert coder.submit_report(task_id, worker="coder#2", summary="s")["accepted"] is True


def test_a_lease_the_task_never_had_is_not_yours(boss: Desk, coder: Desk) -> None:
    task_id, _ = held(boss, coder)
    with refused("not_yours", "never had"):
        coder.submit_report(task_id, summary="s", lease_id="nonsense")


def test_a_task_that_nobody_received_awaits_no_report(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    with refused("conflict", "pending", "receive_task"):
        coder.submit_report(task_id, summary="s")


@pytest.mark.parametrize("with_lease", [True, False])
def test_a_report_on_a_task_that_was_cancelled_meanwhile_is_kept_as_stale(
    boss: Desk, coder: Desk, clock: ManualClock, with_lease: bool
) -> None:
    task_id, lease_id = held(boss, coder)
    boss.cancel_task(task_id, "no need")
    reaper.sweep(boss.bus, boss.bus.now())
    clock.advance(61)
    assert reaper.sweep(boss.bus, boss.bus.now()).cancelled == [task_id]
    done = coder.submit_report(task_id, summary="work", **({"lease_id": lease_id} if with_lease else {}))
    assert done["stale_attempt"] is True
    assert boss.task(task_id)["status"] == "cancelled"
    rows = boss.get_reports(task_id=task_id)["reports"]
    assert [(r["worker"], r["summary"]) for r in rows] == [("bus", "cancelled by boss: no need"), ("coder", "work")]


def test_a_report_before_a_cancel_is_firm_wins(boss: Desk, coder: Desk, clock: ManualClock) -> None:
    task_id, _ = held(boss, coder)
    boss.cancel_task(task_id)
    clock.advance(59)
    assert coder.submit_report(task_id, summary="done")["task_state"] == "completed"
    clock.advance(10)
    assert reaper.sweep(boss.bus, boss.bus.now()).cancelled == []


@pytest.mark.req("core:25")
def test_rework_gives_the_task_back_with_the_comment_and_keeps_the_first_report(
    bus: Bus, boss: Desk, coder: Desk
) -> None:
    task_id = reported(boss, coder, needs_review=True)
    assert boss.task(task_id)["status"] == "in_review"
    assert boss.folder(task_id) == "waiting"
    boss.acknowledge_report(task_id, "rework", "more tests")
    assert boss.acknowledge_report(task_id, "rework", "more tests")["already"] is True
    with refused("conflict"):
        boss.acknowledge_report(task_id, "rework", "and less code")
    assert [h["note"] for h in boss.task(task_id)["history"] if h["event"] == "rework"] == ["more tests"]
    [first] = bus.store.keys("reports/processed")
    assert boss.doc(first)["summary"] == "first line\nsecond"
    assert first.startswith(f"reports/processed/{task_id}.")
    assert not bus.store.exists(f"reports/pending/{task_id}")
    got = coder.receive_task()["task"]
    assert (got["attempt"], got["comment"]["text"]) == (2, "more tests")


@pytest.mark.req("core:25")
def test_acceptance_archives_and_dispatches_the_chain_in_the_same_call(boss: Desk, coder: Desk) -> None:
    task_id = reported(boss, coder, needs_review=True)
    boss.share_context(f"task-chain-{task_id}", '{"next_tasks": [{"target": "tester", "instruction": "test it"}]}')
    done = boss.acknowledge_report(task_id)
    assert (done["task_state"], boss.folder(task_id)) == ("completed", "archive")
    [step] = done["dispatched"]
    value = boss.task(step)
    assert (value["to"], value["status"], value["parent"]) == ("tester", "pending", task_id)
    assert value["context"]["previous"]["summary"] == "first line\nsecond"
    assert boss.acknowledge_report(task_id)["dispatched"] == [step]


@pytest.mark.req("core:25")
def test_the_worker_of_a_task_cannot_accept_its_own_work(boss: Desk, coder: Desk, person: Desk) -> None:
    task_id = reported(boss, coder, needs_review=True)
    with refused("not_yours"):
        coder.acknowledge_report(task_id)
    assert person.acknowledge_report(task_id)["task_state"] == "completed"


@pytest.mark.req("core:26")
@pytest.mark.parametrize("how", ["rework", "retry"])
def test_a_blocked_task_goes_back_with_the_answer(boss: Desk, coder: Desk, how: str) -> None:
    task_id = reported(boss, coder, "blocked")
    assert (boss.task(task_id)["status"], boss.folder(task_id)) == ("blocked", "waiting")
    if how == "rework":
        boss.acknowledge_report(task_id, "rework", "use B")
    else:
        boss.retry_task(task_id, "use B")
    got = coder.receive_task()["task"]
    assert (got["task_id"], got["comment"]["text"]) == (task_id, "use B")


def test_a_blocked_task_that_is_accepted_has_failed(boss: Desk, coder: Desk) -> None:
    task_id = reported(boss, coder, "blocked")
    assert boss.acknowledge_report(task_id)["task_state"] == "failed"
    assert boss.folder(task_id) == "archive"


@pytest.mark.req("core:27")
def test_artifacts_are_kept_and_limited(boss: Desk, coder: Desk) -> None:
    task_id, _ = held(boss, coder)
    with refused("too_large", "201", "200"):
        coder.submit_report(task_id, summary="s", artifacts=["a"] * 201)
    with refused("too_large", "1001", "1000"):
        coder.submit_report(task_id, summary="s", artifacts=["a" * 1001])
    with refused("too_large", "20001", "20000"):
        coder.submit_report(task_id, summary="s" * 20_001)
    with refused("invalid", "summary"):
        coder.submit_report(task_id, summary=" ")
    assert boss.task(task_id)["status"] == "in_progress"
    coder.submit_report(task_id, summary="s", artifacts=["a", "b"])
    assert boss.doc(f"reports/pending/{task_id}")["artifacts"] == ["a", "b"]


@pytest.mark.req("core:28")
def test_a_second_acknowledgement_says_so_and_an_unknown_task_is_not_found(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = reported(boss, coder)
    assert boss.acknowledge_report(task_id)["already"] is False
    before = boss.task(task_id)
    assert boss.acknowledge_report(task_id)["already"] is True
    assert boss.task(task_id) == before
    assert not bus.store.exists(f"reports/pending/{task_id}")
    with refused("conflict"):
        boss.acknowledge_report(task_id, "rework", "x")
    for verb in (boss.acknowledge_report, boss.get_task, boss.cancel_task, boss.retry_task, boss.release_task):
        with refused("not_found", "t-20260307-120000-999"):
            verb("t-20260307-120000-999")
        with refused("invalid", "task_id"):
            verb("../x")


@pytest.mark.parametrize("verdict", ["accept", "rework"])
@pytest.mark.parametrize("state", ["pending", "in_progress", "scheduled"])
def test_a_task_without_a_report_cannot_be_judged(boss: Desk, coder: Desk, verdict: str, state: str) -> None:
    later = {"not_before": "2026-03-08T00:00:00Z"} if state == "scheduled" else {}
    task_id = boss.dispatch_task("coder", "x", **later)["task_id"]
    if state == "in_progress":
        coder.receive_task()
    with refused("conflict", state):
        boss.acknowledge_report(task_id, verdict)


def test_a_verdict_on_what_the_bus_itself_ended_is_taken_and_starts_no_chain(boss: Desk) -> None:
    options = '{"next_tasks": [{"target": "a", "instruction": "b", "when": "always"}]}'
    task_id = boss.dispatch_task("coder", "x", options=options)["task_id"]
    boss.cancel_task(task_id)
    with refused("conflict"):
        boss.acknowledge_report(task_id, "rework")
    done = boss.acknowledge_report(task_id)
    assert (done["task_state"], done["dispatched"]) == ("cancelled", [])
    assert boss.get_reports()["reports"] == []
    assert [r["worker"] for r in boss.get_reports(include_processed=True)["reports"]] == ["bus"]


@pytest.mark.req("core:29")
def test_a_wait_for_a_report_ends_when_another_process_reports(live: Bus, server: Callable[..., Server]) -> None:
    boss = Desk(live, BOSS)
    one, waiter = server(), server(BOSS)
    waits = []
    for _ in range(3):
        task_id = boss.dispatch_task("coder", "x")["task_id"]
        one.receive_task()
        waiter.send({"verb": "get_reports", "args": {"task_id": task_id, "wait_s": 20}})
        time.sleep(0.3)  # so that it waits: what is measured begins after it
        began = time.monotonic()
        one.submit_report(task_id=task_id, summary="done")
        assert [r["summary"] for r in waiter.answer()["reports"]] == ["done"]
        waits.append(time.monotonic() - began)
    assert sorted(waits)[1] < 1


def test_reports_are_paged_and_filtered(boss: Desk, coder: Desk) -> None:
    ids = [reported(boss, coder, status) for status in ("completed", "failed", "completed")]
    boss.acknowledge_report(ids[0])
    assert [r["task_id"] for r in boss.get_reports()["reports"]] == ids[1:]
    assert [r["task_id"] for r in boss.get_reports(status_filter="failed")["reports"]] == [ids[1]]
    assert boss.get_reports(agent_filter="nobody")["reports"] == []
    seen, cursor = [], ""
    while True:
        page = boss.get_reports(include_processed=True, limit=1, cursor=cursor, agent_filter="Coder")
        seen += [r["task_id"] for r in page["reports"]]
        if not (cursor := page["cursor"]):
            break
    assert seen == ids


def test_a_failed_task_runs_again_after_its_back_off_if_that_was_asked(
    boss: Desk, coder: Desk, clock: ManualClock
) -> None:
    task_id, lease_id = held(boss, coder, options='{"retry_failed": true}')
    done = coder.submit_report(task_id, status="failed", summary="no luck")
    assert done["task_state"] == "scheduled"
    assert coder.submit_report(task_id, status="failed", summary="no luck")["duplicate"] is True
    assert coder.submit_report(task_id, status="failed", summary="no luck", lease_id=lease_id)["duplicate"] is True
    with refused("conflict"):
        boss.acknowledge_report(task_id, "rework", "again")
    assert boss.acknowledge_report(task_id)["task_state"] == "scheduled"
    clock.advance(30.1)
    assert coder.receive_task()["task"]["attempt"] == 2
    assert coder.submit_report(task_id, status="failed", summary="again")["task_state"] == "scheduled"
    clock.advance(61)
    coder.receive_task()
    assert coder.submit_report(task_id, status="failed", summary="thrice")["task_state"] == "failed"
    summaries = [r["summary"] for r in boss.get_reports(task_id=task_id)["reports"]]
    assert sorted(summaries) == ["again", "no luck", "thrice"]


def test_a_cancelled_task_that_failed_does_not_run_again(boss: Desk, coder: Desk) -> None:
    task_id, _ = held(boss, coder, options='{"retry_failed": true}')
    boss.cancel_task(task_id)
    assert coder.submit_report(task_id, status="failed", summary="stopped")["task_state"] == "failed"
