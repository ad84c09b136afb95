"""Worker processes that do what agents do, and a chief who kills them; for tests/e2e and scripts/soak.py."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.e2e.desk import AGENT, Desk
from tests.faces.toys import StdioServer
from tests.tools.audit import audit, tasks

PATIENCE_S = 100.0
_LOOK_S = 0.004
_PROGRESS_BYTES = 600
"""About a dozen lines of the log: on a slow machine workers would else be killed faster than they can do anything."""


def context() -> Any:
    """Processes that share nothing with this one and start fast."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([__name__])
    return made


@dataclass
class Facts:
    """What a run came to."""

    seconds: float = 0.0
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    attempts: Counter[int] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """For people."""
        return {
            "seconds": round(self.seconds, 1),
            "kills": self.kills,
            "wrong": self.wrong[:20],
            "tasks_by_attempts": {str(k): v for k, v in sorted(self.attempts.items())},
            "acts": dict(sorted(self.told.items())),
        }


def dispatch_many(root: Path, log: Path, me: int, count: int) -> None:
    """Dispatches so many tasks; their ids go to the log."""
    desk = Desk(root, durability="none")
    for n in range(count):
        sent = desk.call("dispatch_task", target=AGENT, instruction=f"{me}/{n}", from_agent="boss")
        _tell(log, "dispatched", sent["task_id"])


def work(root: Path, log: Path, me: int, agents: list[str]) -> None:
    """Receives, reports and accepts until every inbox is empty; each act goes to the log once it is answered."""
    desk = Desk(root, durability="none")
    while True:
        found = False
        for agent in agents:
            held = desk.receive(agent)
            if "task_id" not in held:
                continue
            found = True
            _tell(log, "received", held["task_id"], held["lease_id"])
            answer = _patiently(partial(desk.report, held, worker=agent, summary=f"done {me}"))
            is_first = answer.get("accepted") and not answer["duplicate"]
            _tell(log, "reported" if is_first else "refused", held["task_id"], held["lease_id"])
            answer = _patiently(partial(desk.call, "acknowledge_report", task_id=held["task_id"]))
            _tell(log, "accepted" if answer.get("already") is False else "again", held["task_id"], held["lease_id"])
        if not found:
            if not any(desk.bus.store.keys(f"inbox/{agent}") for agent in agents):
                return
            time.sleep(_LOOK_S)


def _patiently(act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    for _ in range(20):
        answer = act()
        if answer.get("code") != "busy":
            return answer
    return answer


def _tell(log: Path, *words: str) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, (" ".join(words) + "\n").encode())
    os.close(handle)


def fill(root: Path, count: int, steps: bool) -> None:
    """Dispatches tasks, each with a chain of one further task if asked."""
    desk = Desk(root, durability="none")
    options = json.dumps({"next_tasks": [{"target": "tester", "instruction": "test it"}]}) if steps else ""
    for n in range(count):
        desk.call("dispatch_task", target=AGENT, instruction=f"task {n}", from_agent="boss", options=options)


def run_crew(
    root: Path, workers: int, agents: list[str], kill_every_s: float, seed: int, patience_s: float = PATIENCE_S
) -> Facts:
    """Workers until nothing is left; with `kill_every_s` one of them is killed at random now and then, and replaced."""
    facts, chance, log = Facts(), random.Random(seed), root.with_name(f"{root.name}.log")
    start = time.monotonic()
    makes = context()
    crew: dict[int, BaseProcess] = {n: _start(makes, root, log, n, agents) for n in range(workers)}
    due = start + kill_every_s
    grown = 0
    while crew:
        for n, process in list(crew.items()):
            process.join(timeout=0.005)
            if process.exitcode is not None:
                if process.exitcode > 0:
                    facts.wrong.append(f"a worker ended with {process.exitcode}")
                del crew[n]
        size = log.stat().st_size if log.exists() else 0
        if kill_every_s and crew and time.monotonic() >= due and size >= grown:
            n = chance.choice(sorted(crew))
            crew[n].kill()
            crew[n].join()
            facts.kills += 1
            crew[n] = _start(makes, root, log, n, agents)
            grown = size + _PROGRESS_BYTES
            due = time.monotonic() + chance.uniform(0.2, 1.8) * kill_every_s
        if time.monotonic() - start > patience_s:
            facts.wrong.append(f"{len(crew)} workers are still at it after {patience_s} s")
            for process in crew.values():
                process.kill()
                process.join()
            break
    facts.seconds = time.monotonic() - start
    _read(log, facts)
    return facts


