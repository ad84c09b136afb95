"""Short locks between processes and threads, by name: 256 files a pool, never unlinked.

A name's slot is a hash, so two names may share one: code that holds a lock must not wait for another of the same pool
unless it is the same name. Pools are taken in the order of `POOLS`. The lock of a document covers every key whose last
segment begins with the same text before its first dot, so a task, its report, its ledger entry and its chain share one.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import zlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import IO

from agent_bus.errors import BusError
from agent_bus.store import atomic

if sys.platform != "win32":
    import fcntl

OPEN_FILES = 48
"""Lock files kept open between uses: a process may have 256 open files on macOS."""
SLOTS = 256
POOLS = ("holder", "doc", "journal")
WAIT_S = 5.0
_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.02


class _Slot:
    """One lock file, as this process has it open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.threads = threading.RLock()
        self.depth = 0
        self.file: IO[bytes] | None = None
        self.inode = 0

    def open(self) -> IO[bytes]:
        """The lock file; kept open between uses."""
        if self.file is None:
            self.file = open(self.path, "ab", buffering=0)  # noqa: SIM115
            self.inode = os.fstat(self.file.fileno()).st_ino
        return self.file

    def is_current(self) -> bool:
        """Whether the path still names the file that we locked (somebody may have cleaned the folder)."""
        try:
            return os.stat(self.path).st_ino == self.inode
        except FileNotFoundError:
            return False

    def drop(self) -> None:
        """Closes the file, and with it gives up its lock."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def __del__(self) -> None:
        self.drop()


class Locks:
    """The locks of one bus folder for this process.

    Args:
        folder: where the lock files lie; it must exist.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._slots: dict[str, _Slot] = {}
        self._guard = threading.Lock()
        self._idle: dict[str, _Slot] = {}
        self.pid = os.getpid()

    def hold(self, name: str, pool: str = "doc", wait_s: float = WAIT_S) -> AbstractContextManager[None]:
        """Holds the lock of a name; re-entrant within a thread.

        Raises (on entry):
            BusError: `busy` if it could not be had within `wait_s` seconds, `unavailable` without a usable folder.
        """
        return _Hold(self, name, pool, wait_s)

    def close(self) -> None:
        """Closes the lock files."""
        with self._guard:
            for slot in self._slots.values():
                slot.drop()
            self._slots, self._idle = {}, {}

    def rest(self, slot: _Slot) -> None:
        """Keeps a freed slot's file open for its next use; of many, the one that has rested longest is closed."""
        with self._guard:
            self._idle.pop(slot.path, None)
            self._idle[slot.path] = slot
            oldest = self._idle.pop(next(iter(self._idle))) if len(self._idle) > OPEN_FILES else None
            if oldest is not None and oldest.threads.acquire(blocking=False):
                if oldest.depth == 0:
                    oldest.drop()
                oldest.threads.release()

    def slot(self, name: str, pool: str) -> _Slot:
        """The slot of a name."""
        if self.pid != os.getpid():
            self._forget()
        number = zlib.crc32(name.partition(".")[0].encode("utf-8", "surrogatepass")) % SLOTS
        path = f"{pool}-{number:02x}"
        found = self._slots.get(path)
        if found is None:
            with self._guard:
                found = self._slots.setdefault(path, _Slot(os.path.join(self._folder, path)))
        return found

    def _forget(self) -> None:
        """A fork shares open files, and with them the locks; the guard may be held by a thread that is not here."""
        self._slots, self._idle, self._guard, self.pid = {}, {}, threading.Lock(), os.getpid()


class _Hold:
    def __init__(self, locks: Locks, name: str, pool: str, wait_s: float) -> None:
        self._locks = locks
        self._name = name
        self._pool = pool
        self._wait_s = wait_s
        self._slot: _Slot | None = None

    def __enter__(self) -> None:
        slot = self._locks.slot(self._name, self._pool)
        deadline = time.monotonic() + self._wait_s
        if not slot.threads.acquire(timeout=self._wait_s):
            raise _busy(self._name)
        try:
            if slot.depth == 0:
                self._lock_file(slot, deadline)
            slot.depth += 1
            self._slot = slot
        except OSError as error:
            slot.threads.release()
            raise atomic.unavailable(error, os.path.dirname(slot.path)) from error
        except BaseException:
            slot.threads.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        slot, self._slot = self._slot, None
        assert slot is not None
        slot.depth -= 1
        if slot.depth == 0 and slot.file is not None and self._locks.pid == os.getpid():  # a fork's child frees nothing
            unlock(slot.file)
            self._locks.rest(slot)
        slot.threads.release()

    def _lock_file(self, slot: _Slot, deadline: float) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            if try_lock(slot.open()):
                if slot.is_current():
                    return
                slot.drop()
            if time.monotonic() >= deadline:
                raise _busy(self._name)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)


def _busy(name: str) -> BusError:
    return BusError("busy", f"the lock of {name} was held too long by another process.", "Try again in a moment.")


def _try_flock(file: IO[bytes]) -> bool:
    """Takes the lock of an open file if it is free. Raises OSError if there are no locks here."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # what portalocker calls too, in a tenth of its time
    except BlockingIOError:
        return False
    return True


def _free_flock(file: IO[bytes]) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)


def _try_portalocker(file: IO[bytes]) -> bool:
    """As `_try_flock`, where there is no flock."""
    import portalocker

    try:
        portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.AlreadyLocked:
        return False
    except portalocker.LockException as error:
        raise OSError(errno.ENOLCK, str(error)) from error
    return True


def _free_portalocker(file: IO[bytes]) -> None:
    import portalocker

    portalocker.unlock(file)


if sys.platform == "win32":
    try_lock, unlock = _try_portalocker, _free_portalocker
else:
    try_lock, unlock = _try_flock, _free_flock
