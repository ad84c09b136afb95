"""Bytes to disk so that a reader sees all or nothing: temp file, fsync, link or rename.

Temp files lie in one folder of their own (inside a watched folder they would drown the watchers), which must be on the
same filesystem as every target. On Windows an open file of somebody else makes a rename fail for a moment, so renames
are tried again for a bounded time there.
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType

from agent_bus.errors import BusError
from agent_bus.store import exclusive

WINDOWS = sys.platform == "win32"
_SHARING_RETRIES = 40
_SHARING_PAUSE_S = 0.025
_counter = itertools.count()
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_LINK = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}
_OURS = {errno.EBADF, errno.EFAULT}
"""Errors that no disk can cause: faults of ours, never put into words for a caller."""


def read(path: str, limit: int, follow: bool = True) -> tuple[bytes, os.stat_result]:
    """The bytes and the stat of one regular file, both of the same open file.

    Args:
        path: the file.
        limit: the most bytes it may have.
        follow: False refuses a symbolic link (ELOOP).

    Raises:
        OSError: FileNotFoundError and the like; IsADirectoryError for what is no regular file, EFBIG over the limit.
    """
    handle = _open_to_read(path, follow)
    try:
        stat = os.fstat(handle)
        if stat.st_mode & 0o170000 != 0o100000:
            raise IsADirectoryError(errno.EISDIR, "not a regular file", path)
        data = b""
        while stat.st_size <= limit and len(data) <= limit:
            part = os.read(handle, stat.st_size + 1 - len(data) if len(data) <= stat.st_size else 1 << 20)
            data += part
            if not part or len(data) == stat.st_size:
                break
        if max(stat.st_size, len(data)) > limit:
            raise OSError(errno.EFBIG, f"has {max(stat.st_size, len(data))} bytes, the limit is {limit}", path)
        return data, os.fstat(handle) if len(data) != stat.st_size else stat
    finally:
        os.close(handle)


def _open_to_read(path: str, follow: bool) -> int:
    if not WINDOWS:
        return os.open(path, _READ_FLAGS if follow else _READ_FLAGS | _NO_FOLLOW)
    if not follow and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    for attempt in range(_SHARING_RETRIES):
        try:
            return os.open(path, _READ_FLAGS)
        except PermissionError:  # a file just being replaced, or a folder
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, "not a regular file", path) from None
            if attempt == _SHARING_RETRIES - 1:
                raise
        time.sleep(_SHARING_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def write_temp(folder: str, data: bytes, durable: bool, mode: int = 0o666) -> tuple[str, os.stat_result]:
    """A new file in the temp folder; its path and stat. The time stamp is ours (see `store.revision`)."""
    path = os.path.join(folder, f"{os.getpid()}-{next(_counter)}-{time.time_ns():x}")
    try:
        return path, _write(path, data, durable, mode)
    except OSError:
        discard(path)  # after it is closed: Windows keeps open files
        raise


def _write(path: str, data: bytes, durable: bool, mode: int) -> os.stat_result:
    handle = os.open(path, _WRITE_FLAGS, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        stamp_now(path, handle)
        if durable:
            sync_handle(handle)
        return os.fstat(handle)
    finally:
        os.close(handle)


def stamp_now(path: str, handle: int) -> None:
    """Sets the modification time to this nanosecond."""
    now = time.time_ns()
    os.utime(handle if os.utime in os.supports_fd else path, ns=(now, now))


def sync_handle(handle: int) -> None:
    """Through all caches to the medium: F_FULLFSYNC on macOS, where fsync stops at the drive's cache."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
        except OSError as error:  # a file system without it, mostly on the network
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
    os.fsync(handle)


def sync_folder(folder: str) -> None:
    """Makes renames in a folder durable. Windows and some file systems cannot; NTFS journals its metadata."""
    if WINDOWS:
        return
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def make_folder(folder: str, durable: bool) -> None:
    """The folder and its parents; each new one is synced in its parent before anything in it is answered."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    make_folder(parent, durable)
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    if durable:
        sync_folder(parent)


def put_new(temp: str, path: str, guard: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Gives the temp file its name if the name is free.

    link() decides in one system call, on Windows rename() does. On a file system without links an exclusive rename
    does; without that too, a check under the caller's lock must do.

    Args:
        temp: the temp file; a name of it may be left over.
        path: the new name.
        guard: makes the lock that the last resort takes.

    Raises:
        FileExistsError: the name is taken.
    """
    if WINDOWS:
        _patiently(os.rename, temp, path)
        return
    try:
        os.link(temp, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        with guard():
            rename_new(temp, path)
        return
    discard(temp)  # the document stands, whatever becomes of its temp name


def rename_new(source: str, path: str) -> None:
    """Renames onto a free name. Where no system call refuses a taken one, the caller's lock must keep the name free.

    Raises:
        FileExistsError: the name is taken.
    """
    if WINDOWS:
        _patiently(os.rename, source, path)
    elif not exclusive.rename(source, path):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        os.rename(source, path)


def put_over(temp: str, path: str, durable: bool = True) -> None:
    """Gives the temp file a name that exists, replacing what was there.

    Args:
        durable: False for what need not survive a power cut. Then the names are exchanged and the old file unlinked: at
            a replacing rename ext4 first writes the new file out, which costs more than all the rest.
    """
    if not durable and not WINDOWS:
        try:
            if exclusive.exchange(temp, path):
                discard(temp)
                return
        except FileNotFoundError:
            pass  # nothing is there to be exchanged
    _patiently(os.replace, temp, path)


def put_file(folder: str, path: str, data: bytes, durable: bool) -> None:
    """Gives a file a content, whether or not it is there; on an error it stays as it was.

    Args:
        folder: of the temp file.
        path: the file.
        data: what it shall hold.
        durable: as `put_over`; the folder's entry is not synced.

    Raises:
        OSError: it cannot be written.
    """
    temp, _ = write_temp(folder, data, durable)
    try:
        put_over(temp, path, durable)
    except BaseException:
        discard(temp)
        raise


def remove(path: str) -> None:
    """Unlinks a file."""
    _patiently(os.unlink, path)


def discard(path: str) -> None:
    """Unlinks a temp file that is in nobody's way."""
    with suppress(OSError):
        os.unlink(path)


def _patiently(act: Callable[..., None], *paths: str) -> None:
    for attempt in range(_SHARING_RETRIES):
        try:
            act(*paths)
            return
        except PermissionError:
            if not WINDOWS or attempt == _SHARING_RETRIES - 1:
                raise
        time.sleep(_SHARING_PAUSE_S)


def unavailable(error: OSError, root: Path | str) -> BusError:
    """The error in words for a disk that is full, a folder that is missing or read-only."""
    if error.errno in _OURS:
        raise error
    reason = os.strerror(error.errno or 0)
    hint = f"Check that {root} exists, is writable and has free space, then try again; nothing was half-written."
    return BusError("unavailable", f"the bus folder cannot be used: {reason}.", hint)


class InWords:
    """A context that puts the disk's errors into words (`unavailable`)."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise unavailable(error, self._root) from error
