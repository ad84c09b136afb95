"""The peers: other queues from PyPI behind one small face, with the settings they come with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from bench.bare import NaiveBus


class Peer(Protocol):
    """A queue of texts."""

    def put(self, text: str) -> None:
        """Puts a job."""

    def fetch(self) -> Any:
        """Takes a job; None if there is none."""

    def finish(self, job: Any) -> None:
        """Confirms a job that was fetched."""

    def close(self) -> None:
        """Lets go of files."""


class Huey:
    """huey: a job is enqueued, dequeued and executed (its result is stored).

    Args:
        folder: where its files lie.
        kind: SqliteHuey or FileHuey.
        storage: options of the storage.
    """

    def __init__(self, folder: Path, kind: str, **storage: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        place = {"filename": str(folder / "huey.db")} if kind == "SqliteHuey" else {"path": str(folder)}
        self._huey = getattr(importlib.import_module("huey"), kind)("bench", **place, **storage)
        self._job = self._huey.task()(_length)
        self.fetch = self._huey.dequeue
        self.finish = self._huey.execute

    def put(self, text: str) -> None:
        """Enqueues."""
        self._job(text)

    def close(self) -> None:
        """Closes its database, if it has one."""
        getattr(self._huey.storage, "close", bool)()


class Lite:
    """litequeue: SQLite; a message is locked, then marked as done."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._queue = importlib.import_module("litequeue").LiteQueue(str(folder / "lite.db"))
        self.put = self._queue.put
        self.fetch = self._queue.pop
        self.close = self._queue.close

    def finish(self, job: Any) -> None:
        """Marks as done."""
        self._queue.done(job.message_id)


class Persist:
    """persist-queue: SQLiteQueue with auto-commit; a job that was taken needs no word more."""

    def __init__(self, folder: Path) -> None:
        self._module = importlib.import_module("persistqueue")
        self._queue = self._module.SQLiteQueue(str(folder), auto_commit=True)
        self.put = self._queue.put
        self.close = self._queue.close

    def fetch(self) -> Any:
        """Gets."""
        try:
            return self._queue.get(block=False)
        except self._module.Empty:
            return None

    def finish(self, job: Any) -> None:
        """Nothing to do."""


class Kombu:
    """kombu over its filesystem transport: SimpleQueue, each message acknowledged."""

    def __init__(self, folder: Path) -> None:
        data, control = folder / "data", folder / "control"
        data.mkdir(parents=True)
        control.mkdir()
        options = {"data_folder_in": str(data), "data_folder_out": str(data), "control_folder": str(control)}
        kombu = importlib.import_module("kombu")
        self._connection = kombu.Connection("filesystem://", transport_options=options)
        self._queue = self._connection.SimpleQueue("bench")
        self._queue.consumer.qos(prefetch_count=1)  # else one fetch pays for many
        self.put = self._queue.put

    def fetch(self) -> Any:
        """Gets."""
        try:
            return self._queue.get(block=True, timeout=1)
        except self._queue.Empty:
            return None

    def finish(self, job: Any) -> None:
        """Acknowledges."""
        job.ack()

    def close(self) -> None:
        """Closes the connection."""
        self._queue.close()
        self._connection.release()


PEERS: dict[str, Callable[[Path], Peer]] = {
    "huey-SQLite": lambda folder: Huey(folder, "SqliteHuey"),
    "huey-SQLite, no fsync": lambda folder: Huey(folder, "SqliteHuey", fsync=False),
    "huey-file": lambda folder: Huey(folder, "FileHuey"),
    "litequeue": Lite,
    "persist-queue": Persist,
    "kombu, filesystem": Kombu,
    "naive JSON bus": NaiveBus,
}


def _length(text: str) -> int:
    return len(text)
