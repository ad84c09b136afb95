"""Changing one file of a user: read, plan, back up, compare, rename; all of it or nothing.

The target may be written by its own program at any time, which takes no lock of ours: so its bytes are compared with
what the plan was made from just before the rename, and the plan is made again if they differ.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_bus import host
from agent_bus.errors import BusError
from agent_bus.store import atomic
from agent_bus.store.locks import Locks

LIMIT = 64 * 1024 * 1024
"""Bytes; a larger file is nobody's configuration."""
ATTEMPTS = 5
BACKUPS = 3
_STALE_S = 3600
_MARK = ".agent-bus-"
_WORDS = {
    errno.EISDIR: "it is no regular file",
    errno.EFBIG: "it is too large",
    errno.EROFS: "its file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.ENOTDIR: "a part of its path is no folder",
    errno.ELOOP: "its symbolic links form a loop",
}


@dataclass(frozen=True)
class Written:
    """What was done to a file. `before` and `after` are None where there was, or is, no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    backup: Path | None = None
    folders: tuple[Path, ...] = ()


def target(path: Path, within: Sequence[Path], force: bool) -> Path:
    """The file that a path leads to; a symbolic link stays, and what it points to is edited.

    Args:
        within: the folders that it must lie in: a link out of them is followed only with `force`.

    Raises:
        BusError: `refused`.
    """
    real = Path(os.path.realpath(path))
    if force or real == path or any(real.is_relative_to(os.path.realpath(folder)) for folder in within):
        return real
    why = f"{path} is a link to {real}, outside of your home and project."
    raise BusError("refused", why, "Give --force to edit what it points to.")


def read(path: Path) -> bytes | None:
    """The bytes of a file, None if there is none.

    Raises:
        BusError: `refused` if it cannot be read.
    """
    try:
        return atomic.read(str(path), LIMIT)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(path, error) from None


def change(
    path: Path, plan: Callable[[bytes | None], bytes | None], private: bool, keep: Callable[[bytes], bool]
) -> Written:
    """Makes a file what the plan says.

    Args:
        path: the file itself, no link (see `target`).
        plan: from the bytes that are there (None: no file) to those that shall be (None: no file).
        private: whether a new file is readable for its user alone.
        keep: whether bytes that were there are worth a backup; empty ones never are.

    Raises:
        BusError: `busy` if the file changes all the time, `refused` if it may not be written, and what `plan` raises.
    """
    before = read(path)
    if plan(before) == before:
        return Written(path, before, before)
    with _lock(path):
        for _ in range(ATTEMPTS):
            before = read(path)
            after = plan(before)
            if after == before:
                return Written(path, before, after)
            try:
                if (done := _exchange(path, before, after, private, bool(before) and keep(before or b""))) is not None:
                    return done
            except OSError as error:
                raise refused(path, error) from None
    raise BusError("busy", f"{path} is changed by another program all the time.", "Close the client, then try again.")


def refused(path: Path, error: OSError) -> BusError:
    """The error in words, with its reason."""
    reason = _WORDS.get(error.errno or 0) or error.strerror or type(error).__name__
    return BusError("refused", f"{path} cannot be changed: {reason}.", "Nothing was written.")


def remove_empty(folders: Sequence[Path]) -> None:
    """Removes folders of ours, the deepest first, as far as nothing is in them."""
    for folder in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def _lock(path: Path) -> AbstractContextManager[None]:
    """Keeps two of our own apart from compare to rename; without a state folder, the compare alone must do."""
    folder = host.state_folder() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return nullcontext()
    return Locks(str(folder)).hold(f"client-file-{zlib.crc32(os.fsencode(path)):08x}")


def _exchange(path: Path, before: bytes | None, after: bytes | None, private: bool, keep: bool) -> Written | None:
    """One attempt; None if the file is not what it was."""
    _check_writable(path, before is not None)
    folders = _make_folders(path.parent)
    extra: list[Path] = []
    done = False
    try:
        if after is not None:
            extra.append(_write_temp(path, after, private))
        backup = _back_up(path, before) if before and keep else None
        extra += [backup] if backup else []
        done = _put(path, extra[0] if after is not None else None, before)
    finally:
        if not done:
            for one in extra:
                atomic.discard(str(one))
            remove_empty(folders)
    if not done:
        return None
    _drop_old_backups(path)
    return Written(path, before, after, backup, folders)


def _put(path: Path, temp: Path | None, before: bytes | None) -> bool:
    """Compares, then gives the temp file its name; False if the file is not what it was."""
    if read(path) != before:
        return False
    try:
        if temp is None:
            atomic.remove(str(path))
        elif before is None:
            atomic.put_new(str(temp), str(path))
        else:
            atomic.put_over(str(temp), str(path))
    except FileExistsError:
        return False
    atomic.sync_folder(str(path.parent))
    return True


def _check_writable(path: Path, there: bool) -> None:
    """A rename would replace even a file that its owner made read-only: that is taken as meant."""
    if there and (not os.access(path, os.W_OK) or not path.stat().st_mode & 0o222):
        raise PermissionError(errno.EACCES, "it is read-only", str(path))
    folder = next(one for one in path.parents if one.exists())
    if not os.access(folder, os.W_OK) or not folder.stat().st_mode & 0o222:
        raise PermissionError(errno.EACCES, f"the folder {folder} is read-only", str(path))


def _make_folders(folder: Path) -> tuple[Path, ...]:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(missing)


def _write_temp(path: Path, data: bytes, private: bool) -> Path:
    """A hidden file beside the target, with the mode and the owner that the target has or shall have."""
    _sweep(path)
    temp = path.with_name(f".{path.name}{_MARK}{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        _write(temp, data)
        _like(temp, path, private)
    except OSError:
        atomic.discard(str(temp))
        raise
    return temp


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        atomic.sync_handle(file.fileno())


def _like(path: Path, model: Path, private: bool) -> None:
    try:
        wanted = model.stat()
    except FileNotFoundError:
        if not private:
            path.chmod(0o644)
        return
    path.chmod(stat.S_IMODE(wanted.st_mode))
    here = path.stat()
    if (here.st_uid, here.st_gid) != (wanted.st_uid, wanted.st_gid):
        with suppress(OSError, LookupError):  # only root may give files away
            shutil.chown(path, wanted.st_uid, wanted.st_gid)


def _sweep(path: Path) -> None:
    """Unlinks temp files of a run that was killed: an hour is longer than any run."""
    for old in path.parent.glob(f".{path.name}{_MARK}*.tmp"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _STALE_S:
                atomic.discard(str(old))


def _back_up(path: Path, data: bytes) -> Path:
    now = datetime.now(UTC)
    backup = path.with_name(f"{path.name}{_MARK}{now:%Y%m%dT%H%M%S.%f}Z.bak")
    _write(backup, data)
    backup.chmod(stat.S_IMODE(path.stat().st_mode))
    return backup


def _drop_old_backups(path: Path) -> None:
    for old in sorted(path.parent.glob(f"{path.name}{_MARK}*.bak"))[:-BACKUPS]:
        atomic.discard(str(old))
