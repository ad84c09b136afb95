"""The revision of a file: what changes with every write of ours and with every edit by hand; computed, never stored."""

from __future__ import annotations

import hashlib
import os


def revision(stat: os.stat_result, data: bytes) -> str:
    """The revision of a file's content: file identity, time, size and content hash.

    Every write of ours sets its own nanosecond time stamp, so two writes never share a revision even where the kernel
    reuses the inode within one tick of its coarse clock.
    """
    return f"{_identity(stat)}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"


def looks_like(path: str, rev: str) -> bool:
    """Whether a file may still be at a revision: a first look without its content, for whoever would compare anyway."""
    try:
        stat = os.lstat(path)
    except OSError:
        return True  # gone, or the folder is: whoever goes on gets the right error
    return stat.st_mode & 0o170000 != 0o100000 or rev.startswith(f"{_identity(stat)}-")


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"
