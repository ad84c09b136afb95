"""Changes under one folder, from hints; and from the folder itself whenever somebody must be sure."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from agent_bus.errors import BusError
from agent_bus.store import atomic
from agent_bus.store.codec import is_name
from agent_bus.store.paths import SUFFIX, document_name
from agent_bus.store.port import Doc, Unreadable

RESCAN_S = 20.0
GRANULE_S = 2.0
"""A file or folder whose time is this near to its reading may change again without showing it (coarse clocks)."""


Look = tuple[int, float]
"""A file before it is read: its sign (a hash of identity, time and size) and its time in seconds."""
_GONE: Look = (0, 0.0)


class Source(Protocol):
    """What a feed asks of its store."""

    def get(self, key: str) -> Doc | None:
        """As `store.port.Store.get`."""

    def folder(self, prefix: str) -> str:
        """The folder of a prefix."""

    def distribute_hints(self) -> None:
        """Calls `note` of every feed concerned."""


class FolderFeed:
    """A feed over the documents directly below a prefix (`store.port.Feed`).

    It keeps one number a file (a hash of identity, time and size), so that 100,000 files cost little memory and a full
    look reads only what changed. Safe for threads.
    """

    def __init__(self, store: Source, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._seen: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._noting = threading.Lock()
        self._polling = threading.Lock()
        self._recent: set[str] = set()
        self._listed_at = float("-inf")
        self._folder_time = -1

    def note(self, key: str) -> None:
        """Takes a hint."""
        prefix, _, name = key.rpartition("/")
        if prefix == self._prefix and is_name(name):
            with self._noting:
                self._dirty.add(name)

    def poll(self, full: bool = False) -> list[tuple[str, Doc | Unreadable | None]]:
        """See `store.port.Feed.poll`."""
        return list(self.changes(full))

    def changes(self, full: bool = False) -> Iterator[tuple[str, Doc | Unreadable | None]]:
        """`poll` one by one: the first look at a large folder holds one document at a time. To be read to its end.

        Without `full` it lists at most every 20 s, if the folder's time has changed. After an error, or an end before
        the last one, the next look tells all of it again.
        """
        with self._polling:
            self._store.distribute_hints()
            names = self._take()
            looks: dict[str, Look] = {}
            try:
                if full or self._is_due():
                    looks = self._list()
                    names |= looks.keys()
                for name in sorted(names):
                    yield f"{self._prefix}/{name}", self._read(name, looks.get(name))
            except BaseException:
                with self._noting:
                    self._dirty |= names
                raise

    def _take(self) -> set[str]:
        with self._noting:
            names, self._dirty = self._dirty, set()
        return names

    def _is_due(self) -> bool:
        if time.monotonic() - self._listed_at < RESCAN_S:
            return False
        return self._folder_time != self._time_of_folder()

    def _time_of_folder(self) -> int:
        try:
            return os.stat(self._store.folder(self._prefix)).st_mtime_ns
        except OSError:
            return 0

    def _list(self) -> dict[str, Look]:
        """The files that are new, changed or gone since they were last read, as this listing saw them."""
        now = time.time()
        folder_time = self._time_of_folder()
        found = self._scan()
        changed = {name: look for name, look in found.items() if self._seen.get(name) != look[0]}
        changed |= {name: found[name] for name in self._recent & found.keys()}
        changed |= dict.fromkeys(self._seen.keys() - found.keys(), _GONE)
        self._recent.clear()
        self._listed_at = time.monotonic()
        self._folder_time = folder_time if folder_time < (now - GRANULE_S) * 1e9 else -1
        return changed

    def _scan(self) -> dict[str, Look]:
        found: dict[str, Look] = {}
        folder = self._store.folder(self._prefix)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if name := document_name(entry.name):
                        try:
                            found[name] = _look(entry.stat())
                        except OSError:
                            continue  # gone between the listing and the look
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise atomic.unavailable(error, folder) from error
        return found

    def _read(self, name: str, look: Look | None) -> Doc | Unreadable | None:
        """Reads a file; what changes after the look before it, the next listing shows."""
        key = f"{self._prefix}/{name}"
        sign, time_s = look or self._stat(name)
        try:
            doc: Doc | Unreadable | None = self._store.get(key)
        except Unreadable as error:
            doc = error
        except BusError as error:
            if error.code != "refused":
                raise
            doc = Unreadable(key, error.message)  # a link that leaves the bus folder
        if doc is None:
            self._seen.pop(name, None)
            return None
        self._seen[name] = sign
        if time_s > time.time() - GRANULE_S:
            self._recent.add(name)
        return doc

    def _stat(self, name: str) -> Look:
        try:
            return _look(os.stat(f"{self._store.folder(self._prefix)}{os.sep}{name}{SUFFIX}"))
        except OSError:
            return _GONE


def _look(stat: os.stat_result) -> Look:
    inode = 0 if atomic.WINDOWS else stat.st_ino  # a listing has none there
    return hash((inode, stat.st_mtime_ns, stat.st_size)), stat.st_mtime
