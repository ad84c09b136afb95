"""Putting a member or an element into a JSON document, and taking it out, by the fewest characters.

Whatever else stands in the text, its comments, order, indentation and line ends, stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_bus.clients.hunks import BOM, Hunk, line_and_column, line_end
from agent_bus.clients.jsonc import BrokenText, Node, Part, trivia

_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")
_INDENT = re.compile(r"\n([ \t]+)\S")
_LINE_LEFT = re.compile(r"[ \t]*(?:\r?\n|$)")
_BLANKS = " \t\r\n"


def find(text: str, root: Node, keys: Sequence[str]) -> Node | None:
    """The object that the keys lead to; None if one of them is missing.

    Raises:
        BrokenText: on the way stands something else than an object, or a name twice.
    """
    node = root
    for key in ("", *keys):
        if key:
            found = only(text, node, key)
            if found is None:
                return None
            node = found.node
        if not isinstance(node.value, dict):
            raise BrokenText(f"{key or 'the document'} must be an object {{…}}", *line_and_column(text, node.start))
    return node


def only(text: str, node: Node, key: str) -> Part | None:
    """The member of a name.

    Raises:
        BrokenText: there are two.
    """
    found = node.named(key)
    if len(found) > 1:
        raise BrokenText(f"{key} stands there twice", *line_and_column(text, found[1].start))
    return found[0] if found else None


def new_document(keys: Sequence[str], members: Mapping[str, Any], text: str = "") -> list[Hunk]:
    """The hunk that makes a text without content a document with the members below the keys."""
    return [Hunk(len(text), len(text), json.dumps(_nested(keys, members), indent=2, ensure_ascii=False) + "\n")]


def put_members(text: str, root: Node, keys: Sequence[str], members: Mapping[str, Any]) -> list[Hunk]:
    """Adds members to the object that the keys lead to, which is made if it is missing, or sets their values."""
    depth = len(keys)
    while (node := find(text, root, keys[:depth])) is None:
        depth -= 1
    if depth < len(keys):
        return _append(text, node, [(keys[depth], _nested(keys[depth + 1 :], members))])
    hunks, fresh = [], []
    for key, value in members.items():
        part = only(text, node, key)
        if part is None:
            fresh.append((key, value))
        elif part.node.value != value or type(part.node.value) is not type(value):
            hunks.append(Hunk(part.node.start, part.end, _render(text, value, _column(text, part.start))))
    return [*hunks, *(_append(text, node, fresh) if fresh else [])]


def put_element(text: str, root: Node, keys: Sequence[str], value: Any) -> list[Hunk]:
    """Adds an element to the array that the keys lead to, which is made if it is missing; none if it is there.

    Raises:
        BrokenText: something else than an array stands there.
    """
    parent = find(text, root, keys[:-1])
    part = only(text, parent, keys[-1]) if parent else None
    if part is None:
        return put_members(text, root, keys[:-1], {keys[-1]: [value]})
    if not isinstance(part.node.value, list):
        raise BrokenText(f"{keys[-1]} must be an array […]", *line_and_column(text, part.node.start))
    return [] if value in part.node.value else _append(text, part.node, [(None, value)])


def take(text: str, node: Node, part: Part) -> list[Hunk]:
    """Removes one part of an object or array, with the comma that it needed."""
    number = node.parts.index(part)
    if len(node.parts) == 1 and not text[node.start + 1 : part.start].strip() and not _rest(text, part, node).strip():
        return [Hunk(node.start + 1, node.end - 1, "")]
    comma = _comma(text, part.end)
    end = part.end if comma is None else comma + 1
    hunks = [Hunk(_gap(text, part.start, end), end, "")]
    if comma is None and number:
        before = _comma(text, node.parts[number - 1].end)
        if before is not None:
            hunks.append(Hunk(before, before + 1, ""))
    return hunks


def _rest(text: str, part: Part, node: Node) -> str:
    """What stands between a last part and the end of its container, but for a comma."""
    return text[part.end : node.end - 1].replace(",", "", 1)


def _gap(text: str, start: int, end: int) -> int:
    """Where the blanks before a part begin; its line break stays if the line goes on behind it."""
    first = len(text[:start].rstrip(_BLANKS))
    if _LINE_LEFT.match(text, end):
        return first
    return max(first, text.rfind("\n", first, start) + 1)


def _comma(text: str, at: int) -> int | None:
    """Where the next comma after a value stands; None if there is none."""
    at = trivia(text, at)
    return at if text.startswith(",", at) else None


def _append(text: str, node: Node, fresh: Sequence[tuple[str | None, Any]]) -> list[Hunk]:
    """Adds parts after the last one, in the way the others are written."""
    if not node.parts:
        return _fill(text, node, fresh)
    last = node.parts[-1]
    comma = _comma(text, last.end)
    end = last.end if comma is None else comma + 1
    behind = _behind(text, end)
    broken = "\n" in text[node.start : node.parts[0].start] or "//" in text[end:behind]
    pad = _column(text, node.parts[0].start)
    before = f"{line_end(text)}{pad}" if broken else " "
    words = [f"{before}{_part(text, key, value, pad if broken else None)}" for key, value in fresh]
    if comma is not None:
        return [Hunk(behind, behind, "".join(f"{word}," for word in words))]
    if behind == last.end:
        return [Hunk(behind, behind, "," + ",".join(words))]
    return [Hunk(last.end, last.end, ","), Hunk(behind, behind, ",".join(words))]


def _fill(text: str, node: Node, fresh: Sequence[tuple[str | None, Any]]) -> list[Hunk]:
    """Puts parts into an empty container; a comment in it stays above them."""
    inside = text[node.start + 1 : node.end - 1].rstrip(_BLANKS)
    at = node.start + 1 + len(inside)
    if not inside and "\n" not in text[: node.start] and text[: node.start].strip(_BLANKS + BOM):
        return [Hunk(at, at, ", ".join(_part(text, key, value, None) for key, value in fresh))]
    outer, end = _column(text, node.start), line_end(text)
    pad = outer + _unit(text)
    words = ",".join(f"{end}{pad}{_part(text, key, value, pad)}" for key, value in fresh)
    closing = "" if "\n" in text[at : node.end - 1] else end + outer
    return [Hunk(at, at, words + closing)]


def _behind(text: str, at: int) -> int:
    """Where the remark on the same line ends, which belongs to what it stands behind."""
    found = _REMARK.match(text, at)
    return found.end() if found and _LINE_LEFT.match(text, found.end()) else at


def _part(text: str, key: str | None, value: Any, pad: str | None) -> str:
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    return name + (json.dumps(value, ensure_ascii=False) if pad is None else _render(text, value, pad))


def _render(text: str, value: Any, pad: str) -> str:
    """A value over several lines, the way the text is written."""
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{line_end(text)}{pad}".join(lines)


def _unit(text: str) -> str:
    """One step of indentation of the text."""
    found = _INDENT.search(text)
    return found.group(1) if found else "  "


def _column(text: str, at: int) -> str:
    """The blanks at the begin of the line of a character."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _nested(keys: Sequence[str], members: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(members)
    for key in reversed(keys):
        found = {key: found}
    return found
