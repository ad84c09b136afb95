"""One run of the command line: what the global options said, who calls, the bus, and where output goes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import click

from agent_bus import commands, host
from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.commands import Command, Result
from agent_bus.errors import BusError, invalid
from agent_bus.faces.answers import as_object, as_text
from agent_bus.faces.cli_values import Screen
from agent_bus.faces.cli_views import render
from agent_bus.ids import check_agent, is_task_id
from agent_bus.settings import Settings, load_settings
from agent_bus.store.layout import Layout
from agent_bus.texts import Texts, choose_language

AGENT_VARIABLES = ("AGENT_BUS_AGENT", "AGENT_BUS_RUN_ID")
"""Set in the shell of an agent: there is no person behind such a call, whatever its terminal."""


@dataclass
class Session:
    """What the global options said; the rest follows from it when it is first asked for."""

    root: str = ""
    config: str = ""
    agent: str = ""
    language: str = ""
    json: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The settings with the command line on top."""
        return load_settings(self.config, overrides={"root": self.root, "language": self.language})

    @cached_property
    def texts(self) -> Texts:
        """The messages in the language of this run."""
        return Texts(choose_language(self.settings.language, os.environ))

    @property
    def layout(self) -> Layout:
        """Where the parts of the bus lie, whether or not they are there; the setting `root` must be set."""
        settings = self.settings
        return Layout.of(Path(settings.root).expanduser(), settings.state_dir, settings.archive_dir)

    def caller(self) -> Caller:
        """Who calls: a person at a terminal, an agent, or a program.

        Raises:
            BusError: `invalid` if the agent's name is none.
        """
        agent = self.agent or os.environ.get("AGENT_BUS_AGENT", "")
        run, lease_id = os.environ.get("AGENT_BUS_RUN_ID", ""), os.environ.get("AGENT_BUS_LEASE_ID", "")
        person = not why_no_person()
        role = "operator" if person else "worker" if agent or run else "orchestrator"
        agent = check_agent(agent, "--agent") if agent else ""
        return Caller(agent, role, channel="cli", run=run, lease_id=lease_id, person=person)

    @contextmanager
    def bus(self) -> Iterator[Bus]:
        """The open bus; what is wrong in the settings file is said on stderr.

        Raises:
            BusError: as `open_bus`.
        """
        for problem in self.settings.problems:
            self.warn(self.texts.say("settings.problem", problem=problem))
        bus = open_bus(self.settings, self.caller())
        try:
            yield bus
        finally:
            bus.close()

    def run(self, command: Command, given: Mapping[str, Any]) -> None:
        """Runs a verb and shows its result; one that cannot be written is taken back, where the verb can.

        Raises:
            BusError: the verb's own, or `refused` for a verb that needs a person.
        """
        check_person(command, str(given.get("task_id", "")))
        with self.bus() as bus:
            result = run_verb(bus, command, given)
            try:
                self.show(as_object(result) if self.json else whole(bus, command, given, result), bus)
                sys.stdout.flush()
            except OSError:
                if command.undo is not None:
                    command.undo(bus, result)
                raise

    def confirmed(self, command: Command, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Shows a person what a verb is about and asks; what binds the call to that, None if they say no.

        Raises:
            BusError: `refused` without a person.
        """
        assert command.confirm is not None
        check_person(command, str(given.get("task_id", "")))
        with self.bus() as bus:
            found = command.confirm(bus, given)
        if found is None:
            return {}
        self.warn(found.text)
        if click.confirm(self.texts.say("ask.yes"), err=True):
            return found.bound
        self.warn(self.texts.say("ask.left"))
        return None

    def show(self, found: Mapping[str, Any], bus: Bus, nothing: str = "result.nothing") -> None:
        """Prints a result: as JSON, or for people, with the message `nothing` if there is nothing to show."""
        if self.json:
            self.data(found)
        else:
            self.line(render(found, self.screen(bus), nothing))

    def screen(self, bus: Bus) -> Screen:
        """What the views need to know about the place they print to."""
        columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 0
        return Screen(self.texts, bus.now(), columns)

    def data(self, value: Any) -> None:
        """Prints a value as one line of JSON."""
        click.echo(as_text(value))

    def line(self, text: str) -> None:
        """Prints text; its colours only on a terminal, and not with NO_COLOR (no-color.org)."""
        click.echo(text, color=False if os.environ.get("NO_COLOR") else None)

    def say(self, key: str, /, **values: object) -> None:
        """Prints a message."""
        self.line(self.texts.say(key, **values))

    def warn(self, text: str) -> None:
        """Prints text on stderr."""
        click.echo(text, err=True, color=False if os.environ.get("NO_COLOR") else None)


def long_name(name: str) -> str:
    """A command's name on the command line."""
    return name.replace("_", "-")


def run_verb(bus: Bus, command: Command, given: Mapping[str, Any]) -> Result:
    """Runs a verb to its end, on an event loop only if it waits."""
    if command.is_async:
        import asyncio  # wanted only by verbs that wait

        return asyncio.run(commands.run(bus, command, given))
    return commands.run_sync(bus, command, given)


def whole(bus: Bus, command: Command, given: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """A result for people; a task that comes as JSON text in parts (get_task) is put together and opened."""
    found = as_object(result)
    if "task_json" not in found:
        return found
    text, cursor = found["task_json"], found["cursor"]
    while cursor:
        part = as_object(run_verb(bus, command, {**given, "cursor": cursor}))
        text, cursor = text + part["task_json"], part["cursor"]
    try:
        task = json.loads(text)
    except ValueError:  # it changed between two parts
        task = {"task_json": text}
    return {"why": found["why"], **task, "next": found["next"]}


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; a process without a console has no streams."""
    return stream is not None and not stream.closed and stream.isatty()


def why_no_person() -> str:
    """Why this cannot be a person at a terminal; "" if it can."""
    named = [name for name in AGENT_VARIABLES if os.environ.get(name)]
    if named:
        return f"{named[0]} is set, so this is an agent's shell"
    return "" if is_terminal(sys.stdin) and is_terminal(sys.stdout) else "this is not a terminal"


def why_below_a_run() -> str:
    """Why a process below a run of the launcher is none of a person, though it has hidden its variables."""
    run = host.set_above("AGENT_BUS_RUN_ID")
    return f"this was started by the run {run}" if run else ""


def check_person(command: Command, task_id: str = "") -> None:
    """Keeps the verbs for people from everybody else (docs/protocol.md "The tools").

    Args:
        command: the verb.
        task_id: the task it is about, for the hint.

    Raises:
        BusError: `refused`, saying how a person does it.
    """
    if command.people:
        words = ["agent-bus", long_name(command.name), *([task_id] if is_task_id(task_id) else [])]
        need_person(command.name, " ".join(words))


def need_person(name: str, line: str) -> None:
    """Keeps a verb for people from everybody else.

    Args:
        name: the verb.
        line: what a person types.

    Raises:
        BusError: `refused`, saying how a person does it.
    """
    if reason := why_no_person() or why_below_a_run():
        hint = f"Open a terminal of your own and run there, without a pipe: {line}"
        raise BusError("refused", f"{name} is for people, and {reason}.", hint)


def read_stdin(name: str) -> str:
    """The text on stdin without its last line ends.

    Raises:
        BusError: `invalid` if it is not UTF-8.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise invalid(name, "on stdin must be UTF-8 text", "Save or convert it as UTF-8.") from None
