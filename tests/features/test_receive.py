"""Receiving: order, one winner, leases, and what a lost holder costs."""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_bus import commands
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.domain.task import Holder
from agent_bus.jobs import reaper
from agent_bus.operations import claim, find
from agent_bus.times import parse_stamp, stamp
from tests.tools.buses import BOSS, CODER, NOON, PERSON, Make
from tests.tools.desk import Desk, Server, refused

DEAD = {"boot": "an earlier boot"}


def session(bus: Bus, name: str, agent: str = "coder") -> Desk:
    """An HTTP client with a session: a holder whose lease only time can end."""
    return Desk(bus, Caller(agent=agent, channel="http", session=name))


def lease(desk: Desk, task_id: str, holder: dict[str, Any] | None = None, **changes: Any) -> None:
    """Edits the lease of a task in progress."""
    held = desk.task(task_id)["lease"]
    desk.edit(desk.places(task_id)[0], lease={**held, **changes, "holder": {**held["holder"], **(holder or {})}})


def reap(desk: Desk) -> reaper.ReapReport:
    return reaper.sweep(desk.bus, desk.bus.now())


def pass_time(desk: Desk, clock: ManualClock, seconds: float) -> reaper.ReapReport:
    """Lets time pass while the reaper runs, as it does."""
    report = reap(desk)
    while seconds > 0:
        clock.advance(min(seconds, 120))
        seconds -= 120
        report = reap(desk)
    return report


@pytest.mark.req("core:11")
def test_tasks_come_by_priority(bus: Bus, boss: Desk, clock: ManualClock) -> None:
    for priority in ("low", "normal", "high"):
        boss.dispatch_task("coder", priority, priority=priority)
        clock.advance(1)
    got = [session(bus, f"s{n}").receive_task()["task"]["instruction"] for n in range(3)]
    assert got == ["high", "normal", "low"]


@pytest.mark.req("core:11")
def test_a_low_task_that_waited_two_steps_comes_before_a_fresh_normal_one(
    boss: Desk, coder: Desk, clock: ManualClock
) -> None:
    boss.dispatch_task("coder", "old and low", priority="low")
    clock.advance(2 * 1800 + 1)
    boss.dispatch_task("coder", "fresh and normal")
    assert coder.receive_task()["task"]["instruction"] == "old and low"


@pytest.mark.req("core:11")
def test_fifo_goes_by_age_alone(make: Make, clock: ManualClock) -> None:
    bus = make(order="fifo")
    for priority in ("low", "normal", "high"):
        Desk(bus, BOSS).dispatch_task("coder", priority, priority=priority)
        clock.advance(1)
    got = [session(bus, f"s{n}").receive_task()["task"]["instruction"] for n in range(3)]
    assert got == ["low", "normal", "high"]


def test_without_ageing_low_stays_low(make: Make, clock: ManualClock) -> None:
    bus = make(ageing_s=0)
    Desk(bus, BOSS).dispatch_task("coder", "low", priority="low")
    clock.advance(86_400)
    Desk(bus, BOSS).dispatch_task("coder", "normal")
    assert Desk(bus, CODER).receive_task()["task"]["instruction"] == "normal"


@pytest.mark.req("core:12")
def test_of_two_processes_that_receive_at_once_exactly_one_gets_the_task(
    live: Bus, server: Callable[..., Server], tmp_path: Path
) -> None:
    agents = [f"a{n}" for n in range(40)]
    boss = Desk(live, BOSS)
    for agent in agents:
        boss.dispatch_task(agent, "x")
    meet = tmp_path / "meet"
    meet.write_bytes(bytes(8))
    servers = [server(Caller(process=True)), server(Caller(process=True))]
    for me, one in enumerate(servers):
        one.send({"do": "race", "agents": agents, "meet": str(meet), "me": me})
    won = [one.answer(50) for one in servers]
    assert sorted(won[0] + won[1]) == sorted(agents)


