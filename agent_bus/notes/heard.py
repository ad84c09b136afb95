"""Which bytes of other people were read and dealt with, and since when a file has rested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Seen:
    sha256: str
    at_s: float


class Heard:
    """What others wrote, by the path of the file.

    Args:
        now_s: a clock that never goes back, in seconds.
        quiet_s: how long a file is left alone after somebody else changed it.
    """

    def __init__(self, now_s: Callable[[], float], quiet_s: float) -> None:
        self._now_s = now_s
        self._quiet_s = quiet_s
        self._read: dict[str, _Seen] = {}
        self._seen: dict[str, _Seen] = {}

    def add(self, path: str, sha256: str, changed_s: float) -> None:
        """Notes that bytes of somebody else were read, and dealt with: from now on they may be written over.

        Args:
            path: the note.
            sha256: of the bytes.
            changed_s: when they were first seen, by the clock.
        """
        self._read[path] = _Seen(sha256, changed_s)

    def drop(self, path: str) -> None:
        """Notes that a file has changed: whatever it holds, it must be read again before it is written over."""
        self._read.pop(path, None)

    def rests_read(self, path: str, sha256: str) -> bool:
        """Whether bytes that must be read first were, and have rested."""
        found = self._read.get(path)
        return found is not None and found.sha256 == sha256 and self._now_s() - found.at_s >= self._quiet_s

    def rests(self, path: str, sha256: str) -> bool:
        """Whether bytes that nobody needs to read have rested since they were first asked about."""
        known, now = self._seen.get(path), self._now_s()
        if known is None or known.sha256 != sha256:
            self._seen[path] = _Seen(sha256, now)
            return False
        return now - known.at_s >= self._quiet_s

    def forget(self, path: str) -> None:
        """The file is ours again."""
        self._seen.pop(path, None)
