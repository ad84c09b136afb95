"""Bus folders for many processes, and this host's id out of the user's way."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state-home"))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.points"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=CHECKOUT,
        )
    with process:
        yield process
        assert process.stdin
        process.stdin.close()
        process.wait(timeout=10)


@pytest.fixture
def judge(points_process: "subprocess.Popen[str]", tmp_path: Path) -> Judge:
    """Runs every point of a scene (`kill`) or a duel (`stop`)."""

    def run(how: str, name: str) -> dict[str, Any]:
        assert points_process.stdin
        assert points_process.stdout
        points_process.stdin.write(json.dumps([how, name, str(tmp_path)]) + "\n")
        points_process.stdin.flush()
        found: dict[str, Any] = json.loads(points_process.stdout.readline())
        return found

    return run
