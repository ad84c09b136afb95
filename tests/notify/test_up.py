"""`agent-bus up` and `agent-bus notify`, as people start them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs import checkout
from tests.notify.stand_in import TOKEN, Answer, StandIn, text

DAEMONS = checkout.ROOT / "daemons"
BOUND_S = 40


@pytest.fixture
def home(tmp_path: Path, stand_in: StandIn) -> Path:
    root = (tmp_path / "bus").as_posix()
    lines = (f'root = "{root}"', "[notify.discord]", f'url = "{stand_in.url}"', 'level = "info"', "coalesce_s = 0")
    (tmp_path / "bus.toml").write_text("\n".join(lines) + "\n")
    (tmp_path / "bus").mkdir()
    return tmp_path


def environ(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AGENT_BUS_") and k != "DISCORD_WEBHOOK_URL"}
    own = {"AGENT_BUS_CONFIG": str(home / "bus.toml"), "AGENT_BUS_STATE_HOME": str(home / "state")}
    return {**kept, **own, "LANG": "C.UTF-8"}


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agent_bus.faces.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ(home), timeout=BOUND_S, check=False)


def answer(home: Path, *words: str) -> dict[str, Any]:
    done = run(home, *words, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def running(home: Path) -> Iterator[dict[str, Any]]:
    yield answer(home, "up", "--detach", "--port", "0", "--ws-port", "0")
    run(home, "up", "--stop")


def test_up_runs_everything_once_tells_and_stops(home: Path, running: dict[str, Any], stand_in: StandIn) -> None:
    from websockets.sync.client import connect

    again = answer(home, "up")
    assert again["process"] == running["process"]
    token = next((home / "state").rglob("http-token")).read_text().strip()
    with connect(f"ws://127.0.0.1:{running['hub_port']}/?token={token}", proxy=None) as socket:
        assert json.loads(socket.recv(10))["type"] == "hello"
        task_id = answer(home, "dispatch", "coder", "Write the tests.")["task_id"]
        shown = json.loads(socket.recv(10))
    assert (shown["event"], shown["task_id"]) == ("task.dispatched", task_id)
    state = answer(home, "up", "--status")
    names = {"reaper", "orchestrator", "launcher", "notify", "notify-discord", "hub"}
    assert {job["job"] for job in state["jobs"]} >= names
    assert {job["job"] for job in answer(home, "health")["jobs"]} >= {"hub", "notify-discord"}
    stopped = run(home, "up", "--stop")
    assert stopped.returncode == 0, stopped.stderr
    asked = run(home, "up", "--status", "--json")
    assert (asked.returncode, json.loads(asked.stdout)["running"]) == (1, False)
    assert task_id in "".join(stand_in.delivered())
    files = [p.read_text(encoding="utf-8", errors="replace") for p in (home / "bus").rglob("*") if p.is_file()]
    assert [f for f in files if TOKEN in f or token in f] == []


@pytest.mark.skipif(sys.platform == "win32", reason="select takes pipes on POSIX only")
def test_of_two_that_start_at_the_same_instant_one_runs_and_the_other_says_so(home: Path) -> None:
    command = [sys.executable, "-m", "agent_bus.faces.cli", "up", "--port", "0", "--ws-port", "0", "--json"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ(home))
        for _ in range(2)
    ]
    try:
        ready, _, _ = select.select([p.stdout for p in both if p.stdout], [], [], BOUND_S)
        [second] = [p for p in both if p.stdout in ready]
        said = json.loads(second.communicate(timeout=BOUND_S)[0])
        [first] = [p for p in both if p is not second]
        assert (second.returncode, said["running"], said["process"]["pid"]) == (0, True, first.pid)
        assert first.poll() is None
        assert run(home, "up", "--stop").returncode == 0
        assert first.wait(BOUND_S) == 0
    finally:
        for process in both:
            process.kill()
            process.communicate()


def test_the_test_notice_goes_out_at_once_and_says_how_it_went(home: Path, stand_in: StandIn) -> None:
    done = run(home, "notify", "test")
    assert (done.returncode, done.stdout) == (0, "discord: sent\n")
    assert "A test" in text(stand_in.posts[0])
    stand_in.always = Answer(404)
    failed = run(home, "notify", "test", "discord")
    assert failed.returncode == 1
    assert "127.0.0.1/… answered 404" in failed.stdout
    assert TOKEN not in failed.stdout + failed.stderr
    unknown = run(home, "notify", "retry", "pager")
    assert (unknown.returncode, "The settings have: discord." in unknown.stderr) == (1, True)
    assert run(home, "notify", "drop").stdout == "discord: 0 notices dropped\n"


def test_the_seeds_starters_take_the_seeds_flags(home: Path) -> None:
    command = [sys.executable, str(DAEMONS / "auto_orchestrator.py"), "--once", "--interval", "10"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ(home), timeout=BOUND_S, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("auto_orchestrator.py", "ws_server.py", "launcher.py", "server.py"):
        command = [sys.executable, str(DAEMONS / name), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, env=environ(home), timeout=BOUND_S, check=False)
        assert done.returncode == 0, done.stderr
        assert "--port" in done.stdout or name not in ("ws_server.py", "server.py")
        assert len((DAEMONS / name).read_text().splitlines()) <= 15


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM is POSIX")
def test_the_hub_alone_listens_on_the_port_it_is_given_and_ends_with_its_signal(home: Path) -> None:
    command = [sys.executable, str(DAEMONS / "ws_server.py"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ(home)) as hub:
        assert hub.stderr is not None
        assert "ws://127.0.0.1:" in hub.stderr.readline()
        hub.terminate()
        assert hub.wait(BOUND_S) == 0
