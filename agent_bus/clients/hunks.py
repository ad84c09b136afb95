"""Changes of a text as data: what is cut, what is put in its place, and how to undo exactly what was put in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_bus.errors import BusError

BOM = "\ufeff"


@dataclass(frozen=True, order=True)
class Hunk:
    """The characters from `start` to `end` of the old text give way to `new`."""

    start: int
    end: int
    new: str


Span = tuple[int, int]
"""Where text of ours begins, and how many characters it has."""


def decode(data: bytes, name: str) -> str:
    """The text of a file, its byte order mark and line ends as they are.

    Raises:
        BusError: `refused` if it is not UTF-8, with the line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BusError("refused", f"{name} is not UTF-8 (line {line}).", "Save it as UTF-8, then try again.") from None


def encode(text: str, name: str) -> bytes:
    """The bytes of a text.

    Raises:
        BusError: `refused` for a text that no UTF-8 file can hold (a path with undecodable bytes).
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        fix = "Move the bus folder to a path whose names are readable text."
        raise BusError("refused", f"{name} cannot hold that path: it is not valid text.", fix) from None


def line_end(text: str) -> str:
    """The line end that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The place of a character for people, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def apply(text: str, hunks: Iterable[Hunk]) -> str:
    """The text with the hunks applied; they must not overlap."""
    parts, at = [], 0
    for hunk in sorted(hunks):
        parts += [text[at : hunk.start], hunk.new]
        at = hunk.end
    return "".join([*parts, text[at:]])


def difference(old: str, new: str) -> list[Hunk]:
    """One hunk from the first to the last difference; none if the texts are equal."""
    if old == new:
        return []
    first = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - first
    same = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return [Hunk(first, len(old) - same, new[first : len(new) - same])]


def track(spans: Sequence[Span] | None, hunks: Iterable[Hunk]) -> list[Span] | None:
    """Our spans after a change; None once something that is not ours was replaced, as that cannot be undone."""
    if spans is None:
        return None
    found, shift = list(spans), 0
    for hunk in sorted(hunks):
        start, cut, put = hunk.start + shift, hunk.end - hunk.start, len(hunk.new)
        home = next((n for n, (a, size) in enumerate(found) if a <= start and start + cut <= a + size), None)
        if home is None and cut:
            return None
        found = [(a + put - cut if a >= start + cut and n != home else a, size) for n, (a, size) in enumerate(found)]
        if home is None:
            found.append((start, put))
        else:
            found[home] = (found[home][0], found[home][1] + put - cut)
        shift += put - cut
    return sorted(found)


def without(text: str, spans: Iterable[Span]) -> str:
    """The text with our spans cut out."""
    return apply(text, [Hunk(start, start + size, "") for start, size in spans])
