"""Files that change meanwhile, that several write at once, and runs that are killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from agent_bus.clients import Client, Home, Server, files, installing, registry
from agent_bus.clients.edits import EntryEdit
from agent_bus.clients.files import change
from agent_bus.clients.installing import Site
from agent_bus.clients.manifest import Manifest
from agent_bus.errors import BusError
from tests.clients.conftest import Desk

MANY = 6


def always(data: bytes) -> bool:
    return True


def add_line(path: str, word: str) -> None:
    """Adds a line as an installer would, by compare and rename."""
    for _ in range(5):
        change(Path(path), lambda now: (now or b"") + f"{word}\n".encode(), True, always)


@pytest.mark.req("clients:32")
def test_many_at_once_lose_nothing(desk: Desk) -> None:
    path = desk.home / "list"
    crowd = [multiprocessing.Process(target=add_line, args=(str(path), f"p{n}")) for n in range(MANY)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(30)
        assert one.exitcode == 0
    assert sorted(path.read_text().split()) == sorted(f"p{n}" for n in range(MANY) for _ in range(5))
    assert [found.suffix for found in desk.home.iterdir() if found != path] == [".bak"] * files.BACKUPS


@pytest.mark.req("clients:33")
def test_a_change_between_plan_and_rename_is_seen(desk: Desk) -> None:
    path = desk.file("settings", b"one\n")
    plans: list[bytes | None] = []

    def plan(now: bytes | None) -> bytes:
        plans.append(now)
        if len(plans) == 2:
            path.write_bytes(b"two\n")
        return (now or b"") + b"ours\n"

    done = change(path, plan, True, always)
    assert path.read_bytes() == b"two\nours\n"
    assert plans == [b"one\n", b"one\n", b"two\n"]
    assert done.backup is not None
    assert done.backup.read_bytes() == b"two\n"
    assert len(list(desk.home.iterdir())) == 2


@pytest.mark.req("clients:33")
def test_a_file_that_changes_all_the_time_is_left_alone(desk: Desk) -> None:
    path = desk.file("settings", b"0")

    def plan(now: bytes | None) -> bytes:
        path.write_bytes(str(int(now or b"0") + 1).encode())
        return b"ours"

    with pytest.raises(BusError) as caught:
        change(path, plan, True, always)
    assert caught.value.code == "busy"
    assert path.read_bytes() != b"ours"
    assert list(desk.home.iterdir()) == [path]


def die_at(path: str, call: int) -> None:
    """Changes a file and is killed at the so manieth call that touches the disk."""
    left = [call]

    def trap(event: str, args: tuple[object, ...]) -> None:
        if event in ("open", "os.rename", "os.link", "os.remove", "os.chmod") and str(path) in str(args):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(trap)
    change(Path(path), lambda now: b"after" * 1000, True, always)


@pytest.mark.req("clients:34")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_run_leaves_the_old_or_the_new_file(desk: Desk) -> None:
    path = desk.file("settings", b"before")
    ends: list[int | None] = []
    while not ends or ends[-1] != 0:
        path.write_bytes(b"before")
        one = multiprocessing.Process(target=die_at, args=(str(path), len(ends)))
        one.start()
        one.join(30)
        ends.append(one.exitcode)
        assert path.read_bytes() in (b"before", b"after" * 1000)
        assert len(ends) < 40
    assert len(ends) > 5, "it was killed at each of its steps"
    assert path.read_bytes() == b"after" * 1000


def test_temp_files_of_a_killed_run_are_swept_after_an_hour(desk: Desk) -> None:
    path = desk.file("settings", b"before")
    old, fresh = (desk.file(f".settings.agent-bus-{n}.tmp") for n in (1, 2))
    os.utime(old, (1, 1))
    change(path, lambda now: b"after", True, always)
    assert not old.exists()
    assert fresh.exists()


@pytest.mark.req("clients:35")
def test_an_entry_that_a_running_client_overwrote_is_written_once_more(desk: Desk) -> None:
    client, path = registry.load("claude-code"), desk.file(".claude.json", "{}\n")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            path.write_text('{"numStartups": 2}\n')

    site = Site(Home(desk.home), None, Manifest(None), pause=pause)
    edit = EntryEdit(path, client, Server("/x/agent-bus", ("mcp",)), "bus", True)
    done = installing.put(edit, "claude-code:user", site, hot=True)
    assert done.what == "added"
    assert json.loads(path.read_text())["numStartups"] == 2
    assert json.loads(path.read_text())["mcpServers"]["bus"]["command"] == "/x/agent-bus"
    assert pauses == [1.0, 1.0]


@pytest.mark.req("clients:36")
def test_a_third_partys_client_is_installed_like_ours(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = Client(name="acme", title="Acme", user_file=".acme/servers.json", servers=("tools", "mcp"))
    monkeypatch.setattr(EntryPoint, "load", lambda self: offer)
    points = (EntryPoint("acme", "acme_client", registry.GROUP),)
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    registry._load.cache_clear()
    try:
        assert desk.whats("install", "acme") == ["added"]
        entry = json.loads((desk.home / ".acme/servers.json").read_text())["tools"]["mcp"]["bus"]
        assert entry["args"][-1] == "acme"
        assert desk.whats("uninstall", "acme") == ["removed"]
    finally:
        registry._load.cache_clear()
    assert desk.everything() == {}
