"""A bus with a launcher and stand-ins for CLIs, made small and quick for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_bus import app
from agent_bus.bus import Bus, Caller
from agent_bus.clock import SystemClock
from agent_bus.commands import bind
from agent_bus.domain.run import Run
from agent_bus.domain.task import Task
from agent_bus.errors import BusError
from agent_bus.jobs.launcher import LauncherJob
from agent_bus.jobs.loop import Job, Loop
from agent_bus.operations import claim, find, runs
from agent_bus.settings import Settings, load_settings
from agent_bus.store.layout import Layout

CHECKOUT = Path(__file__).resolve().parents[2]
STAND_IN = CHECKOUT / "tests" / "tools" / "stand_in.py"
AGENT = "claude-code"
REPORT = ["report"]
RESULT = [
    "print",
    '{"type":"result","subtype":"success","is_error":false,"session_id":"{session}","total_cost_usd":0.6}',
]
SYSTEM = ["print", '{"type":"system","subtype":"init","session_id":"{session}"}']
_DAEMON = "import sys; from tests.jobs.yard import serve; serve(sys.argv[1], quick=sys.argv[2:] == ['quick'])"


class Yard:
    """A bus folder, its settings, and the launcher on it.

    Args:
        place: an empty folder.
        agents: tables of `[agents.NAME]` by name; each gets a work folder and, if it has none, a stand-in as command.
        launcher: keys of `[launcher]`.
        more: other settings.
    """

    def __init__(self, place: Path, agents: dict[str, dict[str, Any]], launcher: dict[str, Any], **more: Any) -> None:
        self.place = place
        self.root = place / "bus"
        self.work = place / "work"
        for folder in (self.root, self.work):
            folder.mkdir()
        quick = {"grace_s": 1, "launches_per_minute": 120, "hook": False} | launcher
        tables = {name: self._agent(name, table) for name, table in agents.items()}
        base = {"root": str(self.root), "durability": "none", "backoff_s": 1, "backoff_max_s": 1, "cancel_grace_s": 1}
        self.config = place / "bus.toml"
        self.write({**base, **more, "launcher": quick, "agents": tables})
        Layout.of(self.root).make(SystemClock().now())
        self.bus = self.open()
        self.door = Door(self.bus)
        for name in agents:
            self.let_in(name)
        self.loop: Loop | None = None
        self.daemons: list[subprocess.Popen[bytes]] = []

    def write(self, values: dict[str, Any]) -> None:
        """The settings file; JSON values are TOML values, tables get headers."""
        self.values = values
        lines = [f"{k} = {_toml(v)}" for k, v in values.items() if not isinstance(v, dict)]
        lines += ["[launcher]", *(f"{k} = {_toml(v)}" for k, v in values["launcher"].items())]
        for name, table in values["agents"].items():
            lines += [
                f"[agents.{json.dumps(name, ensure_ascii=False)}]",
                *(f"{k} = {_toml(v)}" for k, v in table.items()),
            ]
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def let_in(self, agent: str) -> None:
        """Tells an agent's stand-in where it may knock."""
        Path(f"{self.scenario(agent)}.door").write_text(str(self.door.port), encoding="ascii")

    def settings(self) -> Settings:
        found = load_settings(str(self.config), environ={})
        assert not found.problems, found.problems
        return found

    def open(self, caller: Caller | None = None) -> Bus:
        return app.open_bus(self.settings(), caller or Caller(role="operator", person=True))

    def _agent(self, name: str, table: dict[str, Any]) -> dict[str, Any]:
        base = {"launcher": "claude", "work_dir": str(self.work), "launches_per_minute": 120}
        return base | {"command": [sys.executable, "-S", "-E", str(STAND_IN), str(self.scenario(name))]} | table

    def scenario(self, name: str = AGENT) -> Path:
        """The file that tells an agent's stand-in what to do."""
        return self.place / f"{name}.json"

    def script(self, *starts: list[Any], rest: list[Any] | None = None, agent: str = AGENT, **more: Any) -> None:
        """What the agent's starts do, one list each; `rest` for all later ones."""
        value = {"runs": list(starts), "rest": rest if rest is not None else [REPORT], **more}
        self.scenario(agent).write_text(json.dumps(value), encoding="utf-8")

    def start(self, linger_s: float = 0.3) -> None:
        """The launcher in this process, on a thread."""
        self.loop = Loop(self.bus, [Job("launcher", LauncherJob(linger_s).tick)])
        self.loop.start()

    def end(self) -> None:
        if self.loop is not None:
            assert self.loop.end() == []
            self.loop = None

    def daemon(self, *words: str) -> subprocess.Popen[bytes]:
        """The launcher in a process of its own."""
        with open(self.place / "daemon.log", "ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-c", _DAEMON, str(self.config), *words], cwd=CHECKOUT, stderr=log
            )
        self.daemons.append(started)
        return started

    def kill(self, daemon: subprocess.Popen[bytes]) -> None:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait(10)

    def close(self) -> None:
        self.end()
        for one in self.daemons:
            if one.poll() is None:
                self.kill(one)
        for held in runs.live(self.bus):
            runs.tree(held.run).end(0.0)
        self.door.close()
        self.bus.close()

    def dispatch(self, instruction: str = "do it", target: str = AGENT, **given: Any) -> dict[str, Any]:
        options = given.pop("options", None)
        more = {"options": json.dumps(options)} if options else {}
        answer = bind(self.bus).dispatch_task(
            target=target, instruction=instruction, from_agent="boss", **given, **more
        )
        found: dict[str, Any] = answer.model_dump()
        return found

    def call(self, name: str, **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = getattr(bind(self.bus), name)(**given).model_dump()
        return found

    def task(self, task_id: str) -> Task:
        return find.need(self.bus, task_id).task

    def runs(self, task_id: str) -> list[Run]:
        return runs.of_task(self.bus, task_id)

    def until(self, look: Callable[[], Any], seconds: float = 20.0) -> Any:
        """The first true answer."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            assert time.monotonic() < deadline, self.story()
            time.sleep(0.02)
        return found

    def ended(self, task_id: str, number: int = 1, seconds: float = 20.0) -> Run:
        """The task's n-th run, once it has ended and its end is applied."""

        def look() -> Run | None:
            found = next((r for r in self.runs(task_id) if r.n == number and not r.live), None)
            marked = found and self.bus.store.exists(f"{runs.LIVE}/{found.run_id}")
            return None if marked else found

        return self.until(look, seconds)  # type: ignore[no-any-return]

    def running(self, task_id: str, seconds: float = 20.0) -> Run:
        """The task's run, once it runs."""
        return self.until(  # type: ignore[no-any-return]
            lambda: next((r for r in self.runs(task_id) if r.state == "running"), None), seconds
        )

    def status(self, task_id: str, status: str, seconds: float = 20.0) -> Task:
        """The task, once it is in a state."""
        self.until(lambda: self.task(task_id).status == status, seconds)
        return self.task(task_id)

    def starts(self, agent: str = AGENT) -> list[dict[str, Any]]:
        """What each start of the agent's stand-in was given."""
        folder = Path(f"{self.scenario(agent)}.d")
        files = sorted(folder.glob("[0-9]*.json"), key=lambda f: int(f.stem)) if folder.exists() else []
        return [json.loads(f.read_text(encoding="utf-8")) for f in files]

    def started(self, number: int, agent: str = AGENT) -> dict[str, Any]:
        """What the n-th start was given, once it is there."""
        self.until(lambda: len(self.starts(agent)) >= number)
        return self.starts(agent)[number - 1]

    def children(self, agent: str = AGENT) -> list[int]:
        """The pids of the children that the stand-ins have had."""
        path = Path(f"{self.scenario(agent)}.d/children")
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def events(self, name: str) -> list[dict[str, Any]]:
        """The journal's lines of one event."""
        return [line for line in self.bus.journal.read("", 10_000) if line.get("event") == name]

    def story(self) -> str:
        """Everything that a failed test may need."""
        lines = [json.dumps(line, ensure_ascii=False)[:300] for line in self.bus.journal.read("", 200)]
        logs = [f"{p}:\n{p.read_text('utf-8', 'replace')[-1500:]}" for p in self.place.rglob("*.log")]
        return "\n".join([*lines, *logs])


class Door:
    """Calls verbs for stand-ins that knock, each as the worker of its own run."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._others: dict[str, Bus] = {}
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # closing alone wakes no accept
        self._listening.close()
        self._thread.join(5)
        for bus in self._others.values():
            bus.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        with caller, suppress(OSError):
            asked = json.loads(caller.makefile("rb").readline())
            try:
                self._call(asked)
                answer = "ok"
            except BusError as error:
                answer = str(error)
            caller.sendall(f"{answer}\n".encode())

    def _place(self, root: str) -> Bus:
        """The bus of a caller; one door may stand for several copies of a folder."""
        own = self._bus.layout
        if own is not None and str(own.root) == root:
            return self._bus
        if root not in self._others:
            self._others[root] = app.open_bus(Settings(root=root, durability="none"))
        return self._others[root]

    def _call(self, asked: dict[str, Any]) -> None:
        env = asked["env"]
        run, lease = env["AGENT_BUS_RUN_ID"], env["AGENT_BUS_LEASE_ID"]
        worker = Caller(agent=env["AGENT_BUS_AGENT"], channel="cli", run=run, lease_id=lease)
        bus = self._place(env["AGENT_BUS_ROOT"]).called_by(worker)
        if asked["verb"] == "receive":
            assert claim.receive(bus, env["AGENT_BUS_AGENT"], env["AGENT_BUS_WORKER"]) is not None
            return
        given = {"task_id": env["AGENT_BUS_TASK_ID"], "worker": env["AGENT_BUS_WORKER"]}
        bind(bus).submit_report(**given, status=asked["status"], summary=asked["summary"])


def gone(pid: int) -> bool:
    """Whether no process of that id runs (a zombie has ended)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def serve(config: str, *, quick: bool = False) -> None:
    """A launcher in a process of its own, until it is killed; `quick` lifts the bound on starts a minute."""
    settings = load_settings(config, environ={k: v for k, v in os.environ.items() if k == "AGENT_BUS_STATE_HOME"})
    if quick:
        settings = unbounded(settings)
    bus = app.open_bus(settings, Caller(channel="python"))
    loop = Loop(bus, [Job("launcher", LauncherJob(0.3).tick)])
    loop.start()
    loop.wait()


def unbounded(settings: Settings) -> Settings:
    """Settings with more starts a minute than anybody may write."""
    rate = {"launches_per_minute": 100_000}
    agents = {n: a.model_copy(update=rate) for n, a in settings.agents.items()}
    return settings.model_copy(update={"launcher": settings.launcher.model_copy(update=rate), "agents": agents})


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


MakeYard = Callable[..., Yard]


@pytest.fixture
def make_yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeYard]:
    """Makes yards: `make_yard(agent=…, launcher=…, agents=…)`; all are closed after the test."""
    for name in [name for name in os.environ if name.startswith("AGENT_BUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    made: list[Yard] = []

    def make(agent: dict[str, Any] | None = None, launcher: dict[str, Any] | None = None, **more: Any) -> Yard:
        agents = more.pop("agents", None) or {AGENT: agent or {}}
        place = tmp_path / f"yard{len(made)}"
        place.mkdir()
        made.append(Yard(place, agents, launcher or {}, **more))
        return made[-1]

    yield make
    for yard in made:
        yard.close()


@pytest.fixture
def yard(make_yard: MakeYard) -> Yard:
    return make_yard()