@pytest.mark.req("core:13")
def test_a_holder_gets_its_task_again_and_another_process_the_next(
    live: Bus, coder: Desk, server: Callable[..., Server]
) -> None:
    boss = Desk(live, BOSS)
    first, second = (boss.dispatch_task("coder", n)["task_id"] for n in ("1", "2"))
    one, other = server(), server()
    got = one.receive_task()
    again = one.receive_task()
    assert (got["task"]["task_id"], got["already_held"]) == (first, False)
    assert (again["task"]["task_id"], again["already_held"], again["lease_id"]) == (first, True, got["lease_id"])
    assert other.receive_task()["task"]["task_id"] == second


@pytest.mark.parametrize("spelling", ["Coder", "CODER"])
def test_a_holder_is_known_by_any_spelling_of_its_label(bus: Bus, boss: Desk, spelling: str) -> None:
    boss.dispatch_task("coder", "1")
    boss.dispatch_task("coder", "2")
    first = Desk(bus).receive_task("coder")
    again = Desk(bus).receive_task(spelling)
    assert (again["already_held"], again["lease_id"]) == (True, first["lease_id"])


def test_a_caller_without_a_process_holds_one_task_by_its_label(bus: Bus, boss: Desk) -> None:
    for n in range(3):
        boss.dispatch_task("coder", str(n))
    cli = Caller(channel="cli")
    first = Desk(bus, cli).receive_task("coder")
    assert Desk(bus, cli).receive_task("coder")["lease_id"] == first["lease_id"]
    second = Desk(bus, cli).receive_task("coder", worker="coder#2")
    assert second["task"]["instruction"] == "1"
    assert Desk(bus, CODER).receive_task()["task"]["instruction"] == "2"


def test_a_run_gets_its_own_task_and_no_other_whatever_process_and_label_it_has(bus: Bus, boss: Desk) -> None:
    own, _ = (boss.dispatch_task("coder", n)["task_id"] for n in ("1", "2"))
    run = f"r-{own}-1"
    assert claim.take(bus, f"inbox/coder/{own}", "coder", Holder(run=run), "l-1") is not None
    for caller in (Caller(agent="coder", process=True, run=run), Caller(agent="coder", run=run)):
        again = Desk(bus, caller).receive_task(worker="coder#3")
        assert (again["task"]["task_id"], again["already_held"], again["lease_id"]) == (own, True, "l-1")
    assert Desk(bus, Caller(agent="coder", process=True, run=f"r-{own}-2")).receive_task()["task"] is None
    done = Desk(bus, Caller(agent="coder", run=run)).submit_report(own, summary="s")
    assert done["task_state"] == "completed"


def test_an_http_client_without_a_session_must_name_its_worker(bus: Bus, boss: Desk) -> None:
    boss.dispatch_task("coder", "x")
    with refused("invalid", "worker"):
        Desk(bus, Caller(channel="http")).receive_task("coder")
    assert Desk(bus, Caller(channel="http")).receive_task("coder", worker="coder#2")["task"] is not None


def test_a_server_receives_for_its_pools_and_for_nobody_else(make: Make) -> None:
    bus = make(agents={"coder": {"pools": ["workers"]}})
    Desk(bus, BOSS).dispatch_task("workers", "x")
    coder = Desk(bus, CODER)
    with refused("not_yours", "coder"):
        coder.receive_task("chef")
    got = coder.receive_task("Workers")
    assert got["task"]["instruction"] == "x"
    assert coder.submit_report(got["task"]["task_id"], summary="done")["accepted"] is True


