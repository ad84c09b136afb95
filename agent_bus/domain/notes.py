"""A note as text: properties on top, regions that are ours, everything else the person's (docs/vault-notes.md).

A region goes from a line `%% agent-bus:begin NAME rev=N %%` to a line `%% agent-bus:end NAME %%`, outside of fences; no
region lies in another, and each name stands there once. A control is a line that ends in a block id, outside of both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

_MARKER = re.compile(r"^%% agent-bus:(begin|end) ([a-z][a-z0-9-]*)(?: rev=(\d+))? %%$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_BLOCK_ID = re.compile(r" \^([A-Za-z0-9-]+)$")
_BOX = re.compile(r"^\s*[-*+] \[(.)\] ")
_TICKED = re.compile(r"^(\s*[-*+] )[\[［]\S[\]］](\s)")
_KEY = re.compile(r"^([^\s#\-\[\]{}\"'][^:]*):(?: |$)")
OPEN, CLOSED = "---\n", "\n---\n"


class BrokenNote(ValueError):
    """The markers of a note do not fit: nothing is written into it, and no decision is taken from it."""


@dataclass(frozen=True)
class Parts:
    """A note taken apart.

    Args:
        front: the text between the two `---` lines; None if there are none, or they are not closed.
        body: everything after them.
    """

    front: str | None
    body: str


@dataclass(frozen=True)
class Region:
    """A region of ours: offsets in the body from the first character of its begin line to behind its end line."""

    name: str
    rev: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Line:
    """A line of the body outside of fences: where it begins, and its text without the line end."""

    start: int
    text: str


def split(text: str) -> Parts:
    """The properties' text and the body. A byte order mark counts for nothing, CR LF as LF."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    end = text.find(CLOSED, 3) if text.startswith(OPEN) else -1
    return Parts(text[4 : end + 1], text[end + len(CLOSED) :]) if end >= 0 else Parts(None, text)


def dressed(text: str, like: str) -> str:
    """A note with the byte order mark and the line ends of another one; where those are mixed they become LF."""
    breaks = like.count("\n")
    if breaks and like.count("\r\n") == breaks:
        text = text.replace("\n", "\r\n")
    return f"\ufeff{text}" if like.startswith("\ufeff") else text


def join(parts: Parts) -> str:
    """The note of its parts."""
    return parts.body if parts.front is None else f"{OPEN}{parts.front}---\n{parts.body}"


def lines(body: str) -> Iterator[Line]:
    """The lines outside of fences."""
    fence, at = "", 0
    for text in body.split("\n"):
        mark = _FENCE.match(text)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        else:
            yield Line(at, text)
        at += len(text) + 1


def regions(body: str) -> dict[str, Region]:
    """The regions by name, in their order.

    Raises:
        BrokenNote: a marker is missing, doubled, nested or crossed.
    """
    found: dict[str, Region] = {}
    opened: tuple[str, int, int, int] | None = None
    for line in lines(body):
        mark = _MARKER.match(line.text)
        if mark is None:
            continue
        kind, name, rev = mark[1], mark[2], int(mark[3] or 0)
        if kind == "begin":
            if opened or name in found:
                raise BrokenNote(f"the region {name} begins twice, or inside another")
            opened = (name, rev, line.start, line.start + len(line.text) + 1)
        elif opened is None or opened[0] != name:
            raise BrokenNote(f"the region {name} ends without a begin")
        else:
            end = min(line.start + len(line.text) + 1, len(body))
            found[name] = Region(name, opened[1], opened[2], end, body[opened[3] : line.start])
            opened = None
    if opened:
        raise BrokenNote(f"the region {opened[0]} has no end")
    return found


def region_text(name: str, rev: int, text: str) -> str:
    """A region with its markers; `text` ends in a line feed, or is empty."""
    return f"%% agent-bus:begin {name} rev={rev} %%\n{text}%% agent-bus:end {name} %%\n"


def with_regions(body: str, wanted: Mapping[str, str], rev: int) -> str:
    """The body with its regions set: those that differ get the new text and rev, missing ones are put after the one
    that stands before them in `wanted`, at the top if there is none.

    Raises:
        BrokenNote: as `regions`.
    """
    before = ""
    for name, text in wanted.items():
        known = regions(body)
        old = known.get(name)
        if old is None:
            at = known[before].end if before in known else 0
            body = body[:at] + region_text(name, rev, text) + body[at:]
        elif old.text != text:
            body = body[: old.start] + region_text(name, rev, text) + body[old.end :]
        before = name
    return body


def with_last_region(body: str, name: str, text: str) -> str:
    """The body with a region set that stands at its end.

    Raises:
        BrokenNote: as `regions`.
    """
    old = regions(body).get(name)
    if old is not None:
        return body[: old.start] + region_text(name, old.rev, text) + body[old.end :]
    return body.rstrip("\n") + "\n\n" + region_text(name, 1, text)


def without_regions(body: str) -> str:
    """What the person has written in the body.

    Raises:
        BrokenNote: as `regions`.
    """
    for region in reversed(list(regions(body).values())):
        body = body[: region.start] + body[region.end :]
    return body


def controls(body: str) -> dict[str, str]:
    """The boxes by block id: `x` for a tick, else the mark as it stands; an id that stands there twice is none.

    Raises:
        BrokenNote: as `regions`.
    """
    ours = [(region.start, region.end) for region in regions(body).values()]
    found: dict[str, str] = {}
    twice: set[str] = set()
    for line in lines(body):
        name = block_id(line.text)
        if not name or any(start <= line.start < end for start, end in ours):
            continue
        box = _BOX.match(unicodedata.normalize("NFKC", line.text))
        twice |= {name} & found.keys()
        found[name] = box[1].lower() if box else ""
    return {name: mark for name, mark in found.items() if name not in twice}


def block_id(text: str) -> str:
    """The block id at the end of a line; "" if there is none."""
    found = _BLOCK_ID.search(text.rstrip())
    return found[1] if found else ""


def is_ticked(body: str, name: str) -> bool:
    """Whether a box with this block id is ticked anywhere outside of fences, whatever the markers say."""
    found = (unicodedata.normalize("NFKC", line.text) for line in lines(body) if block_id(line.text) == name)
    return any((box := _BOX.match(text)) and box[1].lower() == "x" for text in found)


def unticked(body: str, names: Set[str]) -> str:
    """The body with the boxes of these block ids empty, as far as they are controls.

    Raises:
        BrokenNote: as `regions`.
    """
    wanted = {name for name in controls(body) if name in names}
    ours = [(region.start, region.end) for region in regions(body).values()]
    for line in reversed(list(lines(body))):
        inside = any(start <= line.start < end for start, end in ours)
        if block_id(line.text) in wanted and not inside:
            fresh = _TICKED.sub(r"\1[ ]\2", line.text, count=1)
            body = body[: line.start] + fresh + body[line.start + len(line.text) :]
    return body


def fields(front: str) -> list[tuple[str, str]]:
    """The properties in their order, each with all its lines as they stand; the name "" is text before the first."""
    found: list[tuple[str, str]] = []
    for line in front.splitlines(keepends=True):
        mark = _KEY.match(line)
        if mark or not found:
            found.append((mark[1].rstrip() if mark else "", line))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found
