"""The lines that enclose what the bus writes in a note (docs/obsidian.md "Your part of a note")."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKER = re.compile(r"%% agent-bus:(begin|end) ([a-z][a-z0-9-]*)(?: rev=\d+)? %%")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def are_whole(text: str) -> bool:
    """Whether each region of a note begins once, ends, and lies in no other one."""
    open_one, seen = "", set()
    for found in _markers(text):
        kind, name = found.groups()
        if kind == "begin":
            if open_one or name in seen:
                return False
            open_one = name
            seen.add(name)
        elif name != open_one:
            return False
        else:
            open_one = ""
    return not open_one


def _markers(text: str) -> Iterator[re.Match[str]]:
    """The marker lines outside fenced code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif found := _MARKER.fullmatch(line.rstrip()):
            yield found
