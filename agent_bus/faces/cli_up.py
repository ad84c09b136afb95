"""`agent-bus up`: all jobs, the hub and the HTTP face in one process; and `agent-bus job NAME`: one of them alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.faces.cli_session import Session
from agent_bus.faces.cli_verbs import global_options
from agent_bus.store import records
from agent_bus.store.layout import Layout

RECORD = "up"
_START_S, _STOP_S = 15.0, 15.0
_LOOK_S = 0.05
_PORT = click.IntRange(0, 65_535)


@click.command("up")
@click.option("--detach", is_flag=True, help="Start in the background and return once it runs.")
@click.option(
    "--status", "ask", is_flag=True, help="Say whether it runs (exit code 1: it does not), and which jobs are alive."
)
@click.option("--stop", is_flag=True, help="End the one that runs.")
@click.option("--host", default=None, help="Where HTTP and the hub listen; else setting http.host.")
@click.option("--port", default=None, type=_PORT, help="HTTP's port, or the next free one; else setting http.port.")
@click.option("--ws-port", default=8123, type=_PORT, show_default=True, help="The hub's port, or the next free one.")
@click.pass_obj
def up(session: Session, detach: bool, ask: bool, stop: bool, host: str | None, port: int | None, ws_port: int) -> int:
    """Run all jobs (orchestrator, reaper, launcher, notifications), the WebSocket hub and HTTP, until Ctrl-C."""
    http = session.settings.http
    host, port = host or http.host, http.port if port is None else port
    with session.bus() as bus:
        assert bus.layout is not None
        running = records.read(bus.layout, RECORD)
        alive = records.alive(running)
        if ask:
            return _say_status(session, bus.layout, running if alive else None)
        if stop:
            return _stop(session, bus.layout, running if alive else None)
        bus.check_writable()
        if running and alive:
            return _say_running(session, running)
        if detach:
            return _detach(session, bus.layout, host, port, ws_port)
        return _run(session, bus, host, port, ws_port)


def _run(session: Session, bus: Bus, host: str, port: int, ws_port: int) -> int:
    """Runs until a signal; of two that start at once the second finds the first one's record."""
    from agent_bus.faces.listen import Listening, bus_id, serve_http, token_of
    from agent_bus.faces.serve import log_to
    from agent_bus.jobs.supervisor import PORT_TRIES, Place, Supervisor

    assert bus.layout is not None
    log_to(session.settings)
    supervisor = Supervisor(bus)
    caller = replace(session.caller(), role="orchestrator", channel="ws", person=False)
    token, path = token_of(bus_id(session.settings) or "no-bus")
    try:
        with bus.store.lock("up"):  # from the look to the record: one step
            running = records.read(bus.layout, RECORD)
            if running and records.alive(running):
                return _say_running(session, running)
            http_port = _free_port(host, port, PORT_TRIES)
            hub_port = supervisor.start_hub(Place(host, ws_port), token, caller, PORT_TRIES)
            at = {"started_at": bus.stamp(), "host": host, "http_port": http_port, "hub_port": hub_port}
            records.write(bus.layout, RECORD, at)
        supervisor.start()
        session.warn(session.texts.say("up.running", pid=os.getpid(), http=http_port, hub=hub_port))
        session.warn(session.texts.say("up.token", path=path))
        return serve_http(session.settings, replace(caller, channel="http"), Listening(host, http_port))
    finally:
        records.remove(bus.layout, RECORD)
        for name in supervisor.end():
            session.warn(session.texts.say("up.stuck", name=name))


def _free_port(host: str, port: int, tries: int) -> int:
    """The first port of so many on which nobody listens (0: the system's choice)."""
    for candidate in range(port, port + tries):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            if sys.platform != "win32":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
                return int(probe.getsockname()[1])
            except OSError:
                continue
    raise BusError("conflict", f"no port from {port} on is free on {host}.", "Give --host and --port.")


def _say_running(session: Session, record: dict[str, Any]) -> int:
    if session.json:
        session.data({"running": True, **record})
    else:
        session.say("up.already", pid=record["process"]["pid"], http=record["http_port"], hub=record["hub_port"])
    return 0


def _say_status(session: Session, layout: Layout, record: dict[str, Any] | None) -> int:
    from agent_bus.operations.health import jobs_alive

    jobs = jobs_alive(layout)
    if session.json:
        session.data({"running": record is not None, **(record or {}), "jobs": jobs})
        return 0 if record else 1
    if record is None:
        session.say("up.not_running")
    else:
        _say_running(session, record)
    for job in jobs:
        session.line(f"  {job['job']}  {job['last_tick']}  {job['error']}".rstrip())
    return 0 if record else 1


