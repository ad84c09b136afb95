"""Lines of the journal as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agent_bus.faces import show
from agent_bus.faces.cli_values import Screen
from agent_bus.times import parse_stamp

_PLACED = ("id", "at", "event", "agent", "task_id", "outcome", "by")
_BAD = ("failed", "refused", "dead_letter", "blocked", "silent", "stopped")
_EVENT_COLUMNS = 22


def journal_line(line: Mapping[str, Any], screen: Screen) -> str:
    """One line: time, event, agent, task, outcome, then whatever else it says."""
    event = str(line.get("event", ""))
    colour = "red" if any(word in event for word in _BAD) else "cyan"
    parts = [
        click.style(_time(line, screen), dim=True),
        click.style(show.pad(show.one_line(event), _EVENT_COLUMNS), fg=colour),
        *(show.one_line(str(line[name])) for name in ("agent", "task_id", "outcome") if line.get(name)),
        *(show.one_line(f"{name}={value}") for name, value in line.items() if _tells(name, value)),
    ]
    return " ".join(parts).rstrip()


def _tells(name: str, value: Any) -> bool:
    return name not in _PLACED and isinstance(value, str | int | float) and value != ""


def _time(line: Mapping[str, Any], screen: Screen) -> str:
    try:
        return show.local(parse_stamp(str(line.get("at", ""))), screen.now)
    except ValueError:
        return "-" * 8
