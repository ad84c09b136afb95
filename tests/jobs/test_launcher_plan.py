"""The launcher's pure parts: the plan, the table of outcomes, parking and breakers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_bus.domain import launch, outcome, parking
from agent_bus.domain import run as machine
from agent_bus.domain.launch import Facts, Plan, Spent, plan
from agent_bus.domain.outcome import End, classify
from agent_bus.domain.run import ENDED, RUNNING, STARTING, Run, follow
from agent_bus.times import stamp

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)


def a_run(**changes: Any) -> Run:
    base = {"run_id": "r-t-20260307-101500-001-1", "task_id": "t-20260307-101500-001", "n": 1, "lease_id": "l"}
    base |= {"agent": "a", "worker": "a", "launcher": "claude", "host": "h", "made_at": stamp(NOW)}
    return Run.model_validate({**base, **changes})


@pytest.mark.req("launcher:3:plan")
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "started"),
        ({"stopped": "s", "off": "o"}, "waiting"),
        ({"no_launcher": "n", "parked": "p"}, "no_launcher"),
        ({"off": "o", "parked": "p"}, "off"),
        ({"other_host": "h", "parked": "p"}, "waiting"),
        ({"not_ready": "r", "parked": "p"}, "waiting"),
        ({"parked": "p", "agent_runs": (1, 1)}, "parked"),
        ({"agent_runs": (1, 1)}, "queued"),
        ({"agent_runs": (0, 2), "host_runs": (0, 3), "ahead": 2}, "queued"),
        ({"host_runs": (3, 3)}, "queued"),
        ({"session": "r-1"}, "queued"),
        ({"agent_rate": (4, 4)}, "queued"),
        ({"host_rate": (12, 12)}, "queued"),
        ({"launches": (6, 6)}, "dead_letter"),
        ({"failed_starts": "three"}, "dead_letter"),
        ({"back_off": "b"}, "waiting"),
        ({"budget": "b"}, "waiting"),
        ({"free_bytes": launch.LEAST_FREE - 1}, "waiting"),
        ({"free_bytes": launch.LEAST_FREE}, "started"),
    ],
)
def test_the_first_check_that_does_not_hold_names_the_plan(changes: dict[str, Any], word: str) -> None:
    wide = Facts(agent_runs=(0, 1), host_runs=(0, 3), agent_rate=(0, 4), host_rate=(0, 12), launches=(0, 6))
    found = plan(replace(wide, **changes))
    assert found.launch == word
    assert bool(found.reason) == (word != "started")
    assert found.start == (found == Plan("started"))


@pytest.mark.req("launcher:9:table", "launcher:26:table")
@pytest.mark.parametrize(
    ("end", "outcome", "task"),
    [
        (End(stopped=True, reported=False, cancelled=True), "stopped", "hold"),
        (End(reported=True, cancelled=True, exit_code=3), "reported", ""),
        (End(cancelled=True, ended_by="timed_out"), "cancelled", "back"),
        (End(withdrawn=True, failure="quota"), "released", ""),
        (End(ended_by="timed_out", failure="login"), "timed_out", "crash"),
        (End(ended_by="output_limit"), "output_limit", "crash"),
        (End(failure="config"), "launch_error", "back"),
        (End(failure="nested"), "launch_error", "back"),
        (End(failure="unknown_option", option="--x"), "launch_error", "again"),
        (End(failure="unknown_option", option="--x", required_option=True), "launch_error", "back"),
        (End(failure="unknown_option", option="--x", restarts=outcome.RESTARTS), "launch_error", "back"),
        (End(failure="login", exit_code=1), "login", "back"),
        (End(failure="quota", fresh=False), "quota", "back"),
        (End(failure="not_approved"), "not_approved", "back"),
        (End(failure="session_in_use"), "session_error", "again"),
        (End(failure="session_unknown", healed=True), "session_error", "back"),
        (End(ended_by="start_failed", fresh=False), "start_failed", "back"),
        (End(fresh=False, exit_code=1), "start_failed", "back"),
        (End(exit_code=0, nudges_left=1), "no_report", "again"),
        (End(exit_code=0), "no_report", "crash"),
        (End(exit_code=1, nudges_left=1), "crashed", "crash"),
        (End(exit_code=-1), "crashed", "crash"),
    ],
)
def test_an_end_is_named_by_the_first_row_that_fits(end: End, outcome: str, task: str) -> None:
    found = classify(end)
    assert (found.outcome, found.task) == (outcome, task)
    assert found.reason
    assert (found.park == "") == (outcome not in ("launch_error", "login", "quota", "not_approved") or task == "again")


def test_a_run_follows_its_table_and_nothing_else() -> None:
    running = follow(a_run(), "spawn", RUNNING, pid=7)
    again = follow(running, "again", STARTING)
    ended = follow(again, "end", ENDED)
    assert (running.pid, ended.live) == (7, False)
    for event in machine.TRANSITIONS:
        with pytest.raises(machine.NotAllowed):
            follow(ended, event, ENDED)
    assert Run.model_validate({**ended.value(), "later_key": 1}).value()["later_key"] == 1


@pytest.mark.req("launcher:8:times")
def test_parkings_last_as_named_or_double_up_to_their_bounds() -> None:
    def seconds(reason: str, count: int, named: float = 0.0) -> float:
        text = parking.until(reason, count, NOW, named, 900)
        return (datetime.fromisoformat(text) - NOW).total_seconds() if text else -1.0

    assert seconds("quota", 0, NOW.timestamp() + 5400) == 5400
    assert seconds("quota", 0, NOW.timestamp() + 10**6) == parking.QUOTA_MOST_S
    assert [seconds("quota", n) for n in range(6)] == [900, 1800, 3600, 7200, 14_400, 14_400]
    assert [seconds("breaker", n) for n in range(5)] == [600, 1200, 2400, 4800, 7200]
    assert seconds("login", 3) == 3600
    assert seconds("config", 0) == seconds("not_approved", 0) == -1


@pytest.mark.req("launcher:20:breaker")
def test_five_failures_in_a_row_break_an_agent_and_ten_in_ten_minutes_all() -> None:
    def ended(agent: str, outcomes: list[str], minutes: float = 1.0) -> list[Run]:
        moments = [NOW - timedelta(minutes=minutes, seconds=-n) for n in range(len(outcomes))]
        return [
            a_run(agent=agent, outcome=o, ended_at=stamp(m), state=ENDED)
            for o, m in zip(outcomes, moments, strict=True)
        ]

    assert parking.broken(ended("a", ["crashed"] * 5), "a")
    assert not parking.broken(ended("a", ["crashed"] * 4), "a")
    assert not parking.broken(ended("a", ["crashed"] * 4 + ["reported"] + ["no_report"] * 4), "a")
    assert parking.broken(ended("a", ["crashed"] * 4 + ["void", "start_failed"]), "a")
    assert not parking.broken(ended("a", ["crashed"] * 5), "b")
    both = ended("a", ["crashed"] * 5) + ended("b", ["no_report"] * 5)
    assert parking.broken_everywhere(both, NOW)
    assert not parking.broken_everywhere(both[:9], NOW)
    assert not parking.broken_everywhere(ended("a", ["crashed"] * 20, minutes=11), NOW)


@pytest.mark.req("launcher:30:sums")
def test_budgets_name_the_first_cap_that_is_reached() -> None:
    caps = launch.Caps(task_usd=2.0, agent_day_usd=5.0, host_day_usd=9.0)
    none = Spent()
    assert launch.over_budget("a", caps, none, Spent(4.99), none) == ""
    assert launch.over_budget("a", caps, none, Spent(5.12), none) == "agent a spent 5.12 of 5.00 USD today"
    assert "the task spent 2.00 of 2.00" in launch.over_budget("a", caps, Spent(2.0), Spent(9.0), none)
    granted = replace(caps, granted_usd=3.0)
    assert launch.over_budget("a", granted, Spent(2.0), Spent(9.0), Spent(99.0)) == ""
    assert "of 3.00" in launch.over_budget("a", granted, Spent(3.0), none, none)
    assert launch.left_usd(caps, Spent(0.5), Spent(4.0), none) == 1.0
    assert launch.left_usd(launch.Caps(), none, none, none) == 0.0
    assert launch.runtime_s(9000, 600, 7200, 28_800) == 9000
    assert launch.runtime_s(99_000, 0, 7200, 28_800) == 28_800
    assert launch.runtime_s(0, 600, 7200, 28_800) == 600
