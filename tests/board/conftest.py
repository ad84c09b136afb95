"""Buses for the tests of the board and its kin, a folder to work in, and a process whose forks race and die."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bus.bus import Bus
from tests.tools import judges
from tests.tools.buses import bus, clock, disk, engine, live, make, server, state_home  # noqa: F401 (fixtures)
from tests.tools.desk import Desk

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
    with judges.started("tests.board.forks", tmp_path_factory.getbasetemp() / "state-home") as process:
        yield process


@pytest.fixture
def judge(forks: "subprocess.Popen[str]", tmp_path: Path) -> Judge:
    """Runs one of the acts of tests/board/forks.py and gives what it found."""
    return lambda name: judges.ask(forks, name, str(tmp_path))
