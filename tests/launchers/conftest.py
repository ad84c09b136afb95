"""Real processes, all gone after each test."""

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from agent_bus.launchers import process
from agent_bus.launchers.environment import RUN_ID
from agent_bus.launchers.trees import Tree

PATIENCE_S = 20.0


def wait_until(is_so: Callable[[], object]) -> None:
    """Waits a bounded time."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host id stays out of the user's way."""
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state-home"))


@dataclass
class Runs:
    """Starts scripted programs; each writes the pids of its processes into files named as it likes."""

    folder: Path
    trees: list[Tree] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """The log of all of them."""
        return self.folder / "1.log"

    def start(self, program: str, *, stdin: Path | None = None, run_id: str = "") -> Tree:
        """A program in Python as a run of its own; `here` in it is the folder, `say(name)` tells the caller's pid."""
        run_id = run_id or f"r-t-{secrets.token_hex(6)}-1"
        script = self.folder / f"{run_id}.py"
        script.write_text(PRELUDE + program, encoding="utf-8")
        env = {**os.environ, RUN_ID: run_id, "HERE": str(self.folder)}
        child = process.spawn([sys.executable, str(script)], cwd=self.folder, env=env, stdin=stdin, log=self.log)
        self.trees.append(Tree(run_id, child.pid, child.pid_started))
        return self.trees[-1]

    def pid(self, name: str) -> int:
        """The pid that a program told under a name, once it has."""
        file = self.folder / f"{name}.pid"
        wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
        return int(file.read_text())


PRELUDE = """
import os, signal, subprocess, sys, time
here = os.environ["HERE"]
def say(name):
    with open(os.path.join(here, name + ".pid"), "w") as file:
        file.write(f"{os.getpid()}\\n")
def sleep():
    while True:
        time.sleep(60)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """A place to start runs; whatever they leave is killed."""
    started = Runs(tmp_path)
    yield started
    for file in tmp_path.glob("*.pid"):
        with suppress(psutil.Error, ValueError):
            found = psutil.Process(int(file.read_text()))
            if found.create_time() >= tmp_path.stat().st_ctime - 60 and "python" in found.name():
                found.kill()
    for tree in started.trees:
        assert tree.end(0.0) == []
        process.forget(tree.pid, tree.pid_started)


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
