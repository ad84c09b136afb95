"""What the doctor says of what runs on a bus: jobs, agents, channels, HTTP."""

from __future__ import annotations

import json
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent_bus import __version__, host
from agent_bus.app import open_bus
from agent_bus.bus import Caller
from agent_bus.commands import bind
from agent_bus.doctor import Finding, http, launch, life, root
from agent_bus.faces.cli_doctor import words
from agent_bus.launchers import registry
from agent_bus.operations import health, parking
from agent_bus.settings import Settings
from agent_bus.store import records
from agent_bus.texts import Texts
from tests.doctor.conftest import House, Look, bad


def cases(findings: Iterator[Finding] | list[Finding]) -> list[tuple[str, str, str]]:
    found = list(findings)
    assert all("\n".join(words(Texts(language), f)) for f in found for language in ("en", "ja"))
    return [(id, level, case) for id, level, case, _ in bad(found)]


def with_agents(house: House, **agents: dict[str, Any]) -> None:
    house.settings = Settings.model_validate({"root": house.settings.root, "agents": agents})


@pytest.mark.req("clients:27")
def test_jobs_that_do_not_run_a_stop_and_a_parked_agent_are_named(house: House, look: Look) -> None:
    work = house.folder / "work"
    work.mkdir()
    program = house.plant("worker", "print('--resume')")
    with_agents(house, coder={"launcher": "command", "work_dir": str(work), "command": program, "permission": "full"})
    bus = open_bus(house.settings, Caller(role="operator", person=True))
    bind(bus).emergency_stop("lunch")
    until = "2099-01-01T00:00:00.000Z"
    parked = {"reason": "quota", "evidence": "limit reached", "until": until, "agents": ["coder"]}
    bus.store.create(f"{parking.PREFIX}/{parking.name_of(agent='coder')}", parked)
    bus.close()
    ground = look()
    jobs = list(life.jobs(ground))
    assert cases(jobs) == [("jobs", "warn", "gone")]
    assert jobs[0].values["names"] == "reaper, orchestrator, launcher"
    stopped = list(root.stop(ground))
    assert cases(stopped) == [("stop", "info", "stopped")]
    assert "lunch" in words(Texts("en"), stopped[0])[0]
    found = list(launch.look(ground, "coder"))
    assert cases(found) == [("launch.parked", "warn", "parked")]
    assert until in words(Texts("en"), found[0])[0]
    assert cases(life.tasks(ground)) == []


def test_an_agent_that_cannot_be_started_is_named_with_the_line_to_write(house: House, look: Look) -> None:
    work = house.folder / "work"
    work.mkdir()
    old = house.plant("old", "print('1.0.0 --help')")
    with_agents(
        house,
        lost={"launcher": "command", "work_dir": str(house.folder / "gone"), "command": old},
        old={"launcher": "codex", "work_dir": str(work), "command": old},
    )
    ground = look()
    assert cases(launch.look(ground, "lost")) == [("launch.settings", "fail", "wrong")]
    found = list(launch.look(ground, "old"))
    assert cases(found) == [("launch.program", "fail", "unusable")]
    assert "Update codex" in words(Texts("en"), found[-1])[2]
    assert not list((house.layout.state / "run").glob("caps-*")), "a look leaves nothing behind"


@pytest.mark.skipif(sys.platform == "win32", reason="the planted program is a script with a first line")
def test_a_login_is_asked_for_where_the_program_tells_without_a_model(house: House, look: Look) -> None:
    work = house.folder / "work"
    work.mkdir()
    flags = " ".join(registry.load("codex").required_flags)
    code = f"import sys\nprint('codex 9.9.9 {flags}')\nsys.exit('login' in sys.argv)\n"
    with_agents(house, coder={"launcher": "codex", "work_dir": str(work), "command": house.plant("codex", code)})
    found = list(launch.look(look(), "coder"))
    assert cases(found) == [("launch.login", "warn", "out")]
    assert words(Texts("en"), found[-1])[2].endswith("agent-bus login")


def test_jobs_that_run_are_well_and_a_failing_one_is_named(house: House, look: Look) -> None:
    for name in ("reaper", "orchestrator"):
        error = "disk" if name == "reaper" else ""
        records.write(house.layout, f"job-{name}", {"job": name, "last_tick": "2026-12-01T00:00:00Z", "error": error})
    assert cases(life.jobs(look())) == [("jobs", "warn", "failing")]
    records.write(house.layout, "job-reaper", {"job": "reaper", "last_tick": "2026-12-01T00:00:00Z", "error": ""})
    assert cases(life.jobs(look())) == []


