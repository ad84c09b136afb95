"""Following the journal as it grows: each whole line once, in order. A view; nothing is ever decided by it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from pydantic_core import from_json

from agent_bus.store.journal import Journal

_TAIL_BYTES = 64 * 1024
_STEP_BYTES = 4 * 1024 * 1024


class Follower(Protocol):
    """A place in the journal; `last` is the id of the last line before it, "" before the first line."""

    last: str

    def poll(self) -> list[dict[str, Any]]:
        """The lines since the last look, oldest first."""


class JournalFollower:
    """Follows any journal by its ids; for those that are cheap to read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.last = "".join(str(line["id"]) for line in journal.read("", 1))

    def poll(self) -> list[dict[str, Any]]:
        found = self._journal.read(self.last) if self.last else self._journal.read("", 1000)
        self.last = str(found[-1]["id"]) if found else self.last
        return found


class FileFollower:
    """Follows the files of `FileJournal` by position: a look that finds nothing reads nothing anew.

    Args:
        folder: where the files lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._day = max((p.name for p in folder.glob("????-??-??.jsonl")), default="")
        self.last, self._place = "", 0
        if self._day:
            size = os.path.getsize(folder / self._day)
            start = max(0, size - _TAIL_BYTES)
            data = self._read(start, size)
            end = data.rfind(b"\n") + 1
            self._place = start + end
            self.last = next((str(line.get("id", "")) for line in _lines(data[:end], backwards=True)), "")

    def poll(self) -> list[dict[str, Any]]:
        found = self._new()
        days = sorted(p.name for p in self._folder.glob("????-??-??.jsonl") if p.name > self._day)
        for day in days:
            found += self._new()  # a line that came between the look and the new day's file
            self._day, self._place = day, 0
            found += self._new()
        fresh = [line for line in found if str(line.get("id", "")) > self.last]
        self.last = str(fresh[-1]["id"]) if fresh else self.last
        return fresh

    def _new(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while self._day and (data := self._read(self._place, self._place + _STEP_BYTES)):
            end = data.rfind(b"\n") + 1
            self._place += end
            found += _lines(data[:end])
            if len(data) < _STEP_BYTES or not end:
                break
        return found

    def _read(self, start: int, end: int) -> bytes:
        try:
            with open(self._folder / self._day, "rb") as file:
                file.seek(start)
                return file.read(end - start)
        except FileNotFoundError:
            return b""


def _lines(data: bytes, backwards: bool = False) -> Iterator[dict[str, Any]]:
    parts = data.split(b"\n")
    for raw in reversed(parts) if backwards else parts:
        try:
            line = from_json(raw) if raw else None
        except ValueError:
            continue  # torn by a kill
        if isinstance(line, dict):
            yield line
