"""Kills a launcher before each of its commits and around its spawn, and looks at what the next one makes of it.

    python -m tests.jobs.launch_points WORK

Prints one JSON object: how many points there were, and what was wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agent_bus import app
from agent_bus.bus import Bus
from agent_bus.clock import SystemClock
from agent_bus.commands import bind
from agent_bus.jobs.launcher import LauncherJob
from agent_bus.launchers import process
from agent_bus.operations import find, runs
from agent_bus.settings import Settings
from agent_bus.store import exclusive
from agent_bus.store.layout import Layout
from tests.jobs.yard import STAND_IN, Door
from tests.tools.audit import audit
from tests.tools.kill_points import in_child

_MANY = 200
SLOW_S = 20.0


def main(work: Path) -> None:
    wrong: list[str] = []
    for number in range(1, _MANY):
        place = work / f"{number:03d}"
        bus, task_id = _prepare(place)
        door = Door(bus)
        (place / "command.json.door").write_text(str(door.port), encoding="ascii")
        reached = _killed(number, bus)
        wrong += [f"point {number}: {w}" for w in in_child(partial(_go_on, task_id, place))]
        door.close()
        bus.close()
        if not reached:
            print(json.dumps({"points": number - 1, "wrong": wrong}))
            return
    raise AssertionError("the act has no end")


def _prepare(place: Path) -> tuple[Bus, str]:
    for name in ("bus", "work"):
        (place / name).mkdir(parents=True)
    scenario = {"rest": [["print", "x"], ["report"], ["sleep", 5]]}
    (place / "command.json").write_text(json.dumps(scenario), encoding="utf-8")
    Layout.of(place / "bus").make(SystemClock().now())
    bus = app.open_bus(_settings(place))
    task_id = str(bind(bus).dispatch_task(target="worker", instruction="x", from_agent="boss").task_id)
    return bus, task_id


def _settings(place: Path) -> Settings:
    command = [sys.executable, "-S", "-E", str(STAND_IN), str(place / "command.json")]
    agent = {"launcher": "command", "permission": "full", "work_dir": str(place / "work"), "command": command}
    launcher = {"grace_s": 1, "launches_per_minute": 120}
    agents = {"worker": {**agent, "launches_per_minute": 120}}
    values = {"root": str(place / "bus"), "durability": "none", "launcher": launcher, "agents": agents}
    return Settings.model_validate({**values, "backoff_s": 1, "backoff_max_s": 1})


def _killed(number: int, bus: Bus) -> bool:
    """Runs a launcher that is killed before its n-th commit; False once it comes to its end before."""
    pid = os.fork()
    if pid == 0:
        try:
            Fuse(number).arm()
            _until_over(bus)
            os._exit(0)
        finally:
            os._exit(9)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the launcher failed"
    return False


class Fuse:
    """Kills this process before its n-th commit (a name given, moved or taken away) or side of a spawn."""

    def __init__(self, number: int) -> None:
        self.left = number

    def arm(self) -> None:
        for name in ("link", "rename", "replace", "unlink"):
            setattr(os, name, self._around(getattr(os, name)))
        exclusive.rename = self._around(exclusive.rename)
        start = process._start
        process._start = self._around(start, after=True)

    def _around(self, call: Callable[..., Any], after: bool = False) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._burn()
            done = call(*args, **kwargs)
            if after:
                self._burn()
            return done

        return counted

    def _burn(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _until_over(bus: Bus) -> None:
    """A launcher at work until nothing is open."""
    job = LauncherJob(0.1)
    deadline = time.monotonic() + SLOW_S
    while time.monotonic() < deadline:
        job.tick(bus, bus.now())
        if not bus.store.keys(runs.LIVE) and not bus.store.keys("inbox/worker"):
            return
        time.sleep(0.02)


def _go_on(task_id: str, place: Path) -> list[str]:
    fresh = app.open_bus(_settings(place))
    _until_over(fresh)
    task = find.need(fresh, task_id).task
    made = runs.of_task(fresh, task_id)
    wrong = [] if (task.status, task.crashes) == ("completed", 0) else [f"it is {task.status}, crashes {task.crashes}"]
    wrong += [f"{r.run_id} is {r.state}" for r in made if r.live]
    reported = [r.outcome for r in made]
    wrong += [] if reported.count("reported") == 1 and set(reported) <= {"reported", "void"} else [f"runs: {reported}"]
    starts = len(list(place.glob("command.json.d/[0-9]*.json")))
    wrong += [] if starts == 1 else [f"{starts} starts"]
    wrong += [f"the mark {k} is left" for k in fresh.store.keys(runs.LIVE)]
    wrong += [f"{r.run_id} still runs" for r in made if runs.tree(r).alive()]
    return wrong + audit(fresh)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
