"""Results as people read them: fields in words, lists as tables, times as ages, the next step last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from agent_bus.commands import commands
from agent_bus.faces import cli_values as values
from agent_bus.faces import show
from agent_bus.faces.cli_values import Screen

_LAST = ("problems", "warnings", "next")
_AGENT_COLUMNS = ("agent", "state", "current_task_id", "queued", "last_updated", "note")
_INDENT = "  "
_MOST_COLUMNS = 8
"""Documents with more fields are shown one after the other."""
_DEEPEST = 12
"""Columns of indent; what lies deeper is shown on one line."""


def render(result: Mapping[str, Any], screen: Screen, nothing: str = "result.nothing") -> str:
    """A result as text; fields that say nothing are left out.

    Args:
        result: the JSON object of a verb.
        screen: where it goes.
        nothing: the message for a result without anything to show.
    """
    fields = {k: v for k, v in result.items() if k not in _LAST and values.says(v)}
    lines = _block(fields, screen, "")
    if not lines and not (result.get("problems") or result.get("warnings")):
        lines = [screen.texts.say(nothing)]
    for name in ("problems", "warnings"):
        lines += problems(result.get(name) or [])
    if result.get("next"):
        lines += [click.style(f"→ {as_typed(show.one_line(str(result['next'])))}", dim=True)]
    return "\n".join(lines)


def overview(agents: Mapping[str, Any], health: Mapping[str, Any], screen: Screen) -> str:
    """The bus at a glance: agents, tasks by state, problems.

    Args:
        agents: the result of get_all_status.
        health: the result of system_health.
    """
    say = screen.texts.say
    known = rows(agents.get("agents") or [], screen, _AGENT_COLUMNS, _INDENT)
    tasks = values.numbers(health.get("counts") or {})
    wrong = [_INDENT + line for line in problems(health.get("problems") or [])]
    lines = [heading(say("status.agents")), *(known or [_INDENT + say("status.no_agents")]), ""]
    lines += [heading(say("status.tasks")), _INDENT + (tasks or say("status.no_tasks")), ""]
    lines += [heading(say("status.problems")), *(wrong or [_INDENT + say("status.well")])]
    return "\n".join(lines)


def problems(sentences: Sequence[Any]) -> list[str]:
    """Problems, a line each."""
    return [click.style(f"! {as_typed(show.one_line(str(sentence)))}", fg="yellow") for sentence in sentences]


def as_typed(sentence: str) -> str:
    """A sentence in which calls of tools stand as one types them: `agent-bus get-task --task-id …`."""

    def typed(match: re.Match[str]) -> str:
        if match[1] not in commands():
            return match[0]
        given = re.findall(r"(\w+)=([^,]+)", match[2] or "")
        words = [f"--{name.replace('_', '-')} {value.strip()}" for name, value in given]
        return " ".join(["agent-bus", match[1].replace("_", "-"), *words])

    return re.sub(r"\b([a-z]+(?:_[a-z]+)+)\b(?:\(([^)]*)\))?", typed, sentence)


def heading(words: str) -> str:
    """A heading."""
    return click.style(words, bold=True)


def rows(
    documents: Sequence[Mapping[str, Any]], screen: Screen, names: Sequence[str] = (), indent: str = ""
) -> list[str]:
    """Documents as a table.

    Args:
        documents: one a row.
        names: the fields to show; default: all. Those that say nothing in any row are left out.
    """
    names = _columns(documents, names)
    if not names:
        return []
    cells = [[show.one_line(values.cell(n, d.get(n), screen)) for n in names] for d in documents]
    columns = max(0, screen.columns - len(indent))
    lines = show.table([values.label(n, screen) for n in names], cells, columns)
    return [indent + show.join(_styled(kind, [*line[:-1], line[-1].rstrip()])) for kind, line in lines]


def _block(fields: Mapping[str, Any], screen: Screen, indent: str) -> list[str]:
    plain = {k: v for k, v in fields.items() if not _is_structure(v)}
    size = max((show.width(values.label(k, screen)) for k in plain), default=0)
    lines: list[str] = []
    for name, value in plain.items():
        label = click.style(show.pad(values.label(name, screen), size), dim=True)
        lines.append(f"{indent}{label}  {_hanging(_words(name, value, screen), indent + ' ' * (size + 2))}")
    for name, value in fields.items():
        if _is_structure(value):
            lines += [
                indent + heading(values.label(name, screen)),
                *_structure(value, screen, indent + _INDENT),
            ]
    return lines


def _words(name: str, value: Any, screen: Screen) -> str:
    if values.is_numbers(value):
        return values.numbers(value)
    return values.colour(str(value), show.clean(values.value_text(name, value, screen)))


def _structure(value: Any, screen: Screen, indent: str) -> list[str]:
    if len(indent) > _DEEPEST:
        return [indent + show.one_line(str(value))]
    if isinstance(value, Mapping):
        return _block({k: v for k, v in value.items() if values.says(v)}, screen, indent)
    if value and all(isinstance(item, Mapping) for item in value):
        if _is_table(value):
            return rows(value, screen, indent=indent)
        return [line for item in value for line in [*_structure(item, screen, indent), ""]][:-1]
    return [indent + _hanging(show.clean(str(item)), indent) for item in value]


def _is_table(documents: Sequence[Mapping[str, Any]]) -> bool:
    fits = all(values.fits_cell(value) for document in documents for value in document.values())
    return fits and len(_columns(documents, ())) <= _MOST_COLUMNS


def _columns(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    names = names or list(dict.fromkeys(name for document in documents for name in document))
    return [n for n in names if any(values.says(d.get(n)) for d in documents)]


def _styled(kind: str, cells: Sequence[str]) -> list[str]:
    if kind == "head":
        return [click.style(cell, dim=True) for cell in cells]
    return [values.colour(cell.strip(), cell) for cell in cells]


def _hanging(text: str, indent: str) -> str:
    """A text of several lines, the later ones set under the first."""
    return text.replace("\n", "\n" + indent)


def _is_structure(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, Mapping | list) for item in value) or len(value) > values.FEW
    return isinstance(value, Mapping) and not values.is_numbers(value)
