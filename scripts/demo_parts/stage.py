"""The demo's stage: its processes, its person at a terminal, its timeline."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from demo_parts.say import Say

SCRIPTS = Path(__file__).resolve().parents[1]
BOUND_S = 60.0
COLUMNS = 8


class Unexpected(Exception):
    """A step did not go as it must."""


class Stage:
    """Where the demo plays: a fresh folder, an environment of its own, and a timeline on stdout.

    Args:
        folder: an existing folder with what `work.prepare` wrote.
        say: the language.
    """

    def __init__(self, folder: Path, say: Say) -> None:
        self.folder = folder
        self.vault = folder / "09_AgentSync"
        self.say = say
        self.steps = 0
        self.environ = _environment(folder)
        self.cast: list[Process] = []
        self._start = time.time()

    def act(self, key: str) -> None:
        """A heading of the timeline."""
        print(f"\n{self.say(key)}", flush=True)

    def line(self, who: str, key: str, at: float = 0.0, **values: object) -> None:
        """One line of the timeline: seconds, who, what."""
        seconds = max(0.0, (at or time.time()) - self._start)
        name = self.say(f"who.{who}")
        wide = sum(ord(char) > 0x2E7F for char in name)  # such characters take two columns
        print(f"{seconds:6.2f} s  {name:<{COLUMNS - wide}} {self.say(key, **values)}", flush=True)

    def must(self, holds: object, text: str) -> None:
        """A step that is as expected, or the end of the demo.

        Raises:
            Unexpected: it is not.
        """
        if not holds:
            raise Unexpected(text)
        self.steps += 1

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.time() - self._start

    def start(self, part: str, name: str, role: str = "worker") -> Process:
        """A new agent process with an MCP server of its own."""
        server = [*program(), "mcp", "--root", str(self.vault), "--agent", name, "--role", role]
        process = Process(self, part, name, server)
        self.cast.append(process)
        event = process.next("started")
        self.line(name, "done.started", event["at"], client=event["client"])
        return process

    def cli(self, *words: str) -> tuple[int, str]:
        """Runs `agent-bus …` without a terminal; exit code and what it printed."""
        done = subprocess.run(
            [*program(), *words, "--root", str(self.vault)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env=self.environ,
            timeout=BOUND_S,
            check=False,
        )
        return done.returncode, done.stdout

    def person(self, *words: str) -> None:
        """Does what only a person may: `agent-bus …` at a terminal; on Windows, without pseudo-terminals, by the API.

        Raises:
            Unexpected: it was refused.
        """
        if sys.platform == "win32":
            as_person(self.vault, *words)
            return
        code, text = at_terminal([*program(), *words, "--root", str(self.vault)], self.environ, b"y\n")
        self.must(code == 0, f"agent-bus {' '.join(words)} gave {code}: {text}")

    def document(self, place: str) -> dict[str, Any]:
        """A document of the bus folder."""
        return dict(json.loads((self.vault / f"{place}.json").read_text(encoding="utf-8")))

    def close(self) -> None:
        """Ends every process that is still there."""
        for process in self.cast:
            process.end()


class Process:
    """An agent's process and the lines it prints."""

    def __init__(self, stage: Stage, part: str, name: str, server: list[str]) -> None:
        self.name = name
        self._stage = stage
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with open(stage.folder / "logs" / f"{name}-{len(stage.cast)}.log", "w", encoding="utf-8") as log:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "demo_parts.agent", part, name, str(stage.folder), stage.say.language, *server],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                env=stage.environ,
                cwd=SCRIPTS,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, did: str) -> dict[str, Any]:
        """The next line, which must tell of that.

        Raises:
            Unexpected: it tells of something else, or none comes in time.
        """
        try:
            found = self._lines.get(timeout=BOUND_S)
        except queue.Empty:
            raise Unexpected(f"{self.name} said nothing for {BOUND_S:.0f} s instead of {did!r}") from None
        if found is None:
            raise Unexpected(f"{self.name} ended instead of {did!r}")
        self._stage.must(found["did"] == did, f"{self.name} said {found} instead of {did!r}")
        return found

    def shown(self, did: str, **values: object) -> dict[str, Any]:
        """`next`, put into the timeline."""
        found = self.next(did)
        told = {k: v for k, v in found.items() if k not in ("did", "at", "task_id")}
        self._stage.line(self.name, f"done.{did}", found["at"], task=found.get("task_id", ""), **told, **values)
        return found

    def ask(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Lets a boss call a tool; its line, `result` or `refused`."""
        assert self.running.stdin is not None
        self.running.stdin.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
        self.running.stdin.flush()
        try:
            found = self._lines.get(timeout=BOUND_S)
        except queue.Empty:
            found = None
        if found is None:
            raise Unexpected(f"{self.name} got no answer from {tool}")
        return found

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """`ask`, where the answer must be a result."""
        found = self.ask(tool, **arguments)
        self._stage.must(found["did"] == "result", f"{tool} was refused: {found.get('text')}")
        return dict(found["result"])

    def end(self) -> None:
        """Ends the process: stdin is closed, then it has ten seconds."""
        assert self.running.stdin is not None
        if self.running.poll() is None:
            try:
                self.running.stdin.close()
                self.running.wait(10)
            except (OSError, subprocess.TimeoutExpired):
                self.running.kill()
        self.running.wait(10)

    def _read(self) -> None:
        assert self.running.stdout is not None
        for line in self.running.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)


def program() -> list[str]:
    """How `agent-bus` is started here: the installed command, else the module."""
    installed = Path(sys.executable).with_name("agent-bus.exe" if sys.platform == "win32" else "agent-bus")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "agent_bus.faces.cli"]


def at_terminal(command: list[str], environ: Mapping[str, str], types: bytes = b"") -> tuple[int, str]:
    """Runs a command at a pseudo-terminal of our own, where somebody types; exit code and what it showed."""
    import pty

    master, slave = pty.openpty()
    running = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True)
    os.close(slave)
    os.write(master, types)
    timer = threading.Timer(BOUND_S, running.kill)
    timer.start()
    shown = bytearray()
    try:
        while data := os.read(master, 4096):
            shown += data
    except OSError:
        pass  # Linux says so when the other end is closed
    finally:
        code = running.wait()
        timer.cancel()
        os.close(master)
    return code, shown.decode("utf-8", "replace")


def as_person(vault: Path, verb: str, *values: str) -> None:
    """Calls a verb in this process, as a person (the demo's audience)."""
    from agent_bus.app import open_bus
    from agent_bus.bus import Caller
    from agent_bus.commands import bind
    from agent_bus.settings import load_settings

    settings = load_settings(overrides={"root": str(vault)})
    bus = open_bus(settings, Caller(role="operator", person=True))
    try:
        getattr(bind(bus), verb)(*values)
    finally:
        bus.close()


def _environment(folder: Path) -> dict[str, str]:
    """This process's environment without anything of another bus; the demo plays agents and person alike."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AGENT_BUS_") or k == "AGENT_BUS_STATE_HOME"}
    return kept | {"AGENT_BUS_CONFIG": str(folder / "bus.toml"), "PYTHONIOENCODING": "utf-8"}
