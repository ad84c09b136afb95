"""A click command for every command of the registry: required parameters in order, the rest as options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from agent_bus.commands import Command, Parameter
from agent_bus.errors import invalid
from agent_bus.faces.cli_session import Session, read_stdin

GLOBAL_OPTIONS = ("root", "config", "agent", "language", "json")
_HELP = {
    "root": "The bus folder (AGENT_BUS_ROOT).",
    "config": "The settings file (AGENT_BUS_CONFIG).",
    "agent": "The agent that calls (AGENT_BUS_AGENT).",
    "language": "Language of messages: auto, en or ja.",
    "json": "Print JSON instead of text for people.",
}
_SUFFIXES = ("_id", "_agent", "_name", "_filter", "_s")
_LONG = 1000
STDIN = "-"


def global_options(taken: Sequence[str] = (), hidden: bool = True) -> list[click.Parameter]:
    """The options that may stand before a verb and after it.

    Args:
        taken: names of the verb's own parameters: they win, and ours then stands only before the verb.
        hidden: whether the help leaves them out, as a verb's does, for that of `agent-bus` shows them;
            `--json` always shows.
    """
    return [_global(name, hidden) for name in GLOBAL_OPTIONS if name not in taken]


def _global(name: str, hidden: bool) -> click.Option:
    flag = name == "json"
    return click.Option(
        [f"--{name}"],
        is_flag=flag,
        default=None,
        expose_value=False,
        callback=_note,
        hidden=hidden and not flag,
        help=_HELP[name],
        metavar=None if flag else name.upper(),
    )


def make(command: Command, shown: str) -> click.Command:
    """The click command of a registered command.

    Args:
        command: the command.
        shown: the name to use in the help, the long or the short one.
    """
    ordered = positional(command)
    values = click.Argument(["values"], nargs=-1, metavar=" ".join(p.name.upper() for p in ordered))
    taken = [p.name for p in command.parameters]
    return click.Command(
        shown,
        params=[*([values] if ordered else []), *_options(command), *global_options(taken)],
        callback=partial(_call, command),
        help=command.text,
        epilog=_epilog(ordered),
    )


def positional(command: Command) -> list[Parameter]:
    """The parameters that need no option: the required ones, or the first one if none is required."""
    required = [p for p in command.parameters if p.required and p.kind != "array"]
    first = [p for p in command.parameters[:1] if p.kind in ("string", "integer")]
    return required or first


def is_long(parameter: Parameter) -> bool:
    """Whether the parameter may be a long text, so that it may come from stdin or a file."""
    if parameter.kind != "string" or parameter.words:
        return False
    return parameter.param.json or parameter.param.max_chars >= _LONG


def option_names(command: Command) -> dict[str, list[str]]:
    """The options of each parameter: `--lease-id` and, if free, `--lease`; `--artifacts` and `--artifact`."""
    used = {p.name for p in command.parameters} | set(GLOBAL_OPTIONS) | {"help"}
    names = {}
    for parameter in command.parameters:
        short = _short(parameter)
        found = [parameter.name] if short in used else [parameter.name, short]
        used |= set(found)
        names[parameter.name] = [f"--{n.replace('_', '-')}" for n in found]
    return names


def _short(parameter: Parameter) -> str:
    if parameter.kind == "array":
        return parameter.name.removesuffix("s")
    return next((parameter.name.removesuffix(s) for s in _SUFFIXES if parameter.name.endswith(s)), parameter.name)


def _options(command: Command) -> list[click.Parameter]:
    found: list[click.Parameter] = []
    names = option_names(command)
    if command.confirm is not None:
        found.append(click.Option(["--yes", "yes"], is_flag=True, help="Show nothing and ask nothing."))
    for parameter in command.parameters:
        found.append(_option(parameter, names[parameter.name]))
        if is_long(parameter):
            flag = f"{names[parameter.name][0]}-file"
            text = f"Read {parameter.name} from this file; - is stdin."
            found.append(click.Option([flag, f"file_{parameter.name}"], metavar="FILE", help=text))
    return found


def _option(parameter: Parameter, names: list[str]) -> click.Option:
    text = parameter.param.text
    target = f"given_{parameter.name}"
    if parameter.kind == "boolean":
        return click.Option([f"{names[0]}/--no-{names[0][2:]}", target], default=None, help=text)
    words = "|".join(w for w in parameter.words if w)
    metavar = f"[{words}]" if words else {"integer": "NUMBER"}.get(parameter.kind, "TEXT")
    return click.Option([*names, target], multiple=parameter.kind == "array", metavar=metavar, help=text)


def _epilog(ordered: list[Parameter]) -> str:
    words = [f"{p.name.upper()}: {p.param.text}" for p in ordered]
    words += [f"{p.name.upper()} may be {STDIN} for stdin." for p in ordered if is_long(p)]
    return "\n\n".join(words)


def _note(context: click.Context, option: click.Parameter, value: Any) -> None:
    session = context.find_object(Session)
    if value is not None and value is not False and session is not None and option.name is not None:
        setattr(session, option.name, value)


def _call(command: Command, values: tuple[str, ...] = (), yes: bool = False, **options: Any) -> int:
    session: Session = click.get_current_context().obj
    given = arguments(command, values, options)
    if command.confirm is not None and not yes:
        bound = session.confirmed(command, given)
        if bound is None:
            return 1
        given = {**given, **bound}
    session.run(command, given)
    return 0


def arguments(command: Command, values: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The verb's parameters from what stood on the command line.

    Args:
        command: the command.
        values: what stood without an option, in order.
        options: `given_<name>` and `file_<name>` by name; None or () = not there.

    Raises:
        click.UsageError: too many values, one too few, or a text given twice.
        BusError: `invalid` if a file or stdin cannot be read or is not UTF-8.
    """
    given, files = _named(command, options, "given_"), _named(command, options, "file_")
    twice = next(iter(given.keys() & files.keys()), "")
    if twice:
        raise click.UsageError(f"{twice} is given twice.")
    places = [p.name for p in positional(command) if p.name not in given | files]
    if len(values) > len(places):
        extra = values[len(places)]
        raise click.UsageError(f"One argument too many ({extra}). Put a text with spaces into quotes.")
    given |= dict(zip(places, values, strict=False))
    missing = [p.name.upper() for p in command.parameters if p.required and p.name not in given | files]
    if missing:
        raise click.UsageError(f"Missing {', '.join(missing)}.")
    return _read(command, given, files)


