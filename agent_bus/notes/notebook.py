"""Writing the notes of a bus: only what differs, never soon after somebody typed, never over what is not ours.

Of every note the ledger `.bus/vault/notes/<kind>/<name>` keeps {path, rev, own, intended}, where `own` are the hashes
of our last writes: bytes with another hash are somebody else's. `intended` is set before the file is renamed, so that
after a kill between the two the new bytes are known as ours.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import notes
from agent_bus.domain.mirrors import Mirror
from agent_bus.domain.note_merge import is_ours, merged
from agent_bus.domain.notes import BrokenNote
from agent_bus.notes import properties
from agent_bus.store import atomic
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

OWN = 20
LIMIT = 2 * 1024 * 1024
TRIES = 5
_UNTOUCHED = b"\nab_rev: 0\n"
"""So stands in a note that was installed and never written by a mirror."""
WRITTEN, SAME, LATER, KEPT_OUT = "written", "same", "later", "kept out"


@dataclass
class Seen:
    """Bytes of somebody else, and when we first saw them (seconds of the boot clock)."""

    sha256: str
    at_s: float


class Notebook:
    """The notes of one bus folder.

    Args:
        bus: with a folder.
        quiet_s: how long a note is left alone after somebody else changed it.
    """

    def __init__(self, bus: Bus, quiet_s: float) -> None:
        assert bus.layout is not None
        self._bus = bus
        self._root = bus.layout.root
        self._temp = str(bus.layout.state / "tmp")
        self._quiet_s = quiet_s
        self._seen: dict[str, Seen] = {}
        self.problems: dict[str, str] = {}

    def put(self, mirror: Mirror) -> str:
        """Makes a note what it shall be: `written`, `same`, `later` (somebody is typing) or `kept out` (see problems).

        Raises:
            OSError: the folder cannot be written.
            BusError: the ledger cannot be written.
        """
        self.problems.pop(mirror.path, None)
        for _ in range(TRIES):
            entry = self._entry(mirror)
            data = self._read(mirror)
            if data is not None and not self._is_quiet(mirror.path, data, entry):
                return LATER
            fresh = self._next(mirror, data, entry)
            if fresh is None:
                return KEPT_OUT if mirror.path in self.problems else SAME
            if self._write(mirror, data, fresh, entry):
                return WRITTEN
        return LATER

    def exists(self, path: str) -> bool:
        """Whether there is a file at a note's place."""
        return self._file(path).exists()

    def names(self, folder: str) -> list[str]:
        """The notes in a folder, without `.md`."""
        return sorted(path.stem for path in self._root.joinpath(*folder.split("/")).glob("*.md"))

    def _next(self, mirror: Mirror, data: bytes | None, entry: Doc | None) -> bytes | None:
        rev = int(entry.value.get("rev", 0)) if entry else 0
        try:
            text = None if data is None else data.decode("utf-8")
            front = None if text is None else notes.split(text).front
            values = {} if front is None else properties.read(front)
            if text is not None and not is_ours(values, mirror):
                self.problems[mirror.path] = "is not ours, though it has the name of a note of ours: rename it"
                return None
            found = merged(text, values, mirror, rev)
        except UnicodeDecodeError:
            self.problems[mirror.path] = "is no UTF-8 text: mend it, or delete it and it is made again"
            return None
        except BrokenNote as error:
            self.problems[mirror.path] = f"{error}: put the marker lines back, or delete the note and it is made again"
            return None
        return None if found is None else found.encode("utf-8")

    def _is_quiet(self, path: str, data: bytes, entry: Doc | None) -> bool:
        sha = _sha256(data)
        if entry is None and _UNTOUCHED in data[:4096]:
            return True
        if entry and sha in (entry.value.get("intended"), *entry.value.get("own", [])):
            self._seen.pop(path, None)
            return True
        known = self._seen.get(path)
        now = self._bus.clock.boot_s()
        if known is None or known.sha256 != sha:
            self._seen[path] = Seen(sha, now)
            return False
        return now - known.at_s >= self._quiet_s

    def _write(self, mirror: Mirror, before: bytes | None, after: bytes, entry: Doc | None) -> bool:
        """Compares and renames; False if somebody changed the note, or the ledger, meanwhile."""
        sha, path = _sha256(after), self._file(mirror.path)
        intended = self._note(mirror, entry, {"intended": sha})
        if intended is None:
            return False
        atomic.make_folder(str(path.parent), False)
        temp, _ = atomic.write_temp(self._temp, after, False)
        try:
            if self._read(mirror) != before:
                return False
            if before is None:
                atomic.put_new(temp, str(path))
            else:
                atomic.put_over(temp, str(path))
        except FileExistsError:
            return False
        finally:
            atomic.discard(temp)
        rev = int(intended.value.get("rev", 0)) + 1
        own = [*intended.value.get("own", []), sha][-OWN:]
        self._note(mirror, intended, {"intended": "", "own": own, "rev": rev})
        return True

    def _note(self, mirror: Mirror, entry: Doc | None, change: dict[str, Any]) -> Doc | None:
        try:
            if entry is None:
                return self._bus.store.create(_key(mirror), {"path": mirror.path, **change}, durable=False)
            return self._bus.store.replace(entry, {**entry.value, **change}, durable=False)
        except (Exists, Stale):
            return None

    def _entry(self, mirror: Mirror) -> Doc | None:
        try:
            return self._bus.store.get(_key(mirror))
        except Unreadable:
            return None

    def _read(self, mirror: Mirror) -> bytes | None:
        with suppress(FileNotFoundError):
            return atomic.read(str(self._file(mirror.path)), LIMIT)[0]
        return None

    def _file(self, path: str) -> Path:
        return self._root.joinpath(*f"{path}.md".split("/"))


def stem(name: str) -> str:
    """The file name of an agent's note: the name itself, or as much of it as fits with eight letters of its hash.

    At most 100 bytes (Dropbox, Syncthing and phones cut longer ones with their own suffixes).
    """
    name = ids.fold(name) if name != name.strip() else name
    if len(name.encode()) <= 100:
        return name
    short = name.encode()[:91].decode("utf-8", "ignore")
    return f"{short}-{_sha256(name.encode())[:8]}"


def _key(mirror: Mirror) -> str:
    safe = mirror.id if ids.is_task_id(mirror.id.removesuffix("-report")) else _sha256(mirror.id.encode())[:16]
    return f".bus/vault/notes/{mirror.kind}/{safe}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


__all__ = ["KEPT_OUT", "LATER", "SAME", "WRITTEN", "Notebook", "stem"]