def _stop(session: Session, layout: Layout, record: dict[str, Any] | None) -> int:
    """Asks the one that runs to end: the signal goes to exactly the process of the record (pid and start stamp)."""
    import psutil

    if record is None:
        session.say("up.not_running")
        return 0
    with suppress(psutil.NoSuchProcess):
        psutil.Process(record["process"]["pid"]).terminate()
    if not _until(lambda: not records.alive(record), _STOP_S):
        raise BusError(
            "timeout",
            f"process {record['process']['pid']} has not ended in {_STOP_S:.0f} s.",
            "Look again; a process that is paused (Ctrl-Z, SIGSTOP) must go on before it can end.",
        )
    session.say("up.stopped", pid=record["process"]["pid"])
    return 0


def _detach(session: Session, layout: Layout, host: str, port: int, ws_port: int) -> int:
    """Starts the same command without a terminal; it writes to log/up.log."""
    words = ["--root", str(layout.root), "up", "--host", host, "--port", str(port), "--ws-port", str(ws_port)]
    config = ["--config", session.config] if session.config else []
    folder = layout.state / "log"
    folder.mkdir(exist_ok=True)
    own: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        own = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with open(folder / "up.log", "ab") as log:
        command = [sys.executable, "-m", "agent_bus.faces.cli", *config, *words]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **own)
    seen = _until(lambda: records.alive(records.read(layout, RECORD)) or child.poll() is not None, _START_S)
    record = records.read(layout, RECORD)
    if not seen or record is None or not records.alive(record):
        raise BusError("unavailable", "it did not start.", f"See {folder / 'up.log'}.")
    return _say_running(session, record)


def _until(true: Any, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True


@click.group("job")
def job() -> None:
    """Run one job alone, as the programs in daemons/ do; `agent-bus up` runs them all."""


@job.command("hub")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8123, type=_PORT, show_default=True)
@click.pass_obj
def hub(session: Session, host: str, port: int) -> None:
    """The WebSocket hub: shows what happens, live."""
    from agent_bus.faces.listen import bus_id, token_of
    from agent_bus.jobs.supervisor import Place, Supervisor

    with session.bus() as bus:
        token, path = token_of(bus_id(session.settings) or "no-bus")
        caller = replace(session.caller(), role="orchestrator", channel="ws", person=False)
        supervisor = Supervisor(bus, ())
        ended = _on_signals()
        at = supervisor.start_hub(Place(host, port), token, caller)
        session.warn(session.texts.say("up.hub", url=f"ws://{host}:{at}"))
        session.warn(session.texts.say("up.token", path=path))
        _wait(ended)
        supervisor.end()


def _job(name: str, text: str, interval: bool = False) -> click.Command:
    """The command of a job that ticks."""

    @click.pass_obj
    def run(session: Session, once: bool, interval: float = 10.0) -> int:
        return _run_one(session, name, once, interval)

    options = [click.Option(["--once"], is_flag=True, help="One look, then end.")]
    if interval:
        kind = click.FloatRange(0.1, 3600)
        options.append(click.Option(["--interval"], default=10.0, type=kind, show_default=True, help="Seconds."))
    return click.Command(name, params=[*options], callback=run, help=text)


def _run_one(session: Session, name: str, once: bool, interval: float) -> int:
    from agent_bus.faces.serve import log_to
    from agent_bus.jobs.supervisor import Supervisor

    log_to(session.settings)
    with session.bus() as bus:
        bus.check_writable()
        supervisor = Supervisor(bus, (name,), interval)
        if once:
            failed = supervisor.once()
            for words in failed:
                session.warn(words)
            return 1 if failed else 0
        ended = _on_signals()
        supervisor.start()
        session.warn(session.texts.say("up.job", name=name, pid=os.getpid()))
        _wait(ended)
        supervisor.end()
    return 0


def _on_signals() -> threading.Event:
    """Set by the first signal to end."""
    ended = threading.Event()
    for name in ("SIGTERM", "SIGINT", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: ended.set())
    return ended


def _wait(ended: threading.Event) -> None:
    while not ended.wait(0.5):  # a bounded wait lets signal handlers run
        pass


for _command in (
    _job("orchestrator", "Acknowledge what needs no person, so that chains go on.", interval=True),
    _job("reaper", "Put right what crashed or ran out of time."),
    _job("launcher", "Start agents for their tasks."),
    _job("notify", "Tell the channels of [notify] what happens."),
    _job("mirror", "Keep the notes of the vault true."),
):
    job.add_command(_command)
for _command in job.commands.values():
    _command.params += global_options()
