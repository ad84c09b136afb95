"""Putting a table of ours into a TOML document, and taking it out; the rest of the text stays as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import tomlkit

from agent_bus.clients.hunks import BOM, Hunk, difference, line_end
from agent_bus.clients.jsonc import BrokenText

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)$")
_HEADER = re.compile(r"(?:^|(?<=\ufeff))[ \t]*\[", re.MULTILINE)
_REMARKS = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?(?:\n|\Z))+\Z", re.MULTILINE)
_BLANK_LINE = re.compile(r"(?<=\n)[ \t]*\r?\n\Z")


def parse(text: str) -> dict[str, Any]:
    """The document.

    Raises:
        BrokenText: with line and column; at the end of the text, its last line.
    """
    bare = text.removeprefix(BOM)
    try:
        return tomllib.loads(bare)
    except tomllib.TOMLDecodeError as error:
        why = str(error)
        found = _PLACE.search(why)
        line, column = (int(found[1]), int(found[2])) if found else (bare.count("\n") + 1, 1)
        raise BrokenText(why.partition(" (at ")[0], line, column) from None


def put_table(text: str, keys: Sequence[str], members: Mapping[str, Any], dropped: Collection[str] = ()) -> list[Hunk]:
    """Appends the table of the keys, or sets members of the one that is there, and drops some.

    Raises:
        BrokenText: the table is written inline or dotted, where nothing can be added without moving what is there.
    """
    if _value(parse(text), keys) is None:
        return _append(text, keys, members)
    start, end = next(((start, end) for start, end, own in _blocks(text, keys) if own))
    document = tomlkit.parse(text[start:end])
    table: Any = _value(document, keys)
    apart = _value(parse(text), keys).keys() - table.keys()  # written as sub-tables
    for key, value in members.items():
        if key not in apart and (key not in table or table[key].unwrap() != value):
            table[key] = value
    for key in dropped:
        table.pop(key, None)
    changed = tomlkit.dumps(document).replace("\r\n", "\n").replace("\n", line_end(text))
    hunks = [Hunk(start + one.start, start + one.end, one.new) for one in difference(text[start:end], changed)]
    gone = [hunk for key in dropped if key in apart for hunk in take_table(text, (*keys, key))]
    return sorted([*hunks, *gone], key=lambda one: one.start)


def take_table(text: str, keys: Sequence[str]) -> list[Hunk]:
    """Removes the table of the keys, with its sub-tables and one blank line before each.

    Raises:
        BrokenText: as `put_table`.
    """
    return [Hunk(_gap(text, start, end), end, "") for start, end, _ in _blocks(text, keys)]


def line_of(text: str, keys: Sequence[str]) -> int:
    """The line that first names the table or its parent, from 1; 1 if none does so plainly."""
    lines = list(enumerate(text.splitlines(), 1))
    for word, signs in ((".*".join(map(re.escape, keys)), r".*"), (re.escape(keys[-1]), r"[ \t]*[=.]")):
        for number, line in lines:
            if re.match(rf"[ \t\[\"']*{word}[\"']?{signs}", line):
                return number
    return next((number for number, line in lines if re.match(rf"[ \t\[\"']*{re.escape(keys[0])}\b", line)), 1)


def _append(text: str, keys: Sequence[str], members: Mapping[str, Any]) -> list[Hunk]:
    document = tomlkit.document()
    table: Any = document
    for key in keys[:-1]:
        table[key] = tomlkit.table(is_super_table=True)
        table = table[key]
    table[keys[-1]] = dict(members)
    end = line_end(text)
    words = tomlkit.dumps(document).replace("\n", end)
    gap = "" if not text.removeprefix(BOM).strip() else end if text.endswith("\n") else end + end
    hunks = [Hunk(len(text), len(text), gap + words)]
    try:
        parse(text + gap + words)
    except BrokenText:
        raise BrokenText(f"{keys[0]} is written inline or dotted", line_of(text, keys), 1) from None
    return hunks


def _blocks(text: str, keys: Sequence[str]) -> list[tuple[int, int, bool]]:
    """The lines of the table and its sub-tables: begin, end, and whether it is the table itself.

    Remarks and blank lines before the next header are not counted: they belong to that.
    """
    heads = [found.start() for found in _HEADER.finditer(text) if _stands(text[: found.start()])]
    found = []
    for start, end in pairwise([*heads, len(text)]):
        named = _names(text[start:end])
        if named[: len(keys)] == list(keys):
            found.append((start, start + len(_REMARKS.sub("", text[start:end])), len(named) == len(keys)))
    if not any(own for _, _, own in found):
        raise BrokenText(f"{'.'.join(keys)} is written inline or dotted", line_of(text, keys), 1)
    return found


def _stands(text: str) -> bool:
    """Whether the text is whole, so that what follows is no part of an array or a string."""
    try:
        parse(text)
    except BrokenText:
        return False
    return True


def _names(block: str) -> list[str]:
    """The keys of the header of a block."""
    found, names = parse(block.splitlines()[0]), list[str]()
    while isinstance(found, dict) and found:
        name, found = next(iter(found.items()))
        names.append(name)
    return names


def _gap(text: str, start: int, end: int) -> int:
    """Where to cut so that no blank line is left over from ours."""
    before = _BLANK_LINE.search(text[:start])
    return before.start() if before and (end == len(text) or text[end] in "\r\n") else start


def _value(document: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document
