"""Many real processes on one bus: no task is lost, none is done twice, whoever is killed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.desk import AGENT, Desk
from tests.tools import crew
from tests.tools.audit import audit, tasks
from tests.tools.desk import CHECKOUT

WORKERS = 8
pytestmark = pytest.mark.timeout(120)  # seconds on a quiet machine, more on a busy one


@pytest.mark.req("core:2")
def test_two_thousand_dispatches_by_eight_processes_are_two_thousand_tasks(root: Path, tmp_path: Path) -> None:
    Desk(root, durability="none")
    log, makes = tmp_path / "log", crew.context()
    processes = [makes.Process(target=crew.dispatch_many, args=(root, log, n, 250)) for n in range(WORKERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=100)
    assert [process.exitcode for process in processes] == [0] * WORKERS
    told = [line.split()[1] for line in log.read_text().splitlines()]
    bus = Desk(root).bus
    found = tasks(bus)
    assert len(told) == len(set(told)) == len(found) == 2000
    assert set(told) == set(found)
    written = {places[0][1].instruction for places in found.values()}
    assert written == {f"{me}/{n}" for me in range(WORKERS) for n in range(250)}
    assert audit(bus) == []


@pytest.mark.req("core:39")
def test_eight_workers_do_five_hundred_tasks_once_each(root: Path) -> None:
    crew.fill(root, 500, steps=False)
    facts = crew.run_crew(root, WORKERS, [AGENT], kill_every_s=0, seed=1)
    crew.finish_and_judge(root, facts, 500, killed=False)
    assert facts.wrong == []
    assert facts.told == {"received": 500, "reported": 500, "accepted": 500}


@pytest.mark.req("core:39")
@pytest.mark.parametrize("seed", [1])
def test_workers_that_are_killed_at_random_moments_finish_every_task_once(root: Path, seed: int) -> None:
    crew.fill(root, 200, steps=True)
    facts = crew.run_crew(root, WORKERS, [AGENT, "tester"], kill_every_s=0.05, seed=seed)
    crew.finish_and_judge(root, facts, 400, killed=True)
    assert facts.wrong == []
    assert facts.kills > 5


@pytest.mark.req("core:39")
def test_eight_mcp_servers_do_sixty_tasks_once_each(root: Path) -> None:
    crew.fill(root, 60, steps=False)
    facts = crew.run_servers(root, WORKERS)
    crew.judge(root, facts, 60, killed=False)
    assert facts.wrong == []
    assert facts.told["reported"] == 60


ROUNDS = 200
"""1,000 by hand; the number changes only how often the two meet."""


@pytest.mark.req("core:12")
def test_of_two_that_receive_at_the_same_instant_exactly_one_gets_the_task_every_time(root: Path) -> None:
    desk = Desk(root, durability="none")
    command = [sys.executable, "-m", "tests.tools.crew", str(root)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
        for _ in range(2)
    ]
    wins = [0, 0]
    try:
        assert [_line(process) for process in both] == ["ready", "ready"]
        for number in range(ROUNDS):
            sent = desk.call("dispatch_task", target=AGENT, instruction=f"round {number}", from_agent="boss")
            moment = time.monotonic() + 0.002
            for process in both:
                _say(process, str(moment))
            got = [json.loads(_line(process)) for process in both]
            winners = [n for n in (0, 1) if got[n].get("task_id") == sent["task_id"]]
            assert len(winners) == 1, got
            assert got[1 - winners[0]] == {}, got
            wins[winners[0]] += 1
            _say(both[winners[0]], "report")
            assert _line(both[winners[0]]) == "reported"
    finally:
        for process in both:
            process.kill()
            process.communicate()
    assert min(wins) > 0, "one of them always came first: that was no race"


def _say(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin
    process.stdin.write(text + "\n")
    process.stdin.flush()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()
