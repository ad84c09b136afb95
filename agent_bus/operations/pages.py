"""Cursors of lists that are newest first, and long texts in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_bus import paging
from agent_bus.errors import invalid

_MARK = "~"


def cursor(time: str, name: str) -> str:
    """The cursor behind a row: its time and its name."""
    return f"{time}{_MARK}{name}"


def place(text: str) -> tuple[str, str] | None:
    """The place that a cursor stands for, None for the beginning.

    Raises:
        BusError: `invalid` for one that is none of ours.
    """
    if not text:
        return None
    time, mark, name = text.rpartition(_MARK)
    if not (mark and name):
        raise paging.strange_cursor(text)
    return time, name


def number(text: str) -> int:
    """A cursor that is a number, "" = 0; errors as `place`."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise paging.strange_cursor(text)
    return int(text)


def numbers(text: str) -> dict[str, int]:
    """A cursor of several sequences, by their names; errors as `place`."""
    found = {}
    for part in text.split(_MARK) if text else ():
        name, mark, count = part.rpartition(":")
        if not (mark and name and count.isascii() and count.isdecimal() and len(count) <= 12):
            raise paging.strange_cursor(text)
        found[name] = int(count)
    return found


def numbers_text(found: Mapping[str, int]) -> str:
    """The cursor of several sequences."""
    return _MARK.join(f"{name}:{count}" for name, count in sorted(found.items()))


def cut_field(row: dict[str, Any], name: str, text: str, offset: int, room: int) -> dict[str, Any]:
    """A row whose long text goes from an offset as far as there is room; `cut` then says where to read on.

    Raises:
        BusError: `invalid` for an offset behind the end.
    """
    if offset and offset >= len(text):
        raise invalid("offset", f"must be below {len(text)}, the length of {name}, got {offset}")
    left = max(200, room - paging.size({**row, name: ""}) - 20)
    part = paging.fit(text[offset:], left)
    end = offset + len(part)
    return {**row, name: part} | ({"cut": end} if end < len(text) else {})
