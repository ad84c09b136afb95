"""The registry of verbs: one function becomes an MCP tool, a CLI verb and an HTTP call.

The rules for their input are in `parameters`. The schema is flat, without null or unions, because several clients
refuse a whole tool list for one such schema.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.parameters import Param, Parameter, check_given, nearest, of_verb

Result = BaseModel
Verb = Callable[..., Any]
V = TypeVar("V", bound=Verb)


@dataclass(frozen=True)
class Question:
    """What the person at a client may be asked after a verb, because their answer is the quicker way on.

    Args:
        text: the whole question; the same facts give the same text.
        yes: the label of the box that says yes.
        comment: the label of the line for a comment.
        subject: what an answer is bound to; it is given back with the answer.
    """

    text: str
    yes: str
    comment: str
    subject: str


@dataclass(frozen=True)
class Ask:
    """How a verb asks: the result stands before the question, and stays as it is if there is no answer.

    Args:
        question: from the result; None = nobody is asked. The person's client is in `bus.caller`.
        answered: the result after an answer: result, subject, yes or no, comment.
    """

    question: Callable[[Bus, Result], Question | None]
    answered: Callable[[Bus, Result, str, bool, str], Result]


@dataclass(frozen=True)
class Confirmation:
    """What a person at a terminal is shown before a verb, and what binds it to that.

    Args:
        text: what is shown.
        bound: parameters that are added to the call, so that it holds for nothing else.
    """

    text: str
    bound: Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """A verb with what the faces must know about it."""

    name: str
    group: str
    verb: Verb
    writes: bool
    text: str
    parameters: tuple[Parameter, ...]
    idempotent: bool = False
    destructive: bool = False
    always_load: bool = False
    people: bool = False
    any_host: bool = False
    undo: Callable[[Bus, Result], None] | None = None
    ask: Ask | None = None
    confirm: Callable[[Bus, Mapping[str, Any]], Confirmation | None] | None = None

    @property
    def is_async(self) -> bool:
        """Whether the verb waits (and so is `async def`)."""
        return inspect.iscoroutinefunction(self.verb)

    def schema(self) -> dict[str, Any]:
        """The input schema."""
        found: dict[str, Any] = {
            "type": "object",
            "properties": {p.name: p.schema() for p in self.parameters},
        }
        required = [p.name for p in self.parameters if p.required]
        return {**found, "required": required} if required else found


_registry: dict[str, Command] = {}


class DuplicateCommand(Exception):
    """Two modules register one name; both are named."""


def command(
    *,
    group: str,
    writes: bool,
    idempotent: bool = False,
    destructive: bool = False,
    always_load: bool = False,
    people: bool = False,
    any_host: bool = False,
    undo: Callable[[Bus, Result], None] | None = None,
    ask: Ask | None = None,
    confirm: Callable[[Bus, Mapping[str, Any]], Confirmation | None] | None = None,
) -> Callable[[V], V]:
    """Registers a function `verb(bus, …) -> pydantic model` under its own name.

    Args:
        group: the tool group that switches it on.
        writes: False for verbs that only read.
        idempotent: the same call twice has one effect.
        destructive: a client may ask its person first.
        always_load: clients that load tools lazily should have it from the start.
        any_host: allowed on a host that is not the owner of the bus folder.
        people: for people only (CLI, web; MCP only with role operator).
        undo: takes back what a call took whose answer never reached its caller; for verbs that hand something out.
        ask: what the person at the client is asked afterwards, if the client can.
        confirm: what a person at a terminal is shown, and asked, before.
    """

    def register(verb: V) -> V:
        name = verb.__name__
        made = Command(
            name, group, verb, writes, inspect.cleandoc(verb.__doc__ or ""), tuple(of_verb(verb)),
            idempotent, destructive, always_load, people, any_host, undo, ask, confirm,
        )  # fmt: skip
        refuse_double(name, _registry.get(name), verb)
        _registry[name] = made
        return verb

    return register


def refuse_double(name: str, other: Any, verb: Verb) -> None:
    """Refuses a name that another module has registered.

    Args:
        name: the name.
        other: what is registered under it, with its `verb`; None = nothing.
        verb: what asks for it.

    Raises:
        DuplicateCommand: both modules are named.
    """
    if other is not None and other.verb.__module__ != verb.__module__:
        raise DuplicateCommand(f"{name} is registered by {other.verb.__module__} and by {verb.__module__}")


def arrange(registry: dict[str, Any], modules: Sequence[str]) -> None:
    """Puts a registry (values with a `verb`, by name) into the order of modules, whichever was imported first: lists
    that agents see keep their order. What others register stays behind. A registry in order is left alone.
    """
    rank = {name: number for number, name in enumerate(modules)}
    wanted = sorted(registry, key=lambda name: rank.get(registry[name].verb.__module__, len(rank)))
    if wanted != list(registry):
        found = {name: registry[name] for name in wanted}
        registry.clear()
        registry.update(found)


def arrange_commands(modules: Sequence[str]) -> None:
    """See `arrange`."""
    arrange(_registry, modules)


def commands() -> Mapping[str, Command]:
    """All registered commands by name, in the order of registration."""
    return types.MappingProxyType(_registry)


def find(name: str) -> Command:
    """The command of a name.

    Raises:
        BusError: `not_found` with the nearest name.
    """
    found = _registry.get(name)
    if found is None:
        raise BusError("not_found", f"there is no command {name[:60]!a}.", nearest(name, _registry))
    return found


def check(command: Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the verb takes them; null is the same as not given.

    Raises:
        BusError: `invalid` or `too_large`, naming the parameter, the rule and a good value.
    """
    return check_given(command.name, command.parameters, given)


