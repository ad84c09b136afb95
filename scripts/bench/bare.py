"""The limits: the same work in bare system calls, and a bus as people first write it."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

from bench.boxes import TEXT


class Bare:
    """Documents of 500 bytes by nothing but system calls.

    Args:
        folder: where; two document folders and a log are made in it.
        durable: fsync of file and folder for what a bus must not lose.
    """

    def __init__(self, folder: Path, durable: bool) -> None:
        self._durable = durable
        self._one, self._other, temp = (str(folder / name) for name in ("one", "other", "tmp"))
        for path in (self._one, self._other, temp):
            os.makedirs(path, exist_ok=True)
        self._temp = f"{temp}/t"
        self._log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._numbers = itertools.count()
        self._data = TEXT.encode().ljust(500)[:500]

    def document(self, durable: bool = True) -> str:
        """One document: temp file, fsync, rename, fsync of the folder; its path."""
        path = f"{self._one}/{next(self._numbers)}"
        handle = os.open(self._temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(handle, self._data)
        if durable and self._durable:
            os.fsync(handle)
        os.close(handle)
        os.rename(self._temp, path)
        if durable:
            self._sync(self._one)
        return path

    def dispatch(self) -> None:
        """What a dispatch writes: id reserved, task, id live; one line in the journal, three hints."""
        self.document(durable=False)
        self.document()
        self.document(durable=False)
        self._lines(4)

    def submit(self) -> None:
        """What a report writes: the task twice (in place, moved), the report, ledger, status; journal and six hints."""
        path = self.document()
        self.document()
        self.document()
        os.rename(path, path.replace(self._one, self._other))
        self._sync(self._other)
        self.document(durable=False)
        self.document(durable=False)
        self._lines(7)

    def receive(self) -> None:
        """What a receive does: one task is read and written; journal and hint."""
        path = self.document()
        with open(path, "rb") as file:
            file.read()
        self._lines(2)

    def close(self) -> None:
        """Closes the log."""
        os.close(self._log)

    def _lines(self, count: int) -> None:
        for _ in range(count):
            os.write(self._log, self._data[:100])

    def _sync(self, folder: str) -> None:
        if self._durable:
            handle = os.open(folder, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)


class NaiveBus:
    """A JSON bus as people first write it: list, parse everything, take the oldest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._numbers = itertools.count()

    def put(self, text: str) -> None:
        """Writes a task."""
        number = next(self._numbers)
        value = {"task_id": f"t-{number:06d}", "to": "coder", "created_at": number, "instruction": text}
        (self._folder / f"t-{number:06d}.json").write_text(json.dumps(value, indent=2))

    def fetch(self) -> Path | None:
        """Takes the oldest task; None if there is none."""
        tasks: list[tuple[dict[str, Any], Path]] = []
        for path in self._folder.glob("*.json"):
            tasks.append((json.loads(path.read_text()), path))
        if not tasks:
            return None
        oldest, path = min(tasks, key=lambda pair: pair[0]["created_at"])
        path.write_text(json.dumps(oldest | {"status": "in_progress"}, indent=2))
        return path.rename(path.with_suffix(".taken"))

    def finish(self, job: Path) -> None:
        """Takes the file away."""
        job.unlink()

    def close(self) -> None:
        """Nothing is open."""