def _start(makes: Any, root: Path, log: Path, me: int, agents: list[str]) -> BaseProcess:
    process: BaseProcess = makes.Process(target=work, args=(root, log, me, agents))
    process.start()
    return process


def _read(log: Path, facts: Facts) -> None:
    """No task may be reported or accepted twice with success, no lease given twice."""
    lines = [line.split() for line in log.read_text().splitlines()]
    facts.told = Counter(line[0] for line in lines)
    for act in ("reported", "accepted"):
        twice = [name for name, n in Counter(line[1] for line in lines if line[0] == act).items() if n > 1]
        facts.wrong += [f"{name} was {act} more than once" for name in twice]
    leases = Counter(line[2] for line in lines if line[0] == "received")
    facts.wrong += [f"the lease {lease} was given {n} times" for lease, n in leases.items() if n > 1]


def finish_and_judge(root: Path, facts: Facts, expected: int, killed: bool) -> Facts:
    """Finishes what killed workers left, as the next clients would; then everything must have happened exactly once."""
    desk = Desk(root, durability="none")
    for _ in range(3):  # an acceptance may start a further task
        desk.reap()
        for key in list(desk.bus.store.keys("reports/pending")):
            desk.call("acknowledge_report", task_id=key.rpartition("/")[2])
        for agent in (AGENT, "tester"):
            while "task_id" in (held := desk.receive(agent)):
                desk.report(held, worker=agent, summary="done at last")
    desk.reap()
    return judge(root, facts, expected, killed)


def judge(root: Path, facts: Facts, expected: int, killed: bool) -> Facts:
    """Every task must be completed, after one report; and without kills at the first attempt."""
    desk = Desk(root, durability="none")
    found = tasks(desk.bus)
    facts.wrong += audit(desk.bus)
    if len(found) != expected:
        facts.wrong.append(f"there are {len(found)} tasks instead of {expected}")
    for name, places in found.items():
        task = places[0][1]
        facts.attempts[task.attempt] += 1
        events = Counter(line["event"] for line in task.history)
        if task.status != "completed" or events["submit"] != 1 or events["accept"] > 1:
            facts.wrong.append(f"{name} is {task.status} after {dict(events)}")
        if not killed and task.attempt != 1:
            facts.wrong.append(f"{name} was given out {task.attempt} times")
    return facts


@contextmanager
def servers(root: Path, count: int) -> Iterator[list[StdioServer]]:
    """MCP servers of one agent, each a process of its own."""
    command = [sys.executable, "-m", "agent_bus.faces.cli", "--root", str(root), "mcp", "--agent", AGENT]
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(StdioServer(command))
            stack.callback(made[-1].close)
        yield made


def run_servers(root: Path, count: int) -> Facts:
    """Tasks through MCP servers until nothing is left."""
    facts, start = Facts(), time.monotonic()
    with servers(root, count) as made, ThreadPoolExecutor(count) as pool:
        done = [name for names in pool.map(drain, made) for name in names]
    facts.seconds = time.monotonic() - start
    facts.told["reported"] = len(done)
    facts.wrong += [f"{name} was reported {n} times" for name, n in Counter(done).items() if n > 1]
    return facts


def drain(server: StdioServer) -> list[str]:
    """Receives and reports until nothing is left; the ids of the tasks."""
    server.start()
    done: list[str] = []
    while True:
        got: dict[str, Any] = server.call("receive_task")["structuredContent"]
        if got["task"] is None:
            return done
        task_id = str(got["task"]["task_id"])
        answer = server.call(
            "submit_report", task_id=task_id, worker=AGENT, status="completed", summary="done", lease_id=got["lease_id"]
        )
        assert answer["structuredContent"]["accepted"], answer
        assert not answer["structuredContent"]["duplicate"], answer
        done.append(task_id)


def receive_at_once(root: str) -> None:
    """For a duel: reads a moment from stdin, receives at it, prints what it got; gives the task back as completed."""
    desk = Desk(Path(root), durability="none")
    print("ready", flush=True)
    for line in sys.stdin:
        moment = float(line)
        while time.monotonic() < moment:
            pass
        held = desk.receive()
        print(json.dumps(held), flush=True)
        if "task_id" in held:
            sys.stdin.readline()
            desk.report(held)
            print("reported", flush=True)


if __name__ == "__main__":
    receive_at_once(sys.argv[1])