async def run(bus: Bus, command: Command, given: Mapping[str, Any]) -> Result:
    """Checks the arguments and runs the verb to its end; refusals of writing verbs are journaled.

    Sync verbs run where they are called: faces with an event loop put them on a thread (`run_sync`).
    """
    if not command.is_async:
        return run_sync(bus, command, given)
    try:
        _admit(bus, command)
        result: Result = await command.verb(bus, **check(command, given))
        return result
    except BusError as error:
        _witness(bus, command, given, error)
        raise


def run_sync(bus: Bus, command: Command, given: Mapping[str, Any]) -> Result:
    """`run` for a verb that does not wait."""
    try:
        _admit(bus, command)
        result: Result = command.verb(bus, **check(command, given))
        return result
    except BusError as error:
        _witness(bus, command, given, error)
        raise


class Bound:
    """The verbs as methods of one bus: `bind(bus).dispatch_task("coder", "write tests")`; waiting verbs are awaited."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in _registry:
            raise AttributeError(name)
        command = _registry[name]

        def call(*args: Any, **kwargs: Any) -> Result | Awaitable[Result]:
            given = dict(zip((p.name for p in command.parameters), args, strict=False)) | kwargs
            return run(self._bus, command, given) if command.is_async else run_sync(self._bus, command, given)

        return call


def bind(bus: Bus) -> Bound:
    """The verbs as methods, with the same checks as every face has."""
    return Bound(bus)


def _admit(bus: Bus, command: Command) -> None:
    if command.writes and not command.any_host:
        bus.check_writable()


def _witness(bus: Bus, command: Command, given: Mapping[str, Any], error: BusError) -> None:
    if not command.writes or error.code == "unavailable":
        return
    line = {
        "at": bus.stamp(),
        "event": "refused",
        "verb": command.name,
        "outcome": error.code,
        "agent": bus.caller.agent,
    }
    if isinstance(given.get("task_id"), str):
        line["task_id"] = given["task_id"][:40]
    bus.journal.write(bus.now(), line)


__all__ = [
    "Ask",
    "Bound",
    "Command",
    "Confirmation",
    "DuplicateCommand",
    "Param",
    "Parameter",
    "Question",
    "Result",
    "bind",
    "check",
    "command",
    "commands",
    "find",
    "nearest",
    "refuse_double",
    "run",
    "run_sync",
]
