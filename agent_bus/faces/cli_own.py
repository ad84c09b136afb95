"""The verbs that only a command line has."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import click

from agent_bus.app import load_features
from agent_bus.bus import Bus
from agent_bus.commands import find
from agent_bus.errors import invalid
from agent_bus.faces import cli_views as views
from agent_bus.faces.answers import as_object
from agent_bus.faces.cli_doctor import doctor
from agent_bus.faces.cli_init import init
from agent_bus.faces.cli_install import install, snippet, uninstall
from agent_bus.faces.cli_journal import journal_line
from agent_bus.faces.cli_launch import hook, logs, ps
from agent_bus.faces.cli_notify import notify
from agent_bus.faces.cli_quarantine import quarantine
from agent_bus.faces.cli_session import Session, read_stdin, run_verb
from agent_bus.faces.cli_up import job, up
from agent_bus.faces.cli_vault import vault
from agent_bus.faces.cli_verbs import STDIN, global_options

_POLL_S = 1.0
_ROLES = ("worker", "orchestrator", "reviewer", "operator")


@click.command("status")
@click.pass_obj
def status(session: Session) -> None:
    """Show the agents, the queues and what is wrong."""
    with session.bus() as bus:
        agents = as_object(run_verb(bus, find("get_all_status"), {}))
        health = as_object(run_verb(bus, find("system_health"), {}))
        if session.json:
            session.data({"agents": agents, "health": health})
        else:
            session.line(views.overview(agents, health, session.screen(bus)))


@click.command("tail")
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--since", default="", metavar="ID", help="Only what came after this line.")
@click.pass_obj
def tail(session: Session, lines: int, follow: bool, since: str) -> None:
    """Show what happened last: every change and every refusal."""
    with session.bus() as bus:
        last = _print_journal(session, bus, since, lines)
        if follow:
            _follow(session, bus, last)
        elif not last and not session.json:
            session.say("tail.empty")


def _print_journal(session: Session, bus: Bus, since: str, limit: int) -> str:
    """Prints the lines after an id and gives the last one's id."""
    for line in bus.journal.read(since, limit):
        if session.json:
            session.data(line)
        else:
            session.line(journal_line(line, session.screen(bus)))
        since = str(line.get("id", since))
    sys.stdout.flush()
    return since


def _follow(session: Session, bus: Bus, since: str) -> None:
    """Looks at each hint, and once a second: the journal is written after the hint of its change."""
    woken = threading.Event()
    with bus.watch.subscribe(woken.set):
        while True:
            since = _print_journal(session, bus, since, 1000)
            woken.wait(_POLL_S)
            woken.clear()


@click.command("reap")
@click.pass_obj
def reap(session: Session) -> None:
    """Put right what crashed or ran out of time, once; `agent-bus up` does it all the time."""
    from agent_bus.jobs.reaper import sweep  # only this verb pays for it

    load_features()
    with session.bus() as bus:
        bus.check_writable()
        done = as_object(sweep(bus, bus.now()))
        session.show(done if session.json else {k: v for k, v in done.items() if v}, bus, "reap.nothing")


@click.command("call")
@click.argument("name")
@click.argument("values", metavar="[JSON]", required=False)
@click.option("--json", "given", metavar="JSON", help="The parameters as an object; @FILE reads a file, - stdin.")
@click.pass_obj
def call(session: Session, name: str, values: str | None, given: str | None) -> None:
    """Call any verb by its tool name, with JSON for its parameters; prints its result as JSON."""
    session.json = True
    if values is not None and given is not None:
        raise click.UsageError("The parameters are given twice.")
    load_features()
    session.run(find(name.replace("-", "_")), _object(given if given is not None else values or "{}"))


def _object(text: str) -> dict[str, Any]:
    """The JSON object that the text holds or names.

    Raises:
        BusError: `invalid` if it is none.
    """
    good = "Give an object such as '{\"limit\": 5}'."
    if text == STDIN:
        text = read_stdin("JSON")
    try:
        found = json.loads(Path(text[1:]).read_text(encoding="utf-8-sig") if text.startswith("@") else text)
    except OSError as error:
        rule = f"cannot be read from {text[1:]} ({error.strerror})"
        raise invalid("JSON", rule, "Give the path of a file.") from None
    except ValueError as error:
        raise invalid("JSON", f"cannot be read ({error})", good) from None
    if not isinstance(found, dict):
        raise invalid("JSON", "must be an object", good)
    return found


@click.command("mcp")
@click.option("--transport", type=click.Choice(["stdio", "http", "sse"]), default="stdio", show_default=True)
@click.option("--tools", default="", metavar="LIST", help="Tool groups, with commas between them; or all.")
@click.option("--role", type=click.Choice(_ROLES), default=_ROLES[0], show_default=True)
@click.option("--host", default=None, help="Where HTTP listens; else setting http.host.")
@click.option("--port", default=None, type=click.IntRange(0, 65_535), help="0 = any free; else setting http.port.")
@click.option("--stateful", is_flag=True, help="HTTP with sessions.")
@click.option("--workspace", default="", metavar="DIR", help="The project of its clients; else setting workspace.")
@click.pass_obj
def mcp(
    session: Session,
    transport: str,
    tools: str,
    role: str,
    host: str | None,
    port: int | None,
    stateful: bool,
    workspace: str,
) -> int:
    """Serve the verbs as MCP tools, for the agents' clients to start."""
    from agent_bus.faces.serve import serve_mcp  # the SDK's import costs more than most verbs

    settings = session.settings
    if workspace:
        settings = settings.model_copy(update={"workspace": os.path.abspath(workspace)})
    http = settings.http
    return serve_mcp(
        settings,
        transport=transport,
        agent=session.agent,
        tools=tools,
        role=role,
        host=host or http.host,
        port=http.port if port is None else port,
        stateful=stateful,
    )


OWN: dict[str, click.Command] = {
    str(own.name): own
    for own in (
        init,
        status,
        tail,
        reap,
        call,
        mcp,
        up,
        install,
        uninstall,
        snippet,
        doctor,
        vault,
        quarantine,
        notify,
        job,
        logs,
        ps,
        hook,
    )
}
for _command in OWN.values():
    _command.params += global_options(["json"] if _command is call else [])
