"""What the generated pages say about the tools: docs/tools.md, and the table of README.md."""

from __future__ import annotations

import inspect
import re
import typing
from typing import TYPE_CHECKING

from _docwords import GROUPS, MADE

if TYPE_CHECKING:
    from agent_bus.commands import Command, Parameter


def tools_page(known: list[Command]) -> str:
    """docs/tools.md."""
    parts = [
        MADE,
        "# The tools\n\nOne function is an MCP tool, a verb of the [command line](cli.md) and `POST /api/<name>`; the"
        " three give equal JSON. Errors: [errors.md](errors.md). What they do to a task: [protocol.md](protocol.md).\n",
        "\nEvery answer has fewer than 8,000 characters. What does not fit comes in parts: call again with the `cursor`"
        " of the answer. A parameter that is null counts as not given.\n",
    ]
    for group in dict.fromkeys(command.group for command in known):
        parts.append(f"\n## {group}\n\n{GROUPS[group]}\n")
        parts += [tool_section(command) for command in known if command.group == group]
    return "".join(parts)


def tool_section(command: Command) -> str:
    """One tool: its words, parameters, answer and hints."""
    rows = "".join(f"| `{p.name}` | {kind(p)} | {default(p)} | {p.param.text} |\n" for p in command.parameters)
    table = f"\n| parameter | type | default | |\n|---|---|---|---|\n{rows}" if rows else "\nNo parameters.\n"
    answer = typing.get_type_hints(inspect.unwrap(command.verb))["return"]
    fields = ", ".join(f"`{name}`" for name in answer.model_fields)
    hints = {
        "reads only": not command.writes,
        "the same call twice has one effect": command.idempotent,
        "a client may ask its person first": command.destructive,
        "waits": command.is_async,
        "for people": command.people,
    }
    told = "; ".join(text for text, holds in hints.items() if holds)
    return f"\n### {command.name}\n\n{command.text}\n{table}\nAnswer: {fields}.{f' ({told})' if told else ''}\n"


def kind(parameter: Parameter) -> str:
    """A parameter's type in words, with its limits."""
    param = parameter.param
    if parameter.words:
        return " \\| ".join(word for word in parameter.words if word)
    if parameter.kind == "integer":
        return f"integer {param.low} … {param.high}"
    if parameter.kind == "array":
        return f"array of texts, ≤ {param.max_items} × {param.max_chars:,}"
    if parameter.kind == "string":
        return f"text, ≤ {param.max_chars:,}" if param.max_chars else "text"
    return parameter.kind


def default(parameter: Parameter) -> str:
    """A parameter's default, `needed` without one."""
    if parameter.required:
        return "needed"
    value = parameter.default
    return f"`{str(value).lower()}`" if isinstance(value, bool | int) else f"`{value}`" if value else "–"


def tools_table(known: list[Command]) -> str:
    """The tools of README.md: one line each."""
    rows = "".join(f"| `{c.name}` | {c.group} | {first_sentence(c.text)} |\n" for c in known)
    return f"| tool | group | |\n|---|---|---|\n{rows}"


def first_sentence(text: str) -> str:
    """The first sentence of a tool's words."""
    return re.split(r"(?<=[.])\s", text.replace("\n", " "), maxsplit=1)[0]