def _named(command: Command, options: Mapping[str, Any], kind: str) -> dict[str, Any]:
    found = {p.name: options.get(kind + p.name) for p in command.parameters}
    return {name: value for name, value in found.items() if value not in (None, ())}


def _read(command: Command, given: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    from_stdin = [name for name, path in files.items() if path == STDIN]
    from_stdin += [p.name for p in command.parameters if is_long(p) and given.get(p.name) == STDIN]
    if len(from_stdin) > 1:
        raise click.UsageError(f"Only one of {', '.join(from_stdin)} can come from stdin.")
    ready = {p.name: _typed(p, given[p.name]) for p in command.parameters if p.name in given}
    ready |= {name: _from_file(name, path) for name, path in files.items() if path != STDIN}
    return ready | {name: read_stdin(name) for name in from_stdin}


def _typed(parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's type if it can be, else as it is: the registry says what is wrong."""
    if parameter.kind == "integer":
        return int(value) if value.removeprefix("-").isdecimal() else value
    return list(value) if parameter.kind == "array" else value


def _from_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise invalid(f"{name}-file", f"cannot be read ({error.strerror})", "Give the path of a text file.") from None
    except UnicodeDecodeError:
        raise invalid(f"{name}-file", "must be UTF-8 text", "Save or convert it as UTF-8.") from None
