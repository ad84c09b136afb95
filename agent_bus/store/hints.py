"""The hint log: every writer appends the key it wrote, every reader follows.

One short append a write, so that a process knows what changed without listing folders. A line lost by a kill costs
latency, never truth: whoever must be sure lists the folder. One file an hour; readers follow from file to file.
"""

from __future__ import annotations

import os
import re
import threading
import time

from agent_bus.store import atomic

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_HOUR = re.compile(r"\d{8}-\d{2}", re.ASCII)
KEEP_FILES = 3


class HintLog:
    """The hints of one bus folder for this process; safe for threads.

    Args:
        folder: where the hint files lie; it must exist.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._hour = (-1, "")
        self._writer: tuple[str, int] = ("", -1)
        self._place: tuple[str, int, int] = (
            self._end()
        )  # the file read last, its inode, the offset after its last whole line

    def append(self, key: str) -> None:
        """Tells the others that the document under the key may have changed."""
        with self._guard:
            hour = self._now()
            if self._writer[0] != hour or os.fstat(self._writer[1]).st_nlink == 0:  # or somebody cleaned the folder
                fresh = os.open(os.path.join(self._folder, hour), _FLAGS, 0o666)
                self._close()  # only now, so that a file made anew has another inode
                self._writer = (hour, fresh)
            try:
                os.write(self._writer[1], key.encode("utf-8") + b"\n")
            finally:
                if atomic.WINDOWS:  # its watchers hear of an append when the file is closed
                    self._close()

    def read(self) -> list[str]:
        """The keys appended since the last look, by whomever."""
        with self._guard:
            data, self._place = self._tail(*self._place)
            name, now = self._place[0], self._now()
            if name != now:  # the hour is over (or the clock set back): what stands in the other files is new as well
                self._place = (now, 0, 0)
                for other in [n for n in self._names() if n > name or n == now]:
                    tail, self._place = self._tail(other, 0, 0)
                    data += tail
            return data.decode("utf-8", "replace").split("\n")[:-1]

    def sweep(self) -> None:
        """Unlinks the files of past hours, but for the newest few."""
        for name in [n for n in self._names() if n < self._now()][: -KEEP_FILES + 1]:
            atomic.discard(os.path.join(self._folder, name))

    def close(self) -> None:
        """Closes the log."""
        with self._guard:
            self._close()

    def _close(self) -> None:
        if self._writer[1] >= 0:
            os.close(self._writer[1])
        self._writer = ("", -1)

    def _now(self) -> str:
        hours = int(time.time() // 3600)
        if self._hour[0] != hours:
            self._hour = (hours, time.strftime("%Y%m%d-%H", time.gmtime(hours * 3600)))
        return self._hour[1]

    def _names(self) -> list[str]:
        return sorted(n for n in os.listdir(self._folder) if _HOUR.fullmatch(n))

    def _end(self) -> tuple[str, int, int]:
        hour = self._now()
        try:
            stat = os.stat(os.path.join(self._folder, hour))
        except FileNotFoundError:
            return hour, 0, 0
        return hour, stat.st_ino, stat.st_size

    def _tail(self, name: str, inode: int, offset: int) -> tuple[bytes, tuple[str, int, int]]:
        """The whole lines from an offset on, and the place after them. A file made anew is read from its start."""
        try:
            handle = os.open(os.path.join(self._folder, name), _READ)
        except FileNotFoundError:
            return b"", (name, 0, 0)
        try:
            stat = os.fstat(handle)
            if stat.st_ino != inode or stat.st_size < offset:
                offset = 0
            os.lseek(handle, offset, os.SEEK_SET)
            parts = []
            while chunk := os.read(handle, 1 << 20):
                parts.append(chunk)
        finally:
            os.close(handle)
        data = b"".join(parts)
        data = data[: data.rfind(b"\n") + 1]
        return data, (name, stat.st_ino, offset + len(data))
