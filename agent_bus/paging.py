"""Answers that fit: clients cut long tool results, so ours stay under 8,000 characters and say how to get the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_core import to_json

from agent_bus.errors import BusError, invalid

T = TypeVar("T")
ANSWER_CHARS = 8_000
ROOM = 7_400
"""What the rows or the text of an answer may take; the rest is for its other fields."""


def size(value: Any) -> int:
    """The length of a value as compact JSON, in characters."""
    return len(to_json(value).decode("utf-8"))


def cut(text: str, chars: int) -> str:
    """The first characters of a text, with … if anything was cut."""
    return text if len(text) <= chars else f"{text[:chars]}…"


def fit(text: str, room: int) -> str:
    """The longest beginning of a text whose JSON takes at most `room` characters (escapes count)."""
    part = text[:room]
    while part and (over := size(part) - 2 - room) > 0:
        part = part[: min(len(part) - 1, max(0, len(part) - max(1, over // 6)))]
    return part


def brief(text: str, room: int) -> str:
    """The beginning of a text that takes at most `room` characters as JSON, with … if anything was cut."""
    return text if len(text) * 6 <= room or size(text) <= room else f"{fit(text, room - 3)}…"


def slim(row: Mapping[str, Any], each: int, total: int = ROOM) -> dict[str, Any]:
    """A row whose values take at most `each` characters as JSON (longer ones as cut text), and `total` together."""
    found: dict[str, Any] = {}
    used = 0
    for key, value in row.items():
        if size(value) > each:
            value = brief(value if isinstance(value, str) else to_json(value).decode("utf-8"), each)
        used += size(key) + size(value) + 2
        if used <= total:
            found[key] = value
    return found


def some(items: Sequence[str], room: int = 1500) -> list[str]:
    """The first items that fit, and how many more there are in words."""
    rows, more = take(items, len(items), lambda i: {"": brief(i, 300)}, room)
    shown = [str(r[""]) for r in rows]
    return [*shown, f"and {len(items) - len(shown)} more"] if more else shown


def take(
    items: Iterable[T], limit: int, row: Callable[[T], dict[str, Any]], room: int = ROOM
) -> tuple[list[dict[str, Any]], bool]:
    """Rows until `limit` or the room is reached; the second value says that there are more."""
    rows: list[dict[str, Any]] = []
    used = 0
    for item in items:
        made = row(item)
        used += size(made) + 1
        if len(rows) >= limit or (rows and used > room):
            return rows, True
        rows.append(made)
    return rows, False


def strange_cursor(text: str) -> BusError:
    """The error for a cursor that is none of ours."""
    return invalid("cursor", f"must be the one of the last answer, got {text[:20]!a}", "Leave it out to begin anew.")


def slice_text(text: str, cursor: str, room: int = ROOM) -> tuple[str, str]:
    """A part of a long text from a cursor (an offset in characters, "" = 0), and the next cursor ("" = no more).

    Raises:
        BusError: `invalid` for a cursor that is none of ours.
    """
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 9):
        raise strange_cursor(cursor)
    start = int(cursor or 0)
    part = fit(text[start:], room)
    end = start + len(part)
    return part, str(end) if end < len(text) else ""
