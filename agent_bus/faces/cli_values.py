"""Single values as people read them: times as ages, counts on one line, state words in colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from agent_bus.faces import show
from agent_bus.texts import Texts
from agent_bus.times import parse_stamp

_COLOURS = {
    **dict.fromkeys(("in_progress", "working"), "cyan"),
    **dict.fromkeys(("completed", "accepted"), "green"),
    **dict.fromkeys(("pending_approval", "blocked", "in_review", "waiting_for_review", "high"), "yellow"),
    **dict.fromkeys(("failed", "dead_letter", "error", "stopped", "rejected", "expired", "refused"), "red"),
}
_TIMES = ("_at", "_until", "last_seen", "last_updated", "not_before")
_CELL_CHARS = 160
FEW = 3
"""So many items of a list stand in one line."""


@dataclass(frozen=True)
class Screen:
    """Where a view is shown.

    Args:
        texts: the language.
        now: the wall clock, for ages.
        columns: the terminal's width; 0 = no terminal, nothing is cut.
    """

    texts: Texts
    now: datetime
    columns: int = 0


def value_text(name: str, value: Any, screen: Screen) -> str:
    """A single value in words: times and lengths of time as ages."""
    if not says(value):
        return "-"
    if isinstance(value, bool):
        return screen.texts.say("value.yes" if value else "value.no")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, int | float) and name.endswith("_s"):
        return show.span(screen.texts, value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return show.size(value)
    moment = _moment(name, value)
    if moment:
        return f"{show.local(moment, screen.now)} ({show.when(screen.texts, moment, screen.now)})"
    return str(value)


def cell(name: str, value: Any, screen: Screen) -> str:
    """A value in a table: a time as its age alone, a small document as its first field."""
    if isinstance(value, list):
        return ", ".join(map(_first, value)) or "-"
    moment = _moment(name, value)
    return show.when(screen.texts, moment, screen.now) if moment else value_text(name, value, screen)


def numbers(counts: Mapping[str, int]) -> str:
    """Numbers by word, the zeros left out: `pending 3 · blocked 1`."""
    parts = [colour(word, f"{show.one_line(word)} {number}") for word, number in counts.items() if number]
    return " · ".join(parts)


def is_numbers(value: Any) -> bool:
    """Whether a value is numbers by word."""
    return isinstance(value, Mapping) and all(type(number) is int for number in value.values())


def says(value: Any) -> bool:
    """Whether a value says something: zero and false do, emptiness does not."""
    if is_numbers(value):
        return any(value.values())
    return value is not None and value not in ("", [], {})


def fits_cell(value: Any) -> bool:
    """Whether a value has room in a table."""
    if isinstance(value, list):
        return len(value) <= FEW and all(fits_cell(v) or _is_small(v) for v in value)
    return not isinstance(value, Mapping) and len(str(value)) <= _CELL_CHARS


def colour(word: str, text: str) -> str:
    """The text in the colour of a word of the protocol, if it has one."""
    found = _COLOURS.get(word)
    return click.style(text, fg=found) if found else text


def label(name: str, screen: Screen) -> str:
    """A field's name for people; it may come from stored data."""
    return show.one_line(screen.texts.label(name))


def _first(value: Any) -> str:
    return str(next(iter(value.values()), "")) if isinstance(value, Mapping) else str(value)


def _is_small(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) <= FEW


def _moment(name: str, value: Any) -> datetime | None:
    """The time that a field holds, if it is one that should."""
    if not isinstance(value, str) or not (name in ("at", "until") or name.endswith(_TIMES)):
        return None
    try:
        return parse_stamp(value)
    except ValueError:
        return None
