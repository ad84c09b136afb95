"""The reaper: what one pass does, that a second pass does nothing, and that nothing stops it."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.jobs import reaper
from agent_bus.jobs.reaper import ReapReport
from agent_bus.operations import clocks, find, ledger
from agent_bus.times import parse_stamp, stamp
from tests.tools.buses import BOSS, CODER, NOON
from tests.tools.desk import Desk

SESSION = Caller(agent="coder", channel="http", session="s1")


def sweep(bus: Bus) -> ReapReport:
    return reaper.sweep(bus, bus.now())


def quiet(report: ReapReport) -> bool:
    """Whether a pass found nothing to do."""
    return report == ReapReport()


def test_a_bus_that_is_in_order_is_left_alone(bus: Bus, boss: Desk, coder: Desk) -> None:
    sweep(bus)
    for _ in range(3):
        boss.dispatch_task("coder", "x")
    coder.receive_task()
    assert quiet(sweep(bus))
    assert reaper.tick(bus, bus.now()) == reaper.EVERY_S


@pytest.mark.req("core:19")
def test_the_first_pass_and_one_after_a_long_pause_give_every_lease_a_fresh_term(
    bus: Bus, boss: Desk, clock: ManualClock
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    Desk(bus, SESSION).receive_task()
    clock.advance(5000)
    for wait in (0, 601):
        clock.advance(wait)
        report = sweep(bus)
        assert (report.grace, report.recovered) == (True, [])
        assert parse_stamp(boss.task(task_id)["lease"]["until"]) == bus.now() + timedelta(seconds=600)
    clock.advance(599)
    assert sweep(bus).recovered == []
    clock.advance(10)
    assert sweep(bus).recovered == [task_id]


@pytest.mark.req("core:19")
@pytest.mark.parametrize("damage", [{"boot": "another"}, {"wall": "x"}, {"boot_s": None}, None])
def test_a_record_of_the_clocks_that_does_not_fit_begins_a_time_of_grace(
    disk: Bus, tmp_path: Path, clock: ManualClock, damage: dict[str, Any] | None
) -> None:
    assert sweep(disk).grace is True
    clock.advance(30)
    assert sweep(disk).grace is False
    path = tmp_path / "bus" / ".bus" / "reaper.json"
    found = json.loads(path.read_bytes())
    path.write_text("{" if damage is None else json.dumps(found | damage), encoding="utf-8")
    assert sweep(disk).grace is True
    assert sweep(disk).grace is False


def test_the_record_is_shared_by_all_processes(disk: Bus, clock: ManualClock) -> None:
    sweep(disk)
    clock.advance(20)
    other = open_bus(disk.settings, clock=clock)
    assert clocks.steady(other) is True
    assert clocks.steady_s(other) == 20
    clock.jump(100)
    assert clocks.steady(other) is False
    assert clocks.steady_s(other) == 0
    other.close()


@pytest.mark.req("core:14")
def test_a_dead_holder_is_found_even_in_a_time_of_grace(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    held = boss.task(task_id)["lease"]
    boss.edit(f"inbox/coder/{task_id}", lease={**held, "holder": {**held["holder"], "boot": "an earlier one"}})
    report = sweep(bus)
    assert (report.grace, report.recovered) == (True, [task_id])
    assert sweep(bus).recovered == []


def test_a_lease_of_a_run_is_left_to_its_run_until_its_time_and_the_start_are_over(
    bus: Bus, boss: Desk, coder: Desk, clock: ManualClock
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    held = boss.task(task_id)["lease"]
    holder = {**held["holder"], "boot": "an earlier one", "run": "r-unknown"}
    boss.edit(f"inbox/coder/{task_id}", lease={**held, "holder": holder})
    sweep(bus)
    for _ in range(7):
        clock.advance(100)
        assert sweep(bus).recovered == []
    clock.advance(30)
    assert sweep(bus).recovered == [task_id]


@pytest.mark.parametrize("status", ["scheduled", "completed", "pending_approval", "dead_letter"])
def test_a_file_that_was_not_moved_yet_is_moved(bus: Bus, boss: Desk, status: str) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    more = {"not_before": "2027-01-01T00:00:00Z"} if status == "scheduled" else {}
    boss.edit(f"inbox/coder/{task_id}", status=status, **more)
    assert sweep(bus).settled == [task_id]
    found = find.need(bus, task_id)
    assert boss.folder(task_id) != "inbox"
    assert ledger.state(bus, task_id) == (ledger.DONE if found.task.ended else ledger.LIVE)
    assert sweep(bus).settled == []


@pytest.mark.req("core:7", "core:9")
def test_what_has_come_due_is_moved_on(bus: Bus, boss: Desk, clock: ManualClock) -> None:
    first = boss.dispatch_task("coder", "x")["task_id"]
    timed = boss.dispatch_task("coder", "x", not_before=stamp(NOON + timedelta(seconds=60)))["task_id"]
    after = boss.dispatch_task("coder", "x", depends_on=[f"{first}:always"])["task_id"]
    assert sweep(bus).moved_on == []
    clock.advance(60)
    assert sweep(bus).moved_on == [timed]
    boss.edit(f"inbox/coder/{first}", status="failed")
    sweep(bus)
    assert boss.task(after)["status"] == "pending"


def test_what_has_expired_ends_wherever_it_waits(bus: Bus, boss: Desk, clock: ManualClock) -> None:
    sweep(bus)
    options = json.dumps({"expires_at": stamp(NOON + timedelta(seconds=60))})
    first = boss.dispatch_task("other", "x")["task_id"]
    ids = [
        boss.dispatch_task("coder", "x", options=options)["task_id"],
        boss.dispatch_task("coder", "x", options=options, not_before="2027-01-01T00:00:00Z")["task_id"],
        boss.dispatch_task("coder", "x", options=options, depends_on=[first])["task_id"],
        boss.dispatch_task("coder", "delete all files", options=options)["task_id"],
    ]
    clock.advance(59)
    assert sweep(bus).expired == []
    clock.advance(1)
    assert sorted(sweep(bus).expired) == ids
    assert {boss.task(t)["status"] for t in ids} == {"expired"}
    assert all(boss.get_reports(task_id=t)["reports"][0]["worker"] == "bus" for t in ids)


def test_a_task_that_is_worked_on_does_not_expire(bus: Bus, boss: Desk, coder: Desk, clock: ManualClock) -> None:
    sweep(bus)
    options = json.dumps({"expires_at": stamp(NOON + timedelta(seconds=60))})
    task_id = boss.dispatch_task("coder", "x", options=options)["task_id"]
    coder.receive_task()
    clock.advance(120)
    assert sweep(bus).expired == []
    assert coder.submit_report(task_id, summary="s")["task_state"] == "completed"


def test_an_id_that_was_never_used_is_given_up_after_ten_minutes(bus: Bus, clock: ManualClock) -> None:
    task_id = ledger.reserve(bus, bus.now())
    clock.advance(600)
    assert sweep(bus).voided == []
    clock.advance(1)
    assert sweep(bus).voided == [task_id]
    assert ledger.state(bus, task_id) == ledger.VOID
    assert sweep(bus).voided == []


def test_an_id_whose_task_was_written_is_live_and_not_given_up(bus: Bus, boss: Desk, clock: ManualClock) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    entry = ledger.entry(bus, task_id)
    assert entry is not None
    bus.store.replace(entry, {**entry.value, "state": ledger.RESERVED})
    clock.advance(700)
    assert sweep(bus).voided == []
    assert ledger.state(bus, task_id) == ledger.LIVE


@pytest.mark.req("core:41")
def test_one_file_that_cannot_be_read_does_not_stop_the_pass(disk: Bus, tmp_path: Path) -> None:
    boss, coder = Desk(disk, BOSS), Desk(disk, CODER)
    bad = boss.dispatch_task("coder", "bad", priority="high")["task_id"]
    coder.receive_task()
    coder.submit_report(bad, summary="s")
    (tmp_path / "bus" / "archive" / "2026-03" / f"{bad}.json").write_text("{", encoding="utf-8")
    for folder in ("approvals", "waiting", "dead_letter", "inbox/coder"):
        (tmp_path / "bus" / folder / "t-20260307-110000-009.json").write_text("{", encoding="utf-8")
    good = boss.dispatch_task("coder", "good")["task_id"]
    boss.edit(f"inbox/coder/{good}", status="cancelled")
    report = sweep(disk)
    assert report.settled == [good]
    assert len(report.quarantined) == 4
    assert disk.store.exists(f"reports/pending/{bad}")
    assert sweep(disk).quarantined == []


def test_two_passes_at_once_do_no_harm(disk: Bus, clock: ManualClock) -> None:
    boss = Desk(disk, BOSS)
    ids = [boss.dispatch_task("coder", "x")["task_id"] for _ in range(4)]
    for n in range(4):
        Desk(disk, Caller(agent="coder", channel="http", session=f"s{n}")).receive_task()
    other = open_bus(disk.settings, clock=clock)
    sweep(disk)
    clock.advance(300)
    sweep(other)
    clock.advance(310)
    assert sorted(sweep(disk).recovered + sweep(other).recovered) == ids
    assert {boss.task(t).get("crashes", 0) for t in ids} == {1}
    other.close()


def test_old_rests_of_killed_writers_are_cleared_away(disk: Bus, tmp_path: Path, clock: ManualClock) -> None:
    rest = tmp_path / "bus" / ".bus" / "tmp" / "1-2-3"
    rest.write_text("x", encoding="utf-8")
    clock.advance(366 * 86_400)
    sweep(disk)
    assert not rest.exists()


@pytest.mark.req("core:46")
def test_an_open_task_whose_file_was_removed_is_named_until_it_comes_back(disk: Bus, clock: ManualClock) -> None:
    boss, coder = Desk(disk, BOSS), Desk(disk, CODER)
    sweep(disk)
    kept, removed = (boss.dispatch_task("coder", "x")["task_id"] for _ in range(2))
    assert quiet(sweep(disk))
    assert disk.layout is not None
    path = disk.layout.root / "inbox" / "coder" / f"{removed}.json"
    data = path.read_bytes()
    path.unlink()

    def is_named() -> bool:
        return any(removed in problem and "by hand" in problem for problem in boss.system_health()["problems"])

    assert sweep(disk).vanished == [removed]
    assert quiet(sweep(disk))
    assert is_named()
    assert [row["task_id"] for row in boss.list_tasks()["tasks"]] == [kept]
    path.write_bytes(data)
    sweep(disk)
    assert not is_named()
    assert coder.receive_task()["task"]["task_id"] == kept
    assert coder.receive_task()["task"]["task_id"] == kept, "one task at a time"
    path.unlink()
    assert sweep(disk).vanished == [removed]
    clock.advance(8 * 86_400)
    sweep(disk)
    assert not is_named()
