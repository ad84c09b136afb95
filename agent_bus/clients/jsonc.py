"""JSON with the place of each value, strict or with what editors allow: comments and trailing commas (JSONC)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agent_bus.clients.hunks import BOM, line_and_column

DEPTH = 200
"""Deeper nesting is taken as broken."""
_BLANK = re.compile(r"[ \t\r\n]*")
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BrokenText(ValueError):
    """The text is not what its format asks for.

    Args:
        why: what is wrong, without a full stop.
        line: from 1.
        column: from 1, in characters.
    """

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"{why} (line {line}, column {column})")
        self.line, self.column = line, column


@dataclass
class Node:
    """A value and where it stands; of an object or array also its parts, each from key to end of value."""

    value: Any
    start: int
    end: int
    parts: list[Part] = field(default_factory=list)

    def named(self, key: str) -> list[Part]:
        """The members of a name: an object that somebody wrote may have several."""
        return [part for part in self.parts if part.key == key]


@dataclass
class Part:
    """A member or an element. `start` is where its key stands, or its value; `key` is None in an array."""

    key: str | None
    start: int
    node: Node

    @property
    def end(self) -> int:
        """Where its value ends."""
        return self.node.end


def trivia(text: str, at: int) -> int:
    """Where the blanks and comments from `at` on end."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


@lru_cache(maxsize=4)
def parse(text: str, lenient: bool) -> Node:
    """The document; nobody may change it, as the last few are kept: one edit looks at its text many times.

    Args:
        lenient: allow comments and trailing commas.

    Raises:
        BrokenText: with line and column of the first fault.
    """
    return _Parser(text, lenient).document()


class _Parser:
    def __init__(self, text: str, lenient: bool) -> None:
        self.text, self.lenient = text, lenient
        self.skip = (_TRIVIA if lenient else _BLANK).match
        self.at = 1 if text.startswith(BOM) else 0

    def document(self) -> Node:
        self._blank()
        node = self._value(0)
        self._blank()
        if self.at < len(self.text):
            raise self._broken("there is text after the end of the value")
        return node

    def _value(self, depth: int) -> Node:
        if depth > DEPTH:
            raise self._broken("it is nested too deeply")
        first = self.text[self.at : self.at + 1]
        if first == "{":
            return self._container(depth, "}", {})
        if first == "[":
            return self._container(depth, "]", [])
        return self._scalar()

    def _scalar(self) -> Node:
        start = self.at
        found = _STRING.match(self.text, start) or _PLAIN.match(self.text, start)
        if found is None:
            raise self._broken("a value is missing or badly written")
        self.at = found.end()
        return Node(json.loads(found.group()), start, self.at)

    def _container(self, depth: int, close: str, value: Any) -> Node:
        node = Node(value, self.at, 0)
        self.at += 1
        self._blank()
        while not self._take(close):
            part = self._part(depth, isinstance(value, dict))
            node.parts.append(part)
            if part.key is None:
                value.append(part.node.value)
            else:
                value[part.key] = part.node.value
            self._blank()
            if self._take(","):
                self._blank()
                if self.text.startswith(close, self.at) and not self.lenient:
                    raise self._broken("there is a comma before the end")
            elif not self.text.startswith(close, self.at):
                raise self._broken(f"a comma or {close} is missing")
        node.end = self.at
        return node

    def _part(self, depth: int, named: bool) -> Part:
        start, key = self.at, None
        if named:
            found = _STRING.match(self.text, start)
            if found is None:
                raise self._broken("a name in double quotes is missing")
            key, self.at = json.loads(found.group()), found.end()
            self._blank()
            if not self._take(":"):
                raise self._broken("a colon is missing")
            self._blank()
        return Part(key, start, self._value(depth + 1))

    def _blank(self) -> None:
        found = self.skip(self.text, self.at)
        self.at = found.end() if found else self.at

    def _take(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.at):
            return False
        self.at += 1
        return True

    def _broken(self, why: str) -> BrokenText:
        if not self.lenient and self.text.startswith(("//", "/*"), self.at):
            why = "comments are not allowed in this file"
        return BrokenText(why, *line_and_column(self.text, self.at))
