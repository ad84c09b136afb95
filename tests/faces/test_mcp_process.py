"""`agent-bus mcp` with the real tools, as clients start it: a process, an environment, a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bus.app import open_bus
from agent_bus.commands import bind
from agent_bus.settings import Settings
from tests.docs import checkout
from tests.faces.toys import CHECKOUT, StdioServer

PROGRAM = [sys.executable, "-c", "from agent_bus.faces.cli import main; raise SystemExit(main())"]
Start = Callable[..., StdioServer]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of the clients here, and of this process: nothing of the machine's own bus."""
    for name in [name for name in os.environ if name.startswith("AGENT_BUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "bus.toml").write_text("")
    monkeypatch.setenv("AGENT_BUS_CONFIG", str(tmp_path / "bus.toml"))
    return dict(os.environ)


@pytest.fixture
def root(tmp_path: Path, environment: dict[str, str]) -> Path:
    found = tmp_path / "bus"
    found.mkdir()
    subprocess.run([*PROGRAM, "init", "--root", str(found)], check=True, cwd=CHECKOUT, stdout=subprocess.DEVNULL)
    return found


@pytest.fixture
def start(root: Path, environment: dict[str, str]) -> Iterator[Start]:
    """Starts `agent-bus mcp` on the folder; all are ended after the test."""
    servers = []

    def begin(*words: str, env: dict[str, str] | None = None, program: list[str] = PROGRAM) -> StdioServer:
        servers.append(StdioServer([*program, *words], env or environment))
        servers[-1].start()
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def dispatch(root: Path, target: str = "coder") -> str:
    """Dispatches from this process, which is another one than the server's."""
    bus = open_bus(Settings(root=str(root)))
    try:
        return str(bind(bus).dispatch_task(target, "write tests").task_id)
    finally:
        bus.close()


def found(result: dict[str, Any]) -> dict[str, Any]:
    assert not result["isError"], result
    return dict(result["structuredContent"])


@pytest.mark.req("mcp:8")
def test_sixty_waits_leave_the_server_quick_and_a_dispatch_elsewhere_wakes_one(start: Start, root: Path) -> None:
    server = start("mcp", "--root", str(root))
    waits = {server.begin_call("receive_task", agent_name="coder", wait_s=45) for _ in range(60)}
    found(server.call("get_all_status"))
    assert not waits & set(server._early), "a wait ended early"
    task = dispatch(root)
    while not waits & set(server._early):
        found(server.call("get_all_status"))
    found(server.call("get_all_status"))
    answers = [found(server.finish(number)) for number in waits & set(server._early)]
    assert {answer["task"]["task_id"] for answer in answers} == {task}
    # On a busy machine a call may begin only after the claim: it is given what its holder has, as any call is.
    assert [answer["already_held"] for answer in answers].count(False) == 1, "two waits woke for one task"
    assert len({answer["lease_id"] for answer in answers}) == 1


@pytest.mark.req("mcp:10")
def test_a_wait_whose_client_gave_up_takes_nothing(start: Start, root: Path) -> None:
    server = start("mcp", "--root", str(root))
    number = server.begin_call("receive_task", agent_name="coder", wait_s=45)
    found(server.call("get_all_status"))
    server.send("notifications/cancelled", {"requestId": number, "reason": "time-out"}, note=True)
    found(server.call("get_all_status"))
    task = dispatch(root)
    got = found(server.call("receive_task", agent_name="coder", wait_s=10))
    assert (got["task"]["task_id"], got["already_held"]) == (task, False)
    assert got["task"]["attempt"] == 1


@pytest.mark.req("mcp:32")
def test_a_killed_server_started_again_gets_its_task_as_a_new_attempt(start: Start, root: Path) -> None:
    task = dispatch(root)
    first = start("mcp", "--root", str(root))
    held = found(first.call("receive_task", agent_name="coder"))
    assert held["task"]["task_id"] == task
    first.process.kill()
    first.process.wait()
    again = found(start("mcp", "--root", str(root)).call("receive_task", agent_name="coder"))
    assert (again["task"]["task_id"], again["already_held"]) == (task, False)
    assert again["task"]["attempt"] == held["task"]["attempt"] + 1


@pytest.mark.req("mcp:20")
def test_an_empty_environment_is_enough_with_the_folder_as_an_argument(
    start: Start, root: Path, tmp_path: Path
) -> None:
    names = ("PATH", "SYSTEMROOT", "TEMP")
    env = {name: os.environ[name] for name in names if name in os.environ} | {"HOME": str(tmp_path / "home")}
    server = start("mcp", "--root", str(root), env=env)
    assert found(server.call("get_all_status"))["agents"] is not None


@pytest.mark.req("mcp:19")
def test_the_agent_of_the_command_line_is_the_sender(start: Start, root: Path) -> None:
    server = start("mcp", "--root", str(root), "--agent", "codex")
    found(server.call("dispatch_task", target="coder", instruction="x"))
    [row] = found(server.call("list_tasks"))["tasks"]
    assert row["from"] == "codex"


@pytest.mark.req("mcp:18")
def test_a_server_whose_folder_was_deleted_starts_lists_and_names_the_fix(start: Start, tmp_path: Path) -> None:
    server = start("mcp", "--root", str(tmp_path / "gone"))
    assert len(server.request("tools/list")["result"]["tools"]) == 12
    said = server.call("list_tasks")["content"][0]["text"]
    assert said.startswith("not_found: ")
    assert "agent-bus init" in said


def test_the_seeds_starter_serves_the_same(start: Start, root: Path) -> None:
    starter = [sys.executable, str(checkout.ROOT / "daemons" / "server.py")]
    server = start("--root", str(root), program=starter)
    assert len(server.request("tools/list")["result"]["tools"]) == 12


def test_no_answer_names_a_path_outside_the_bus_folder(start: Start, root: Path, tmp_path: Path) -> None:
    server = start("mcp", "--root", str(root), "--tools", "all")
    task = dispatch(root)
    for name, given in (
        ("receive_task", {"agent_name": "coder"}), ("get_task", {"task_id": task}), ("system_health", {}),
        ("get_shared_context", {"key": "no"}), ("list_tasks", {}), ("get_reports", {}),
    ):  # fmt: skip
        said = json.dumps(server.call(name, **given), ensure_ascii=False)
        assert str(tmp_path / "state") not in said
        assert str(tmp_path / "bus.toml") not in said
        assert os.path.expanduser("~") + os.sep not in said


def test_a_taken_back_receive_is_not_counted(start: Start, root: Path) -> None:
    server = start("mcp", "--root", str(root))
    task = dispatch(root)
    number = server.begin_call("receive_task", agent_name="coder")
    server.send("notifications/cancelled", {"requestId": number}, note=True)
    found(server.call("get_all_status"))
    got = found(server.call("receive_task", agent_name="coder", wait_s=10))
    assert got["task"]["task_id"] == task
    assert got["task"].get("crashes", 0) == 0
