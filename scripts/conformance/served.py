"""Our servers as the test programs meet them: a bus of its own each, all of it in a temporary folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import _env

START_S, STOP_S = 30.0, 10.0
LISTENING = re.compile(r"listening on (http://\S+/mcp); the token is in (.+)$")


@dataclass
class Served:
    """A server that listens: its address, the file of its token, and what it says on stderr."""

    url: str = ""
    token: Path = Path()
    lines: list[str] = field(default_factory=list)


def new_bus(folder: Path) -> Path:
    """A bus in a folder with a space in its name."""
    root = folder / "a bus"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([agent_bus(), "init", str(root)], env=state(folder), check=True, capture_output=True)
    return root


def agent_bus() -> str:
    """The installed command of this environment."""
    found = shutil.which("agent-bus", path=str(Path(sys.executable).parent))
    if found is None:
        _env.fail("agent-bus is not installed in the environment.")
    return found


def state(folder: Path) -> dict[str, str]:
    """The environment of a server whose tokens lie in that folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_BUS_")}
    return {**kept, "AGENT_BUS_STATE_HOME": str(folder / "state")}


@contextmanager
def with_fixtures(folder: Path, stateful: bool) -> Iterator[Served]:
    """The suite's fixtures on our HTTP server; the token is put into each request."""
    command = fixture_command(new_bus(folder), transport="http", port=0, stateful=stateful)
    with _listening(command, folder) as served:
        yield served


def fixture_command(root: Path, **options: object) -> list[str]:
    """The words that start our server with the suite's fixtures; the options are those of `agent-bus mcp`."""
    return [sys.executable, "-m", "tests.faces.suite_fixtures", json.dumps({"root": str(root), **options})]


@contextmanager
def plain(folder: Path) -> Iterator[Served]:
    """`agent-bus mcp --transport http` as users start it."""
    root = new_bus(folder)
    with _listening([agent_bus(), "mcp", "--root", str(root), "--transport", "http", "--port", "0"], folder) as served:
        yield served


def spawn(command: list[str], folder: Path, pipe: int) -> subprocess.Popen[str]:
    """A program of ours with its own state; what it says on stderr can be read, stdin and stdout are `pipe`."""
    kept: dict[str, Any] = {"cwd": _env.ROOT, "env": state(folder), "text": True, "encoding": "utf-8"}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.PIPE, **kept)


@contextmanager
def _listening(command: list[str], folder: Path) -> Iterator[Served]:
    process = spawn(command, folder, subprocess.DEVNULL)
    served, ready = Served(), threading.Event()
    reader = threading.Thread(target=_read, args=(process, served, ready), daemon=True)
    reader.start()
    try:
        if not ready.wait(START_S) or not served.url:
            _env.fail("the server did not start:\n" + "\n".join(served.lines[-20:]))
        yield served
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(STOP_S)


def _read(process: subprocess.Popen[str], served: Served, ready: threading.Event) -> None:
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            served.lines.append(line.rstrip("\n"))
            found = LISTENING.search(served.lines[-1])
            if found:
                served.url, served.token = found[1], Path(found[2])
                ready.set()
    ready.set()