def test_channels_that_are_wrong_off_or_behind_are_named_and_a_test_goes_out_only_when_asked(
    house: House, look: Look
) -> None:
    told = house.folder / "told"
    argv = [sys.executable, "-c", f"import sys; open({str(told)!r}, 'a').write('x')"]
    channels: dict[str, Any] = {"discord": {"url": "nonsense"}, "command": {"argv": argv}, "nobody": {}}
    house.settings = Settings.model_validate({"root": house.settings.root, "notify": channels})
    bus = open_bus(house.settings)
    bus.store.create(".bus/outbox/command", {"off": "it said no", "last_error": "no"})
    bus.store.create(".bus/outbox/command/1", {"queued_at": "2020-01-01T00:00:00.000Z"})
    bus.close()
    ground = look()
    wrong = [("notify", "warn", "wrong"), ("notify", "warn", "off"), ("notify", "warn", "old")]
    assert cases(life.notify(ground, send=False)) == [*wrong, ("notify", "warn", "wrong")]
    assert not told.exists()
    found = list(life.notify(ground, send=True))
    assert told.read_text() == "x"
    assert any(f.level == "ok" and "test notice" in str(f.values["note"]) for f in found)
    house.settings = Settings(root=house.settings.root)
    assert cases(life.notify(look(), send=True)) == [("notify", "info", "none")]


def test_what_system_health_says_of_tasks_is_said_too(house: House, look: Look) -> None:
    (house.layout.root / "inbox" / "notes.txt").write_text("x")
    ground = look()
    found = list(life.tasks(ground))
    assert cases(found) == [("tasks", "warn", "problem")]
    assert "inbox/notes.txt" in words(Texts("en"), found[0])[0]


class Answers(BaseHTTPRequestHandler):
    """A server that answers /health as it is told, and guards the rest or not."""

    health: ClassVar[dict[str, Any]] = {}
    guarded = True

    def do_GET(self) -> None:
        self._say(200, self.health)

    def do_POST(self) -> None:
        self._say(401 if self.guarded else 200, {})

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _say(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(health: dict[str, Any], guarded: bool = True) -> Iterator[int]:
    handler = type("Told", (Answers,), {"health": health, "guarded": guarded})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_http_server_answers_for_this_bus_and_is_guarded_or_is_named(house: House, look: Look) -> None:
    ground = look()
    assert ground.bus is not None
    bus_id = health.identity(ground.bus)[1]
    token = host.state_folder() / bus_id / "http-token"
    token.parent.mkdir(parents=True)
    token.write_text("secret")
    token.chmod(0o600)
    own = {"product": "agent-bus", "bus_id": bus_id, "version": __version__}
    assert list(http.look(ground)) == [], "none runs"

    def told(health: dict[str, Any], guarded: bool = True, address: str = "127.0.0.1") -> list[tuple[str, str, str]]:
        with serving(health, guarded) as port:
            records.write(house.layout, "up", {"host": address, "http_port": port, "hub_port": 1})
            return cases(http.look(ground))

    assert told(own) == []
    assert told(own | {"bus_id": "b-2"}) == [("http", "fail", "other_bus")]
    assert told(own | {"version": "0.0.1"}) == [("version", "warn", "running")]
    assert told({"product": "weather"}) == [("http", "fail", "stranger")]
    assert told(own, guarded=False) == [("http", "fail", "unguarded")] * 3
    assert told(own, address="0.0.0.0") == [("http", "warn", "open")]
    if sys.platform != "win32":
        token.chmod(0o644)
        assert told(own) == [("http", "fail", "token_mode")]
        assert stat.S_IMODE(token.stat().st_mode) == 0o644, "the doctor mends nothing"
    token.unlink()
    assert told(own) == [("http", "fail", "token_gone")]
    assert cases(http.look(ground)) == [("http", "fail", "silent"), ("http", "fail", "token_gone")]


def test_an_entry_with_an_address_is_asked_at_that_address(house: House, look: Look) -> None:
    path = house.path("cursor")
    path.parent.mkdir(parents=True)
    with serving({"product": "weather"}) as port:
        entry = {"url": f"http://127.0.0.1:{port}/mcp"}
        path.write_text(json.dumps({"mcpServers": {"bus": entry}}))
        ground = look("cursor")
        ((file, one),) = ground.ours()
        found = list(http.entry(ground, file, one))
    assert bad(found) == [("http", "fail", "stranger", "cursor")]
    assert Path(str(path)).read_text() == json.dumps({"mcpServers": {"bus": entry}})
