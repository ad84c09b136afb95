"""What the command line adds for launched agents: following a run's log, and the hook that clients call."""

from __future__ import annotations

import time
from typing import Any

import click

from agent_bus.bus import Bus
from agent_bus.commands import find
from agent_bus.faces.answers import as_object
from agent_bus.faces.cli_hook import main as hook_main
from agent_bus.faces.cli_session import Session, run_verb

_LOOK_S = 0.5
_LINES = 1000


@click.command("logs")
@click.argument("task_id")
@click.option("--run", "number", default=0, type=click.IntRange(0), help="Which of its runs; default: the last.")
@click.option("--tail", default=200, show_default=True, type=click.IntRange(1, _LINES), help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what it writes, until it ends or Ctrl-C.")
@click.pass_obj
def logs(session: Session, task_id: str, number: int, tail: int, follow: bool) -> None:
    """Show the last lines that a run of a task wrote, without secrets."""
    with session.bus() as bus:
        found = _ask(bus, task_id, number, tail)
        if session.json and not follow:
            session.data(found)
            return
        shown = found["lines"]
        _print(session, shown)
        while follow and found["state"] != "ended":
            time.sleep(_LOOK_S)
            found = _ask(bus, task_id, number, _LINES)
            fresh = _after(shown, found["lines"])
            _print(session, fresh)
            shown = found["lines"]


def _ask(bus: Bus, task_id: str, number: int, tail: int) -> dict[str, Any]:
    return as_object(run_verb(bus, find("run_log"), {"task_id": task_id, "run": number, "tail": tail}))


def _print(session: Session, lines: list[str]) -> None:
    for line in lines:
        if session.json:
            session.data({"line": line})
        else:
            session.line(line)


def _after(old: list[str], new: list[str]) -> list[str]:
    """The lines of `new` that follow the longest end of `old` with which it begins, or that it holds."""
    for start in range(len(old)):
        end = old[start:]
        for place in range(len(new) - len(end), -1, -1):
            if new[place : place + len(end)] == end:
                return new[place + len(end) :]
    return new


@click.command("ps")
@click.pass_obj
def ps(session: Session) -> None:
    """Show the runs of launched agents that are live now, with their processes."""
    with session.bus() as bus:
        session.show(as_object(run_verb(bus, find("runs"), {"live": True, "limit": 100})), bus)


@click.command("hook", hidden=True)
@click.argument("event", type=click.Choice(["stop"]))
def hook(event: str) -> int:
    """Answer a client's hook on standard input: `stop` holds a run without a report once."""
    return hook_main([event])