@pytest.mark.req("core:14")
@pytest.mark.parametrize("called", [True, False])
def test_a_task_of_a_killed_process_goes_to_the_next_receive(
    live: Bus, server: Callable[..., Server], called: bool
) -> None:
    task_id = Desk(live, BOSS).dispatch_task("coder", "x")["task_id"]
    one, other = server(), server()
    one.receive_task()
    if called:
        one.update_status(state="working", current_task_id=task_id)
    one.kill()
    began = time.monotonic()
    got = other.receive_task(wait_s=20)
    assert time.monotonic() - began < 5  # far below any time-out, so it was not the lease that ended
    assert got["task"]["task_id"] == task_id
    value = Desk(live).task(task_id)
    assert (value["attempt"], value.get("crashes", 0)) == (2, int(called))


@pytest.mark.req("core:15")
def test_a_living_holder_keeps_its_task_however_long_it_is_silent(
    boss: Desk, coder: Desk, bus: Bus, clock: ManualClock
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    got = coder.receive_task()
    report = pass_time(boss, clock, 3 * 600 + 10)
    assert report.recovered == []
    assert session(bus, "other").receive_task()["task"] is None
    assert boss.task(task_id)["lease"]["id"] == got["lease_id"]


@pytest.mark.req("core:16")
def test_a_task_held_on_another_host_goes_back_when_its_lease_is_over(
    boss: Desk, coder: Desk, clock: ManualClock
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    lease(boss, task_id, {"host": "another", "boot": "another"}, called_at=stamp(NOON))
    assert pass_time(boss, clock, 590).recovered == []
    assert pass_time(boss, clock, 40).recovered == [task_id]
    value = boss.task(task_id)
    assert (value["status"], value["crashes"]) == ("pending", 1)


@pytest.mark.req("core:17")
def test_a_process_id_that_was_given_anew_does_not_hold_the_task(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        lease(boss, task_id, {"pid": other.pid, "pid_started": "1"})
        assert reap(boss).recovered == [task_id]
        assert other.poll() is None
        other.communicate(b"\n")
    assert boss.task(task_id)["status"] == "pending"


def crash(desk: Desk, coder: Desk, task_id: str) -> None:
    """Received, called about, and then the holder is gone."""
    assert coder.receive_task()["task"]["task_id"] == task_id
    lease(desk, task_id, DEAD, called_at=desk.bus.stamp())
    reap(desk)


@pytest.mark.req("core:18")
def test_after_three_crashes_a_task_is_dead_until_a_person_retries_it(
    bus: Bus, boss: Desk, coder: Desk, person: Desk
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    for _ in range(3):
        crash(boss, coder, task_id)
    assert coder.receive_task()["task"] is None
    assert boss.places(task_id) == [f"dead_letter/{task_id}"]
    value = boss.task(task_id)
    assert boss.events(task_id).count("receive") == 3
    assert "ended without a report" in value["reason"]
    assert boss.doc(f"reports/pending/{task_id}")["worker"] == "bus"
    with refused("refused", "a person"):
        boss.retry_task(task_id)
    assert person.retry_task(task_id)["task_state"] == "pending"
    value = boss.task(task_id)
    assert (value.get("crashes", 0), value["attempt"]) == (0, 3)
    assert not bus.store.exists(f"reports/pending/{task_id}")
    assert coder.receive_task()["task"]["task_id"] == task_id


def test_a_dead_letter_that_was_acknowledged_can_still_be_retried(boss: Desk, coder: Desk, person: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x", options='{"max_attempts": 1}')["task_id"]
    crash(boss, coder, task_id)
    assert boss.acknowledge_report(task_id)["task_state"] == "dead_letter"
    assert boss.acknowledge_report(task_id)["already"] is True
    with refused("conflict"):
        boss.acknowledge_report(task_id, "rework")
    person.retry_task(task_id)
    assert "verdict" not in boss.task(task_id)
    got = coder.receive_task()
    assert coder.submit_report(task_id, summary="ok", lease_id=got["lease_id"])["task_state"] == "completed"
    assert boss.acknowledge_report(task_id)["already"] is False


def test_a_task_that_is_given_out_too_often_is_dead_whatever_crashed(boss: Desk, coder: Desk, person: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x", options='{"max_attempts": 1}')["task_id"]
    for _ in range(6):
        got = coder.receive_task()
        assert got["task"]["task_id"] == task_id
        coder.release_task(task_id)
    assert coder.receive_task()["task"] is None
    value = boss.task(task_id)
    assert (value["status"], value["attempt"], value.get("crashes", 0)) == ("dead_letter", 6, 0)
    again = person.retry_task(task_id)
    assert again["new_task_id"]
    assert boss.task(again["new_task_id"])["parent"] == task_id


@pytest.mark.req("core:19")
@pytest.mark.parametrize("seen_by", ["reaper", "receive"])
def test_a_jump_of_the_wall_clock_takes_no_task_and_gives_every_lease_one_fresh_term(
    bus: Bus, boss: Desk, clock: ManualClock, seen_by: str
) -> None:
    ids = [boss.dispatch_task("coder", "x")["task_id"] for _ in range(2)]
    session(bus, "s1").receive_task()
    Desk(bus, CODER).receive_task()
    reap(boss)
    clock.advance(60)
    reap(boss)
    clock.jump(3 * 3600)
    if seen_by == "reaper":
        report = reap(boss)
        assert (report.recovered, report.grace) == ([], True)
    else:
        assert session(bus, "s2").receive_task()["task"] is None
    for task_id in ids:
        value = boss.task(task_id)
        assert value["status"] == "in_progress"
        assert parse_stamp(value["lease"]["until"]) == bus.now() + timedelta(seconds=600)
    assert pass_time(boss, clock, 590).recovered == []
    assert len(pass_time(boss, clock, 60).recovered) == 1  # the session's, whose end only time can tell


@pytest.mark.parametrize("by_s", [-3 * 3600, -120])
def test_a_clock_that_was_set_back_cuts_every_lease_to_one_term(
    bus: Bus, boss: Desk, clock: ManualClock, by_s: int
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    session(bus, "s1").receive_task()
    reap(boss)
    clock.jump(by_s)
    reap(boss)
    assert parse_stamp(boss.task(task_id)["lease"]["until"]) <= bus.now() + timedelta(seconds=601)
    pass_time(boss, clock, 700)
    assert boss.task(task_id)["status"] == "pending"


def test_a_wait_for_work_finds_a_lease_that_ran_out_without_any_reaper(
    bus: Bus, boss: Desk, clock: ManualClock
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    session(bus, "s1").receive_task()
    got = None
    for _ in range(30):
        got = session(bus, "s2").receive_task()["task"]
        if got:
            break
        clock.advance(60)
    assert got is not None
    assert (got["task_id"], got["attempt"]) == (task_id, 2)


def test_a_silent_holder_is_a_problem_and_goes_by_itself_only_if_asked_for(make: Make, clock: ManualClock) -> None:
    bus = make(silent_release_s=7200)
    boss, coder = Desk(bus, BOSS), Desk(bus, CODER)
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    coder.update_status(current_task_id=task_id)
    pass_time(boss, clock, 3700)
    assert any(task_id in p and "release" in p for p in boss.system_health()["problems"])
    clock.jump(3 * 3600)
    assert reap(boss).recovered == []
    assert pass_time(boss, clock, 600).recovered == []
    pass_time(boss, clock, 7200)
    value = boss.task(task_id)
    assert (value["status"], value.get("crashes", 0)) == ("pending", 0)


@pytest.mark.req("core:20")
def test_a_waiting_receive_has_a_task_within_a_second_of_its_dispatch(live: Bus, server: Callable[..., Server]) -> None:
    one = server()
    waits = []
    for _ in range(5):
        one.send({"verb": "receive_task", "args": {"wait_s": 20}})
        time.sleep(0.3)  # so that it waits: what is measured begins after it
        began = time.monotonic()
        Desk(live, BOSS).dispatch_task("coder", "x")
        got = one.answer()
        waits.append(time.monotonic() - began)
        one.submit_report(task_id=got["task"]["task_id"], summary="done")
    assert sorted(waits)[2] < 1


@pytest.mark.req("core:20")
def test_a_waiting_receive_ends_with_null_when_nothing_comes(coder: Desk) -> None:
    began = time.monotonic()
    got = coder.receive_task(wait_s=1)
    assert got["task"] is None
    assert 0.9 < time.monotonic() - began < 10


@pytest.mark.req("core:21")
async def test_a_wait_that_was_cancelled_claims_nothing(bus: Bus) -> None:
    command = commands.find("receive_task")
    async with anyio.create_task_group() as group:
        group.start_soon(partial(commands.run, bus.called_by(CODER), command, {"wait_s": 45}))
        await anyio.sleep(0.3)
        group.cancel_scope.cancel()
    sent = commands.run_sync(bus, commands.find("dispatch_task"), {"target": "coder", "instruction": "x"}).model_dump()
    other = bus.called_by(Caller(agent="coder", session="s2", channel="http"))
    got = (await commands.run(other, command, {})).model_dump()
    assert (got["task"]["task_id"], got["task"]["attempt"]) == (sent["task_id"], 1)


@pytest.mark.req("core:21")
def test_a_task_whose_answer_did_not_arrive_goes_back_uncounted(bus: Bus, boss: Desk, coder: Desk) -> None:
    boss.dispatch_task("coder", "x")
    command = commands.find("receive_task")
    result = anyio.run(partial(commands.run, coder.bus, command, {}))
    assert command.undo is not None
    command.undo(coder.bus, result)
    again = session(bus, "s2").receive_task()["task"]
    assert (again["attempt"], again.get("crashes", 0)) == (2, 0)


def test_a_long_task_is_read_to_its_end_in_parts_by_its_holder_only(bus: Bus, boss: Desk) -> None:
    boss.dispatch_task("coder", "x" * 30_000)
    boss.dispatch_task("coder", "short")
    with refused("conflict", "no task"):
        session(bus, "s1").receive_task(cursor="7000")
    assert session(bus, "s1").receive_task()["cursor"]
    for bad in ("seven", "-1", "٣", "9" * 30):
        with refused("invalid", "cursor"):
            session(bus, "s1").receive_task(cursor=bad)


def test_an_answer_says_that_the_sender_has_cancelled(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    boss.cancel_task(task_id, "no need")
    assert "cancelled" in coder.receive_task()["next"]
    assert coder.update_status(current_task_id=task_id)["cancel_requested"] is True


def test_an_expired_task_is_not_given_out_and_its_sender_sees_why(boss: Desk, coder: Desk, clock: ManualClock) -> None:
    options = f'{{"expires_at": "{stamp(NOON + timedelta(seconds=30))}"}}'
    task_id = boss.dispatch_task("coder", "x", options=options)["task_id"]
    clock.advance(30)
    assert coder.receive_task()["task"] is None
    assert boss.places(task_id) == [f"archive/2026-03/{task_id}"]
    report = boss.get_reports(task_id=task_id)["reports"][0]
    assert (report["status"], report["worker"]) == ("failed", "bus")
    assert "expired" in report["reason"]


def test_a_corrupt_dependency_stands_in_nobodys_way(bus: Bus, disk: Bus, tmp_path: Path) -> None:
    boss, coder = Desk(disk, BOSS), Desk(disk, CODER)
    a = boss.dispatch_task("other", "a")["task_id"]
    boss.dispatch_task("coder", "b", depends_on=[a])
    (tmp_path / "bus" / "inbox" / "other" / f"{a}.json").write_text("{", encoding="utf-8")
    assert coder.receive_task()["task"] is None
    with refused("corrupt", a):
        boss.get_task(a)
    assert find.find_quietly(disk, a) is None


def test_a_person_may_give_a_held_task_back(boss: Desk, coder: Desk, bus: Bus) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    assert Desk(bus, PERSON).release_task(task_id)["task_state"] == "pending"
