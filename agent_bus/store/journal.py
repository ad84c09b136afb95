"""The journal: one line a change or refusal, in order, for people and whoever follows. Never read for state."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from pydantic_core import PydanticSerializationError, from_json, to_json

from agent_bus.errors import BusError
from agent_bus.store.locks import Locks

log = logging.getLogger(__name__)
_TAIL_BYTES = 64 * 1024
_LOCK_WAIT_S = 1.0
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Journal(Protocol):
    """What the bus asks of a journal."""

    def write(self, now: datetime, line: dict[str, Any]) -> None:
        """Appends a line; never raises: a witness that is silent stops nobody's work."""

    def read(self, since: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Lines after the id `since`, oldest first, at most `limit`; "" = the newest `limit` lines."""

    def sweep(self, now: datetime, days: int) -> None:
        """Drops what is older than so many days."""

    def close(self) -> None:
        """Releases what is held open; a further line opens it anew."""


class MemoryJournal:
    """A journal in memory, for the memory engine."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)

    def write(self, now: datetime, line: dict[str, Any]) -> None:
        self._lines.append({"id": f"{now:%Y%m%d}-{next(self._numbers):08d}", **line})

    def read(self, since: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        if not since:
            return self._lines[-limit:]
        return [line for line in self._lines if line["id"] > since][:limit]

    def sweep(self, now: datetime, days: int) -> None:
        oldest = f"{now - timedelta(days=days):%Y%m%d}"
        self._lines = [line for line in self._lines if line["id"] >= oldest]

    def close(self) -> None:
        """Nothing is held open."""


class FileJournal:
    """One file a UTC day, `YYYY-MM-DD.jsonl`; the id `YYYYMMDD-NNNNNNNN` is given under the journal's lock.

    Args:
        folder: where the files lie; it must exist.
        locks: the locks of the same bus folder.
    """

    def __init__(self, folder: Path, locks: Locks) -> None:
        self._folder = folder
        self._locks = locks
        self._guard = threading.Lock()
        self._open: tuple[str, int] = ("", -1)
        self._last: tuple[int, int] = (0, 0)  # size of the file after our last line, number of that line
        self._days = ("", "")  # a day's file and the next day's
        self._kept: list[bytes] = []

    def write(self, now: datetime, line: dict[str, Any]) -> None:
        body = _body(line)
        with self._guard:
            wait_s = 0.0 if self._kept else _LOCK_WAIT_S  # where one line had to wait, the next does not wait as long
            self._kept.append(body)
            try:
                with self._locks.hold("journal", "journal", wait_s):
                    self._append(now)
            except (BusError, OSError) as error:
                del self._kept[:-1000]  # written with the next line that gets through
                log.warning("journal: a line waits (%s)", error)

    def read(self, since: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        days = sorted(p.name for p in self._folder.glob("????-??-??.jsonl"))
        if not since:
            return self._newest(days, limit)
        found: list[dict[str, Any]] = []
        for day in days:
            if day.replace("-", "")[:8] >= since[:8]:
                found += (line for line in self._lines(day) if str(line.get("id", "")) > since)
                if len(found) >= limit:
                    break
        return found[:limit]

    def close(self) -> None:
        with self._guard:
            self._close()
            self._locks.close()

    def __del__(self) -> None:
        self._close()

    def sweep(self, now: datetime, days: int) -> None:
        """Unlinks the files older than so many days."""
        oldest = f"{now - timedelta(days=days):%Y-%m-%d}.jsonl"
        for path in self._folder.glob("????-??-??.jsonl"):
            if path.name < oldest:
                path.unlink(missing_ok=True)

    def _append(self, now: datetime) -> None:
        day = self._day(now)
        if self._open[0] != day or os.fstat(self._open[1]).st_nlink == 0:  # or somebody took the file away
            self._reopen(day)
        handle = self._open[1]
        size, number = os.fstat(handle).st_size, self._last[1]
        start = b""
        if size != self._last[0]:
            number, whole = self._number(handle, size)
            start = b"" if whole else b"\n"
        while self._kept:
            number += 1
            data = b'%s{"id":"%s-%08d",%s' % (start, day[:10].replace("-", "").encode(), number, self._kept[0][1:])
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # the next line closes this torn one
            size, start = size + len(data), b""
            self._last = (size, number)
            del self._kept[0]

    def _day(self, now: datetime) -> str:
        """The file of this line: ids go up, so nobody goes back to a day that somebody has left at midnight."""
        day = max(f"{now:%Y-%m-%d}.jsonl", self._open[0])
        if self._days[0] != day:
            self._days = (day, f"{datetime.fromisoformat(day[:10]) + timedelta(days=1):%Y-%m-%d}.jsonl")
        return self._days[1] if os.path.exists(self._folder / self._days[1]) else day

    def _reopen(self, day: str) -> None:
        self._close()
        self._open = (day, os.open(self._folder / day, _FLAGS, 0o666))
        self._last = (-1, 0)

    def _close(self) -> None:
        handle, self._open = self._open[1], ("", -1)
        if handle >= 0:
            os.close(handle)

    @staticmethod
    def _number(handle: int, size: int) -> tuple[int, bool]:
        """A number no line has passed, and whether the file ends with a whole line (a kill may cut one)."""
        if size == 0:
            return 0, True
        os.lseek(handle, max(0, size - _TAIL_BYTES), os.SEEK_SET)
        tail = os.read(handle, _TAIL_BYTES)
        for skipped, raw in enumerate(filter(None, reversed(tail.split(b"\n")))):
            try:
                return int(str(from_json(raw)["id"]).rpartition("-")[2]) + skipped, tail.endswith(b"\n")
            except (ValueError, KeyError, TypeError):
                continue
        return size, tail.endswith(b"\n")  # no readable line in 64 KiB: the size is above every number before it

    def _newest(self, days: list[str], limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for day in reversed(days):
            found = list(self._lines(day))[-(limit - len(found)) :] + found
            if len(found) >= limit:
                break
        return found

    def _lines(self, day: str) -> Iterator[dict[str, Any]]:
        try:
            with open(self._folder / day, "rb") as file:
                for raw in file:
                    try:
                        line = from_json(raw)
                    except ValueError:
                        continue
                    if isinstance(line, dict):
                        yield line
        except FileNotFoundError:
            return


def _body(line: dict[str, Any]) -> bytes:
    """A line without its id; what JSON cannot hold is shown, not refused."""
    try:
        return to_json(line or {"event": ""}, inf_nan_mode="null", fallback=str) + b"\n"
    except PydanticSerializationError:
        return to_json({"event": ascii(line.get("event", ""))[1:-1], "unwritable": ascii(line)[:2000]}) + b"\n"
