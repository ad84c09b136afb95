"""Bus folders for many processes, and this host's id out of the user's way."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools import judges

Judge = Callable[[str, str], dict[str, Any]]


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the host id is kept during a test; the processes of a test inherit it."""
    home = tmp_path_factory.getbasetemp() / "state-home"
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(home))
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "bus"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def points_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """The process whose forks are killed and stopped."""
    home = tmp_path_factory.getbasetemp() / "state-home"
    with judges.started("tests.e2e.points", home, stderr=subprocess.DEVNULL) as process:
        yield process


@pytest.fixture
def judge(points_process: "subprocess.Popen[str]", tmp_path: Path) -> Judge:
    """Runs every point of a scene (`kill`) or a duel (`stop`)."""
    return lambda how, name: judges.ask(points_process, how, name, str(tmp_path))
