"""Text for a terminal: widths that are right for Japanese, tables, ages, and stored text made harmless."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime

from agent_bus.texts import Texts

_WIDE = "WF"
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls but tab and newline, bidirectional marks, lone surrogates: they could steer a terminal."""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (0, "s"))
_SIZES = ("B", "kB", "MB", "GB", "TB")
_GAP = "  "
_LEAST = 8


def clean(text: str) -> str:
    """The text with everything replaced that a terminal would obey instead of showing."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The clean text with its white space drawn together."""
    return " ".join(clean(text).split())


def width(text: str) -> int:
    """Columns that a text takes (Unicode TR11: wide and full-width characters two, combining ones none)."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def pad(text: str, columns: int, right: bool = False) -> str:
    """The text filled with spaces up to so many columns."""
    space = " " * (columns - width(text))
    return space + text if right else text + space


def cut(text: str, columns: int) -> str:
    """The text in at most so many columns, with … if something is missing."""
    if width(text) <= columns:
        return text
    kept, used = [], 1  # the … takes one
    for char in text:
        used += _columns(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], columns: int = 0) -> list[tuple[str, list[str]]]:
    """Lines of a table, as (kind, cells padded to their columns); kind is `head` or `row`.

    Args:
        head: names of the columns.
        rows: cells, each one line of clean text.
        columns: the terminal's width, the widest columns give way to it; 0 = whatever it takes.
    """
    sizes = [max(map(width, cells)) for cells in zip(head, *rows, strict=True)]
    while columns and sum(sizes) + len(_GAP) * (len(sizes) - 1) > columns and max(sizes) > _LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    lines = [[pad(cut(cell, size), size) for cell, size in zip(cells, sizes, strict=True)] for cells in (head, *rows)]
    return [("head", lines[0]), *(("row", line) for line in lines[1:])]


def join(cells: Sequence[str]) -> str:
    """The cells of a line of a table as one text."""
    return _GAP.join(cells)


def span(texts: Texts, seconds: float) -> str:
    """A length of time in its greatest whole unit: `3 min`."""
    size, unit = next((size, unit) for size, unit in _UNITS if abs(seconds) >= size)
    return texts.say(f"span.{unit}", n=int(abs(seconds) // (size or 1)))


def size(number: int) -> str:
    """A number of bytes in its greatest decimal unit: `1.5 GB`."""
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_SIZES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_SIZES[unit]}" if unit else f"{number} {_SIZES[0]}"


def when(texts: Texts, moment: datetime, now: datetime) -> str:
    """How far a moment is from now: `3 min ago`, `in 2 h`."""
    seconds = (now - moment).total_seconds()
    return texts.say("span.ago" if seconds >= 0 else "span.ahead", span=span(texts, seconds))


def local(moment: datetime, now: datetime) -> str:
    """A moment as the wall shows it: the time, with the date unless it is today."""
    here, today = moment.astimezone(), now.astimezone()
    return f"{here:%H:%M:%S}" if here.date() == today.date() else f"{here:%Y-%m-%d %H:%M}"


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
