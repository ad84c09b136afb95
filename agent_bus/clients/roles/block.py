"""Our block in a file of the user: put in, replaced and taken out, with every character outside it as it was.

A block goes from a line `BEGIN` to a line `END`. Put into a file with text it stands at the end, with an empty line
before it. If that text had no final newline, the file with the block has none: so taking it out knows what was there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from agent_bus.errors import BusError

BEGIN, END = "<!-- agent-bus:begin 1 -->", "<!-- agent-bus:end -->"
_MARK = re.compile(r"^\ufeff?[ \t]*(<!-- agent-bus:(begin [0-9]+|end) -->)[ \t]*(?=\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block that was found.

    Args:
        start, end: the span from the first character of its begin mark to behind its end mark.
        text: what stands there, with line feeds alone.
    """

    start: int
    end: int
    text: str


def find_block(text: str) -> Block | None:
    """Our block, None if there is none.

    Raises:
        BusError: `refused` with the line of a mark that has no counterpart, or stands there twice.
    """
    marks = list(_MARK.finditer(text))
    if not marks:
        return None
    for mark, kind in zip_longest(marks, ("begin", "end")):
        if mark is None:
            raise _refused(text, marks[0], "begins our block, and no line ends it")
        if mark[2].split()[0] != kind:
            raise _refused(text, mark, "has a mark of ours too many")
    start, end = marks[0].start(1), marks[1].end(1)
    return Block(start, end, text[start:end].replace("\r\n", "\n"))


def _refused(text: str, mark: re.Match[str], what: str) -> BusError:
    line = text.count("\n", 0, mark.start(1)) + 1
    right = f"Leave one line {BEGIN} and one line {END} after it, or neither."
    return BusError("refused", f"line {line} {what}.", right)


def put_block(text: str, block: str) -> str:
    """The text with the block: in the place of the one that is there, else at the end.

    Args:
        text: the file; line ends are kept, and the block gets those of the old one, else of the file's first line.
        block: with both marks, line feeds alone and no final newline.

    Raises:
        BusError: as `find_block`.
    """
    old = find_block(text)
    if old is not None:
        return text[: old.start] + _with(block, _newline(text[old.start : old.end] or text)) + text[old.end :]
    newline = _newline(text)
    ours = _with(block, newline)
    if text.endswith("\n"):
        return text + newline + ours + newline
    return text + newline * 2 + ours if text else ours + newline


def take_block(text: str) -> str:
    """The text without the block and what `put_block` put around it; the text itself if there is no block.

    Raises:
        BusError: as `find_block`.
    """
    found = find_block(text)
    if found is None:
        return text
    before, after = text[: found.start], text[found.end :]
    newline = _newline(text[found.start : found.end])
    if not after and before.endswith(newline * 2):
        return before[: -2 * len(newline)]
    if before.endswith(newline) and before[: -len(newline)].endswith("\n"):
        before = before[: -len(newline)]
    return before + (after.removeprefix("\r\n") if after.startswith("\r\n") else after.removeprefix("\n"))


def _newline(text: str) -> str:
    """The end of the text's first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def _with(block: str, newline: str) -> str:
    return block.replace("\n", newline)
