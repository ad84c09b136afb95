"""Who owns the bus by its Dashboard: `ab_host` and `ab_epoch` repeat format.json, as some file synchronisers carry
notes but no hidden folders (docs/vault-format.md "The owner host").
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from agent_bus.store import atomic

DASHBOARD = "Dashboard.md"
_HEAD_BYTES = 8192
_READ_BYTES = 1 << 20
_FRONT = re.compile(rb"\A(?:\xef\xbb\xbf)?---\r?\n(.*?)^---[ \t]*\r?$", re.MULTILINE | re.DOTALL)
_HOST = re.compile(rb"^(ab_host:)[ \t]*([^\r\n]*?)[ \t]*(?=\r?$)", re.MULTILINE)
_EPOCH = re.compile(rb"^(ab_epoch:)[ \t]*(\d{1,9})[ \t]*(?=\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """What the Dashboard says: the owner's label and the epoch."""

    host: str
    epoch: int


def sign(root: Path) -> tuple[int, int, int] | None:
    """What changes when the Dashboard does; None without one."""
    try:
        found = os.stat(root / DASHBOARD)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read(root: Path) -> Claim | None:
    """The claim of a bus folder's Dashboard; None if it makes none (no note, half a note, no host in it)."""
    try:
        with open(root / DASHBOARD, "rb") as note:
            return parse(note.read(_HEAD_BYTES))
    except OSError:
        return None


def parse(data: bytes) -> Claim | None:
    """The claim in a note's first bytes."""
    front = _FRONT.match(data)
    host = _HOST.search(front[1]) if front else None
    epoch = _EPOCH.search(front[1]) if front else None
    name = host[2].strip(b"\"'").decode("utf-8", "replace") if host else ""
    return Claim(name, int(epoch[2])) if name and epoch else None


def write(root: Path, temp: str, claim: Claim) -> bool:
    """Puts a claim into the Dashboard's two lines, every other byte as it was; False if it has no such lines.

    Args:
        root: the bus folder.
        temp: a folder for the temp file, on the same filesystem.
        claim: what to say.

    Raises:
        OSError: the note cannot be written.
    """
    path = str(root / DASHBOARD)
    try:
        data, _ = atomic.read(path, _READ_BYTES)
    except OSError:
        return False
    front = _FRONT.match(data)
    if front is None or not (_HOST.search(front[1]) and _EPOCH.search(front[1])):
        return False
    head = _HOST.sub(lambda m: m[1] + f' "{claim.host}"'.encode(), front[1])
    head = _EPOCH.sub(lambda m: m[1] + f" {claim.epoch}".encode(), head)
    fresh = data[: front.start(1)] + head + data[front.end(1) :]
    if fresh != data:
        atomic.put_file(temp, path, fresh, False)
    return True
