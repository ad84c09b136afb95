"""How runs end, and what their end means for task and agent."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from agent_bus.operations import parking, runs
from agent_bus.times import parse_stamp, stamp
from tests.jobs.yard import AGENT, REPORT, RESULT, SYSTEM, MakeYard, Yard, gone

HELD = [["print", "x"], ["sleep", 60]]


def failing(words: str, **more: Any) -> list[list[Any]]:
    return [
        ["print", json.dumps({"type": "result", "subtype": "success", "is_error": True, "result": words, **more})],
        ["exit", 1],
    ]


@pytest.mark.req("launcher:6")
def test_an_end_without_a_report_is_asked_for_it_once_and_then_counts_as_a_crash(yard: Yard) -> None:
    yard.script([SYSTEM, ["print", "I am done"]], [SYSTEM, ["print", "really done"]], HELD)
    yard.start()
    task_id = yard.dispatch()["task_id"]
    run = yard.ended(task_id)
    first, second = yard.starts()[:2]
    assert (run.outcome, run.nudges) == ("no_report", 1), yard.story()
    assert (
        first["argv"][first["argv"].index("--session-id") + 1] == second["argv"][second["argv"].index("--resume") + 1]
    )
    task = yard.task(task_id)
    assert task.crashes == 1
    recovered = next(h for h in task.history if h["event"] == "recover")
    assert "exited_without_report" in recovered["note"]
    assert "really done" in recovered["note"]


@pytest.mark.req("launcher:38", "launcher:9", "launcher:10")
def test_a_report_counts_whatever_the_exit_code_and_no_nudge_means_a_crash_at_once(make_yard: MakeYard) -> None:
    yard = make_yard(launcher={"nudges": 0})
    yard.script([REPORT, ["exit", 3]], [REPORT, *HELD], [["print", "polite"], ["exit", 0]], HELD)
    yard.start()
    broken = yard.ended(yard.dispatch()["task_id"])
    assert (broken.outcome, broken.exit_code) == ("reported", 3)
    lingering = yard.ended(yard.dispatch()["task_id"])
    assert lingering.outcome == "reported"
    assert gone(lingering.pid)
    polite = yard.dispatch()["task_id"]
    assert yard.ended(polite).outcome == "no_report"
    assert yard.task(polite).crashes == 1


@pytest.mark.req("launcher:7")
def test_a_login_failure_parks_the_agent_once_for_all_its_tasks(yard: Yard) -> None:
    yard.script(failing("Not logged in · Please run /login"))
    tasks = [yard.dispatch()["task_id"] for _ in range(5)]
    yard.start()
    run = yard.ended(tasks[0])
    assert run.outcome == "login", yard.story()
    assert yard.dispatch()["launch"] == "parked"
    assert [(t.status, t.crashes) for t in map(yard.task, tasks)] == [("pending", 0)] * 5
    assert len(yard.events("agent.parked")) == 1
    assert len(yard.starts()) == 1
    assert "parked" in yard.call("get_task", task_id=tasks[1])["why"]
    yard.script(rest=[REPORT])
    yard.call("unpark", agent=AGENT)
    assert all(yard.ended(t, 2 if t == tasks[0] else 1).outcome == "reported" for t in tasks)


@pytest.mark.req("launcher:8")
def test_a_quota_parks_the_account_until_its_named_end_and_one_run_tries_then(make_yard: MakeYard) -> None:
    reset = int(time.time()) + 90 * 60
    limit = failing(f"Claude AI usage limit reached|{reset}")
    table = {"account": "shared"}
    yard = make_yard(agents={"one": table, "two": table}, launcher={"max_runs": 1})
    for name in ("one", "two"):
        yard.script(rest=limit, agent=name)
    tasks = [yard.dispatch(target=n)["task_id"] for n in ("one", "two") for _ in range(10)]
    yard.start()
    ended = yard.until(lambda: [r for t in tasks for r in yard.runs(t) if not r.live])
    yard.until(lambda: not yard.bus.store.keys(runs.LIVE))
    name = parking.name_of(account="shared")
    doc = yard.bus.store.get(f"{parking.PREFIX}/{name}")
    assert doc is not None
    assert abs(parse_stamp(doc.value["until"]).timestamp() - reset) < 1
    assert [r.outcome for r in ended] == ["quota"]
    assert doc.value["agents"] == ["one", "two"]
    assert {yard.dispatch(target=n)["launch"] for n in ("one", "two")} == {"parked"}
    for agent in ("one", "two"):
        yard.script(rest=[["print", "x"], ["wait_for", str(yard.place / "go")], REPORT], agent=agent)
    past = {**doc.value, "until": stamp(datetime.now(UTC) - timedelta(seconds=1))}
    yard.bus.store.replace(doc, past)
    yard.until(lambda: len(yard.starts("one")) + len(yard.starts("two")) == 2)
    assert {yard.dispatch(target=n)["launch"] for n in ("one", "two")} <= {"parked", "queued"}
    (yard.place / "go").touch()
    yard.until(lambda: not yard.bus.store.exists(f"{parking.PREFIX}/{name}"))


@pytest.mark.req("launcher:16", "launcher:17")
def test_children_end_with_their_run_and_a_tree_that_ignores_term_is_killed(yard: Yard) -> None:
    yard.script(
        [["print", "x"], ["child", "sleep"], REPORT, ["exit", 0]],
        [["deaf"], ["child", "deaf"], ["child", "deaf"], ["child", "deaf"], *HELD],
    )
    yard.start()
    first = yard.ended(yard.dispatch()["task_id"], seconds=10)
    assert first.outcome == "reported"
    (orphan,) = yard.children()
    assert gone(orphan)
    second = yard.dispatch()["task_id"]
    yard.until(lambda: len(yard.children()) == 4)
    yard.call("cancel_task", task_id=second)
    run = yard.ended(second)
    assert run.outcome == "cancelled", yard.story()
    assert yard.task(second).status == "cancelled"
    assert all(map(gone, [run.pid, *yard.children()]))


@pytest.mark.req("launcher:18")
def test_a_run_without_a_sign_of_life_is_ended_and_the_third_makes_a_dead_letter(make_yard: MakeYard) -> None:
    yard = make_yard(launcher={"start_s": 1})
    yard.script(rest=[["sleep", 60]])
    yard.start()
    task_id = yard.dispatch()["task_id"]
    task = yard.status(task_id, "dead_letter")
    assert [r.outcome for r in yard.runs(task_id)] == ["start_failed"] * 3
    assert task.crashes == 0
    assert "start_failed" in task.reason


@pytest.mark.req("launcher:19")
def test_a_run_that_lasts_too_long_is_ended_and_counted(make_yard: MakeYard) -> None:
    yard = make_yard({"runtime_s": 1}, max_attempts=1)
    yard.script(rest=HELD)
    yard.start()
    task_id = yard.dispatch()["task_id"]
    run = yard.ended(task_id)
    assert run.outcome == "timed_out"
    assert gone(run.pid)
    spent = parse_stamp(run.ended_at) - parse_stamp(run.started_at)
    assert spent.total_seconds() >= 1
    assert yard.status(task_id, "dead_letter").crashes == 1


@pytest.mark.req("launcher:20")
def test_a_crash_runs_again_after_a_pause_until_the_attempts_are_used_up(yard: Yard) -> None:
    yard.script(rest=[["print", "boom"], ["exit", 7]])
    yard.start()
    task_id = yard.dispatch()["task_id"]
    task = yard.status(task_id, "dead_letter")
    made = yard.runs(task_id)
    assert [(r.outcome, r.exit_code) for r in made] == [("crashed", 7)] * 3
    assert task.crashes == 3
    assert "boom" in task.reason or "boom" in task.history[-1]["note"]
    assert all(after.made_at >= before.retry_at for before, after in pairwise(made))


@pytest.mark.req("launcher:20:cap")
def test_a_task_is_not_started_more_often_than_it_may_be(make_yard: MakeYard) -> None:
    yard = make_yard(launcher={"max_launches": 2}, max_attempts=9)
    yard.script(rest=[["print", "boom"], ["exit", 7]])
    yard.start()
    task_id = yard.dispatch()["task_id"]
    task = yard.status(task_id, "dead_letter")
    assert len(yard.runs(task_id)) == 2
    assert task.reason.startswith("launch_cap")
    yard.script(rest=[REPORT])
    yard.call("retry_task", task_id=task_id)
    yard.status(task_id, "completed")


@pytest.mark.req("launcher:26", "launcher:40")
def test_each_cli_has_its_own_signs_of_failure(make_yard: MakeYard) -> None:
    names = ("login", "folder", "turns")
    agents: dict[str, dict[str, Any]] = {n: {"launcher": "gemini", "account": n} for n in names}
    agents["coder"] = {"launcher": "codex"}
    yard = make_yard(agents=agents, launcher={"max_runs": 4})
    error = json.dumps({"error": {"type": "FatalAuthenticationError", "message": "no credentials", "code": 41}})
    yard.script([["stderr", error], ["exit", 41]], agent="login")
    yard.script([["stderr", "this folder is not trusted"], ["exit", 55]], agent="folder")
    yard.script(rest=[["print", "x"], ["exit", 53]], agent="turns")
    call: dict[str, Any] = {"type": "mcp_tool_call", "server": "bus", "tool": "receive_task", "status": "failed"}
    call |= {"error": {"message": "user cancelled MCP tool call"}}
    yard.script([["print", json.dumps({"type": "item.completed", "item": call})]], agent="coder")
    yard.start()
    ended = {n: yard.ended(yard.dispatch(target=n)["task_id"]) for n in agents}
    assert {n: r.outcome for n, r in ended.items()} == {
        "login": "login",
        "folder": "launch_error",
        "turns": "crashed",
        "coder": "not_approved",
    }, yard.story()
    problems = yard.call("system_health")["problems"]
    assert any("allow the bus's tools in codex" in p for p in problems), problems


@pytest.mark.req("launcher:27")
def test_much_output_is_cut_and_never_read_into_memory_as_a_whole(make_yard: MakeYard) -> None:
    import tracemalloc

    yard = make_yard(launcher={"log_keep_bytes": 2_097_152})
    yard.script([SYSTEM, ["flood", 40], RESULT, REPORT])
    yard.start()
    task_id = yard.dispatch()["task_id"]
    yard.running(task_id)
    tracemalloc.start()
    run = yard.ended(task_id, seconds=40)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    log = runs.file(yard.bus, run, "log")
    assert run.outcome == "reported"
    assert run.cost_usd == 0.6
    assert log.stat().st_size < 2_200_000
    assert b"#agent-bus cut:" in log.read_bytes()
    assert peak < 50 * 1024 * 1024


def test_a_run_that_does_nothing_is_named_once_and_goes_on(make_yard: MakeYard) -> None:
    yard = make_yard(launcher={"idle_warn_s": 1}, agent={"env": {"OWN_TOKEN": "hush-hush-value"}})
    yard.script([["print", "my hush-hush-value"], ["wait_for", str(yard.place / "go")], REPORT])
    yard.start()
    task_id = yard.dispatch()["task_id"]
    (line,) = yard.until(lambda: yard.events("run.idle"))
    assert line["last"][-1] == "my ‹redacted›"
    assert yard.runs(task_id)[0].live
    (yard.place / "go").touch()
    assert yard.ended(task_id).outcome == "reported"
    assert len(yard.events("run.idle")) == 1


@pytest.mark.req("launcher:30")
def test_a_spent_budget_is_told_in_words_and_a_person_raises_it(make_yard: MakeYard) -> None:
    yard = make_yard({"day_cost_usd": 1.0})
    whole = [
        RESULT[0],
        RESULT[1].replace("0.6", "1.2"),
    ]  # of a session that goes on, this CLI tells what all of it cost
    yard.script([REPORT, RESULT], rest=[REPORT, whole])
    yard.start()
    for _ in range(2):
        assert yard.ended(yard.dispatch()["task_id"]).cost_usd == pytest.approx(0.6)
    third = yard.dispatch()
    assert third["launch"] == "waiting"
    assert "spent 1.20 of 1.00 USD today" in third["next"]
    assert "spent 1.20 of 1.00 USD today" in yard.call("get_task", task_id=third["task_id"])["why"]
    yard.call("budget", task_id=third["task_id"], cost="3")
    assert yard.ended(third["task_id"]).outcome == "reported"
