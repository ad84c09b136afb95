"""Daemons that are killed, stops and resumes, two launchers at once: no task is lost or run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_bus import host
from agent_bus.domain.run import Run
from agent_bus.faces.cli_hook import stop_answer
from agent_bus.jobs import launch_start
from agent_bus.operations import claim, runs, stop
from tests.jobs.yard import AGENT, CHECKOUT, REPORT, SYSTEM, MakeYard, Yard, gone

HELD = [["print", "x"], ["sleep", 60]]
DEAD = {"pid": 1, "pid_started": "1"}
"""A process of this boot that is not there any more: pid 1 was started at another time."""


def orphan(yard: Yard, task_id: str, **changes: Any) -> Run:
    """The run document of a launcher that has died, at some step of its order of writes."""
    mine = host.as_record(host.this_process())
    base = {
        "task_id": task_id,
        "n": 1,
        "run_id": f"r-{task_id}-1-{os.urandom(4).hex()}",
        "lease_id": "lease-1",
        "agent": AGENT,
        "worker": AGENT,
    }
    base |= {"launcher": "claude", "host": host.host_id(), "owner": {**mine, **DEAD}, "made_at": yard.bus.stamp()}
    made = runs.make(yard.bus, Run.model_validate({**base, "work_dir": str(yard.work), "thread": "main", **changes}))
    assert made is not None
    return made.run


def claimed(yard: Yard, run: Run) -> None:
    """The claim that the dead launcher had made for the run."""
    holder = launch_start._holder(run).model_copy(update=DEAD)
    assert claim.take(yard.bus, f"inbox/{AGENT}/{run.task_id}", AGENT, holder, run.lease_id) is not None


@pytest.mark.req("launcher:22")
def test_a_run_outlives_its_daemon_and_the_next_one_takes_it_up(yard: Yard) -> None:
    yard.script([SYSTEM, ["wait_for", str(yard.place / "go")], REPORT])
    first = yard.daemon()
    task_id = yard.dispatch()["task_id"]
    run = yard.running(task_id)
    yard.started(1)
    yard.kill(first)
    yard.start()
    yard.until(lambda: yard.runs(task_id)[0].owner["pid"] == os.getpid())
    (yard.place / "go").touch()
    done = yard.ended(task_id)
    assert (done.outcome, done.run_id, done.exit_code) == ("reported", run.run_id, -1)
    assert len(yard.starts()) == 1


@pytest.mark.req("launcher:23")
def test_a_claim_without_a_process_goes_back_and_is_not_counted(yard: Yard) -> None:
    yard.script()
    task_id = yard.dispatch()["task_id"]
    claimed(yard, orphan(yard, task_id))
    yard.start()
    assert yard.ended(task_id, 1).outcome == "void"
    assert yard.ended(task_id, 2).outcome == "reported"
    assert yard.task(task_id).crashes == 0


@pytest.mark.req("launcher:24")
def test_a_foreign_process_that_got_the_pid_is_never_signalled(yard: Yard) -> None:
    yard.script()
    task_id = yard.dispatch()["task_id"]
    foreign = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    try:
        run = orphan(yard, task_id, state="running", pid=foreign.pid, pid_started="2020-01-01T00:00:00.000Z")
        claimed(yard, run)
        yard.call("cancel_task", task_id=task_id)
        yard.start()
        assert yard.ended(task_id).outcome == "cancelled"
        assert yard.task(task_id).status == "cancelled"
        assert foreign.poll() is None
        assert psutil.Process(foreign.pid).status() != psutil.STATUS_STOPPED
    finally:
        foreign.kill()
        foreign.wait()


TASKS = 40
"""200 by hand; the number changes only how often the two meet."""


@pytest.mark.req("launcher:25")
def test_two_launchers_give_each_task_exactly_one_run(make_yard: MakeYard) -> None:
    yard = make_yard({"launcher": "command", "permission": "full", "max_concurrent": 12}, launcher={"max_runs": 24})
    yard.script()
    tasks = [yard.dispatch(f"{n}", context='{"session": "new"}')["task_id"] for n in range(TASKS)]
    for _ in range(2):
        yard.daemon("quick")
    yard.until(lambda: len(yard.bus.store.keys(f"archive/{tasks[0][2:6]}-{tasks[0][6:8]}")) == TASKS, 60)
    yard.until(lambda: not yard.bus.store.keys(runs.LIVE))
    counts = Counter(r.outcome for t in tasks for r in yard.runs(t))
    assert counts["reported"] == TASKS, counts
    assert counts.keys() <= {"reported", "void"}
    assert len(yard.starts()) == TASKS
    assert {yard.task(t).status for t in tasks} == {"completed"}


@pytest.mark.req("launcher:28")
def test_a_stop_ends_every_tree_and_a_resume_puts_the_tasks_back(make_yard: MakeYard) -> None:
    yard = make_yard({"max_concurrent": 2})
    late = [["born_late"], ["child", "sleep"], *HELD]
    yard.script(late, late)
    yard.start()
    tasks = [yard.dispatch(context=json.dumps({"session": "new"}))["task_id"] for _ in range(3)]
    live = [yard.running(t) for t in tasks[:2]]
    yard.until(lambda: len(yard.children()) == 2)
    answer = yard.call("emergency_stop", reason="fire")
    assert sorted(answer["stopped"]) == sorted(r.run_id for r in live)
    assert answer["survivors"] == []
    assert len(yard.children()) == 4
    assert all(map(gone, [r.pid for r in live] + yard.children()))
    assert [r.outcome for t in tasks[:2] for r in yard.runs(t)] == ["stopped", "stopped"]
    assert [yard.task(t).status for t in tasks] == ["in_progress", "in_progress", "pending"]
    yard.script(rest=[REPORT])
    assert len(yard.starts()) == 2
    yard.call("resume")
    assert {yard.status(t, "completed").crashes for t in tasks} == {0}


@pytest.mark.req("launcher:28")
def test_a_stop_also_names_the_runs_that_their_launcher_has_ended_for_it(make_yard: MakeYard) -> None:
    yard = make_yard()
    yard.script(HELD)
    yard.start()
    task_id = yard.dispatch()["task_id"]
    run = yard.running(task_id)
    stop.begin(yard.bus, {"epoch": "e1", "at": yard.bus.stamp(), "by": "boss", "reason": "fire", "mode": "kill"})
    yard.until(lambda: not yard.runs(task_id)[0].live)
    assert yard.call("emergency_stop")["stopped"] == [run.run_id]
    (yard.bus.layout.stop_file).write_text('{"epoch": "e2", "at": "once upon a time"}')  # type: ignore[union-attr]
    assert yard.call("emergency_stop")["stopped"] == []


@pytest.mark.req("launcher:29")
def test_a_frozen_run_stands_still_over_a_restart_and_goes_on_with_a_fresh_lease(yard: Yard) -> None:
    counter = yard.place / "counter"
    yard.script([["print", "x"], ["tick", str(counter)], REPORT])
    daemon = yard.daemon()
    task_id = yard.dispatch()["task_id"]
    run = yard.running(task_id)
    yard.until(counter.exists)
    assert yard.call("emergency_stop", mode="freeze")["frozen"] == [run.run_id]
    yard.kill(daemon)
    stood = counter.read_text()
    yard.daemon()
    yard.until(lambda: yard.runs(task_id)[0].owner["pid"] == yard.daemons[-1].pid)
    assert psutil.Process(run.pid).status() == psutil.STATUS_STOPPED
    assert counter.read_text() == stood
    yard.call("resume")
    yard.until(lambda: counter.read_text() != stood)
    lease = yard.task(task_id).lease
    assert lease is not None
    Path(f"{counter}.end").touch()
    assert yard.ended(task_id).outcome == "reported"
    assert len(yard.starts()) == 1


@pytest.mark.req("launcher:29:requeue")
def test_a_frozen_run_is_ended_by_a_resume_that_gives_everything_back(yard: Yard) -> None:
    yard.script([["print", "x"], ["sleep", 60]])
    yard.start()
    task_id = yard.dispatch()["task_id"]
    run = yard.running(task_id)
    yard.started(1)
    yard.call("emergency_stop", mode="freeze")
    assert yard.call("resume", requeue=True)["requeued"] == [task_id]
    assert gone(run.pid)
    assert yard.ended(task_id, 2).outcome == "reported"
    assert yard.task(task_id).crashes == 0


@pytest.mark.req("launcher:34")
def test_the_stop_hook_holds_a_run_without_a_report_once(yard: Yard) -> None:
    task_id = yard.dispatch()["task_id"]
    run = orphan(yard, task_id)
    claimed(yard, run)
    env = {"AGENT_BUS_ROOT": str(yard.root), "AGENT_BUS_TASK_ID": task_id, "AGENT_BUS_LEASE_ID": run.lease_id}
    env |= {"AGENT_BUS_RUN_ID": run.run_id, "PATH": os.environ["PATH"]}
    plain = {"hook_event_name": "Stop", "stop_hook_active": False}
    assert stop_answer("{broken", env) == ""
    assert stop_answer(json.dumps(plain | {"stop_hook_active": True}), env) == ""
    assert stop_answer(json.dumps(plain | {"background_tasks": [{"id": 1}]}), env) == ""
    assert stop_answer(json.dumps(plain), env | {"AGENT_BUS_LEASE_ID": "another"}) == ""
    assert stop_answer(json.dumps(plain), {}) == ""
    stopped = yard.root / ".bus" / "stop.json"
    stopped.touch()
    assert stop_answer(json.dumps(plain), env) == ""
    stopped.unlink()
    words = [sys.executable, "-X", "importtime", "-m", "agent_bus.faces.cli_hook", "stop"]
    told = subprocess.run(
        words, input=json.dumps(plain), env=env, cwd=CHECKOUT, text=True, capture_output=True, check=True
    )
    assert json.loads(told.stdout)["decision"] == "block"
    assert task_id in told.stdout
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in told.stderr.splitlines() if "|" in line}
    assert not imported & {"mcp", "pydantic", "click", "anyio", "psutil"}
    assert stop_answer(json.dumps(plain), env) == ""


@pytest.mark.req("launcher:34:report")
def test_the_stop_hook_lets_a_run_end_that_has_reported(yard: Yard) -> None:
    yard.script([REPORT, *HELD])
    yard.start(linger_s=60)
    task_id = yard.dispatch()["task_id"]
    yard.status(task_id, "completed")
    env = yard.starts()[0]["env"]
    assert env["AGENT_BUS_TASK_ID"] == task_id
    assert stop_answer('{"stop_hook_active": false}', env) == ""


@pytest.mark.req("launcher:22:points", "launcher:23:points")
def test_a_launcher_killed_before_or_after_any_commit_loses_and_doubles_nothing(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("AGENT_BUS_")}
    env["AGENT_BUS_STATE_HOME"] = str(tmp_path / "state")
    words = [sys.executable, "-m", "tests.jobs.launch_points", str(tmp_path)]
    done = subprocess.run(words, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["points"] >= 10


def test_two_buses_that_gave_one_task_id_never_end_each_others_runs(make_yard: MakeYard) -> None:
    yards = [make_yard(), make_yard()]
    same = "t-20260307-101500-001"
    for yard in yards:
        yard.script([["print", "x"], ["wait_for", str(yard.place / "go")], REPORT])
        made = yard.task(yard.dispatch(not_before="2099-01-01T00:00:00Z")["task_id"])
        free = made.model_copy(update={"task_id": same, "status": "pending", "not_before": ""})
        yard.bus.store.create(f"inbox/{AGENT}/{same}", free.value())
        yard.start()
    first, second = (yard.running(same) for yard in yards)
    yards[0].call("cancel_task", task_id=same)
    assert yards[0].ended(same).outcome == "cancelled"
    assert not gone(second.pid)
    (yards[1].place / "go").touch()
    assert yards[1].ended(same).outcome == "reported"
    assert first.run_id != second.run_id
