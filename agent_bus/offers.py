"""What a feature offers beside its verbs: prompts, and documents under an address. The same door as `@command`.

A prompt is a function `name(bus, …) -> str`: the text that a person's client inserts. A resource is a function
`name(bus) -> model`, or `name(bus, id) -> model` for an address that ends in `{id}`. Both belong to a tool group and
are seen by the servers that offer one of its tools.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent_bus.bus import Bus
from agent_bus.commands import V, Verb, arrange, refuse_double
from agent_bus.parameters import Parameter, of_verb

Words = Callable[[Bus], Iterable[str]]
"""What may stand for a parameter, the likeliest first."""
_ADDRESS = re.compile(r"(?P<stem>bus://(?P<name>[a-z][a-z0-9-]*)(?:/(?=\{))?)(?:\{(?P<parameter>[a-z_]+)\})?")


@dataclass(frozen=True)
class Prompt:
    """A prompt with what the face must know about it."""

    name: str
    group: str
    verb: Verb
    text: str
    parameters: tuple[Parameter, ...]
    complete: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True)
class Resource:
    """A document, or one of a kind, under an address.

    Args:
        uri: the address; a template if it ends in `{parameter}`.
        stem: the address without the parameter.
        volatile: fields that do not count when somebody wants to hear of changes: ages, free space.
    """

    uri: str
    name: str
    group: str
    verb: Verb
    text: str
    stem: str
    parameter: str = ""
    complete: Mapping[str, Words] = field(default_factory=dict)
    volatile: tuple[str, ...] = ()


_prompts: dict[str, Prompt] = {}
_resources: dict[str, Resource] = {}


def prompt(*, group: str, complete: Mapping[str, Words] | None = None) -> Callable[[V], V]:
    """Registers a function `verb(bus, …) -> str` as a prompt under its own name.

    Args:
        group: the tool group that it comes with.
        complete: by parameter, what a client may suggest for it; the words of a Literal are suggested anyway.
    """

    def register(verb: V) -> V:
        made = Prompt(verb.__name__, group, verb, _words(verb), tuple(of_verb(verb)), complete or {})
        refuse_double(f"the prompt {made.name}", _prompts.get(made.name), verb)
        _prompts[made.name] = made
        return verb

    return register


def resource(
    uri: str, *, group: str, complete: Words | None = None, volatile: tuple[str, ...] = ()
) -> Callable[[V], V]:
    """Registers a function `verb(bus) -> model` or `verb(bus, id) -> model` as a resource.

    It raises BusError `not_found` or `invalid` for an id that there is none of, before it looks at anything.

    Args:
        uri: `bus://name` or `bus://name/{parameter}`.
        group: the tool group that it comes with.
        complete: what a client may suggest for the parameter.
        volatile: fields that change by themselves, so that a change of them alone is told nobody.

    Raises:
        TypeError: the address is none of these, or its parameter is not the function's.
    """

    def register(verb: V) -> V:
        found = _ADDRESS.fullmatch(uri)
        taken = list(inspect.signature(verb).parameters)[1:]
        if found is None or taken != ([found["parameter"]] if found["parameter"] else []):
            raise TypeError(f"{uri} does not fit {verb.__module__}.{verb.__name__}({', '.join(taken)})")
        parameter = found["parameter"] or ""
        known = {parameter: complete} if complete else {}
        made = Resource(uri, found["name"], group, verb, _words(verb), found["stem"], parameter, known, volatile)
        refuse_double(f"the resource {uri}", _resources.get(uri), verb)
        _resources[uri] = made
        return verb

    return register


def arrange_offers(modules: Sequence[str]) -> None:
    """See `commands.arrange`."""
    arrange(_prompts, modules)
    arrange(_resources, modules)


def prompts() -> Mapping[str, Prompt]:
    """All registered prompts by name, in the order of registration."""
    return types.MappingProxyType(_prompts)


def resources() -> Mapping[str, Resource]:
    """All registered resources by address, in the order of registration."""
    return types.MappingProxyType(_resources)


def _words(verb: Verb) -> str:
    return inspect.cleandoc(verb.__doc__ or "")
