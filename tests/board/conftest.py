"""Buses for the tests of the board and its kin, a folder to work in, and a process whose forks race and die."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bus.bus import Bus
from tests.tools.buses import bus, clock, disk, engine, live, make, server, state_home  # noqa: F401 (fixtures)
from tests.tools.desk import CHECKOUT, Desk

Judge = Callable[[str], Any]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """The folder of somebody's project."""
    made = tmp_path / "my shop"
    made.mkdir()
    return str(made)


@pytest.fixture
def desk(bus: Bus) -> Desk:  # noqa: F811
    """A bus of each engine, called by a program."""
    return Desk(bus)


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """The process of tests/board/forks.py."""
    home = str(tmp_path_factory.getbasetemp() / "state-home")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.board.forks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env=os.environ | {"AGENT_BUS_STATE_HOME": home},
    )
    with process:
        yield process
        assert process.stdin
        process.stdin.close()
        process.wait(timeout=10)


@pytest.fixture
def judge(forks: "subprocess.Popen[str]", tmp_path: Path) -> Judge:
    """Runs one of the acts of tests/board/forks.py and gives what it found."""

    def run(name: str) -> Any:
        assert forks.stdin
        assert forks.stdout
        forks.stdin.write(json.dumps([name, str(tmp_path)]) + "\n")
        forks.stdin.flush()
        return json.loads(forks.stdout.readline())

    return run
