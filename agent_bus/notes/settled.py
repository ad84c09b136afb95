"""Files that have come to rest: what others write is told once, whole, and not while they are writing.

Editors write in place and save as one types, synchronisers bring parts: so a file is read only when nobody has changed
it for some seconds by our own clock, and twice (docs/vault-notes.md "When a note is read").
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_bus.notes.ledger import digest
from agent_bus.store import atomic

LIMIT = 2 * 1024 * 1024
TWICE_S = 0.2
_AGAIN_S, _AGAIN_MAX_S = 0.5, 30.0
OVERDUE_S = 600.0
_RECALL = 0x00001000 | 0x00040000 | 0x00400000
"""FILE_ATTRIBUTE_OFFLINE, _RECALL_ON_OPEN and _RECALL_ON_DATA_ACCESS (winnt.h): reading such a file downloads it."""
_MERGE_MARK = b"<<<<<<<"

Sign = tuple[int, int, int, int]


@dataclass
class _File:
    sign: Sign
    changed_s: float
    look_s: float
    first: str = ""
    tries: int = 0
    done: bool = False


class SettledFiles:
    """Watches a set of files.

    Args:
        root: the bus folder.
        now_s: a clock that never goes back, in seconds.
        quiet_s: how long a file must rest.
        is_known: whether a file with this path and hash was dealt with already; then one read is enough.
        touched: told the path of a file that is seen changed, before anything else.
    """

    def __init__(
        self, root: Path, now_s: Callable[[], float], quiet_s: float, is_known: Callable[[str, str], bool],
        touched: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._root = root
        self._now_s = now_s
        self._quiet_s = quiet_s
        self._is_known = is_known
        self._touched = touched
        self._files: dict[str, _File] = {}

    def changed(self, files: Mapping[str, os.stat_result]) -> Iterator[tuple[str, bytes]]:
        """Those that have changed and rest now, each with its bytes; what has not changed is not opened.

        Args:
            files: the notes that are there, by their path in the bus folder without `.md`.
        """
        for path in self._files.keys() - files.keys():
            del self._files[path]
        now = self._now_s()
        for path, stat in files.items():
            file = self._files.get(path)
            sign = sign_of(stat)
            if file is None or file.sign != sign:
                self._files[path] = file = _File(sign, now, now + self._quiet_s)
                self._touched(path)
            if not file.done and file.look_s <= now and (data := self._read(path, file, now)) is not None:
                yield path, data
                file.done = True  # only now: whoever fails in dealing with it is told again

    def changed_s(self, path: str) -> float:
        """When a file was first seen as it is now, by the clock."""
        file = self._files.get(path)
        return file.changed_s if file else self._now_s()

    def forget(self, path: str) -> None:
        """Has a file told again, although it has not changed."""
        self._files.pop(path, None)

    def waits_s(self) -> float:
        """Seconds until the next file may be read; a large number if none waits."""
        now = self._now_s()
        return max(0.0, min((one.look_s - now for one in self._files.values() if not one.done), default=1e9))

    def overdue(self) -> list[str]:
        """The paths of files that could not be read whole for ten minutes since their last change."""
        now = self._now_s()
        return sorted(
            path for path, one in self._files.items() if not one.done and one.tries and now - one.changed_s > OVERDUE_S
        )

    def _read(self, path: str, file: _File, now: float) -> bytes | None:
        try:
            name = str(self._root.joinpath(*f"{path}.md".split("/")))
            if is_placeholder(os.stat(name)):
                raise OSError("its content is not here")
            data, stat = atomic.read(name, LIMIT)
        except OSError:
            self._later(file, now)
            return None
        if sign_of(stat) != file.sign:
            return None  # changed just now: the next look sees it
        sha = digest(data)
        if self._is_known(path, sha):
            file.done = True
            return None
        if file.first != sha:
            file.first, file.look_s = sha, now + TWICE_S
            return None
        if not is_whole(data):
            self._later(file, now)
            return None
        return data

    def _later(self, file: _File, now: float) -> None:
        file.look_s = now + min(_AGAIN_MAX_S, _AGAIN_S * 2.0 ** min(file.tries, 10))
        file.tries, file.first = file.tries + 1, ""


def is_whole(data: bytes) -> bool:
    """Whether bytes can be a note at all: not empty, not half written, not a merge that somebody must finish."""
    if not data.strip() or b"\0" in data or any(line.startswith(_MERGE_MARK) for line in data.splitlines()):
        return False
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    return not text.startswith(b"---\n") or b"\n---\n" in text[3:] or text.endswith(b"\n---")


def is_placeholder(stat: os.stat_result) -> bool:
    """Whether a file's content is elsewhere, so that reading would fetch it, or hang: a size and no blocks on macOS,
    the recall attributes on Windows.
    """
    if sys.platform == "win32":
        return bool(stat.st_file_attributes & _RECALL)
    return sys.platform == "darwin" and stat.st_size > 0 and stat.st_blocks == 0


def sign_of(stat: os.stat_result) -> Sign:
    """What changes when a file does."""
    return stat.st_ino, stat.st_mtime_ns, stat.st_size, getattr(stat, "st_ctime_ns", 0)
