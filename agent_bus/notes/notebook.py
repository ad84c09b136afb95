"""Writing the notes of a bus: only what differs, never soon after somebody typed, never over what is not ours, and
never over what was not read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import notes
from agent_bus.domain.human import Human
from agent_bus.domain.mirrors import Mirror
from agent_bus.domain.note_merge import Edits, after, is_ours, merged, next_rev
from agent_bus.domain.notes import BrokenNote
from agent_bus.notes import ledger, properties
from agent_bus.notes.heard import Heard
from agent_bus.notes.moved import MovedNotes
from agent_bus.notes.place import vault_of
from agent_bus.notes.published import edits_of, published
from agent_bus.notes.settled import LIMIT, Sign, sign_of
from agent_bus.store import atomic
from agent_bus.store.port import Doc, Exists, Stale

TRIES = 5
_UNTOUCHED = b"\nab_rev: 0\n"
"""So stands in a note that was installed and never written by a mirror."""
WRITTEN, SAME, LATER, KEPT_OUT = "written", "same", "later", "kept out"
READ_FIRST = ("task", "dashboard")
"""Notes in which a person decides: nothing is written over bytes of theirs that have not been read."""


@dataclass(frozen=True)
class Next:
    """A note's next text, its number, and what a person can set in it as we publish it."""

    text: str
    rev: int
    human: Human


class Notebook:
    """The notes of one bus folder.

    Args:
        bus: with a folder.
        quiet_s: how long a note is left alone after somebody else changed it.
    """

    def __init__(self, bus: Bus, quiet_s: float) -> None:
        assert bus.layout is not None
        self._bus = bus
        self.root = bus.layout.root
        self.temp = bus.layout.state / "tmp"
        self.problems: dict[str, str] = {}
        self.heard = Heard(bus.clock.boot_s, quiet_s)
        self._put: dict[str, tuple[str, Sign | None]] = {}
        self.tasks = {key.rpartition("/")[2] for key in bus.store.keys(f"{ledger.FOLDER}/task")}
        """The ids of tasks that have, or had, a note."""
        self._moved = MovedNotes(vault_of(self.root), self.root, bus.clock.boot_s)

    def put(self, mirror: Mirror) -> str:
        """Makes a note what it shall be: `written`, `same`, `later` (somebody is typing) or `kept out` (see problems).

        Raises:
            BusError: the ledger cannot be written.
        """
        content = ledger.digest(repr((mirror.properties, mirror.regions)).encode("utf-8", "backslashreplace"))
        if self._put.get(mirror.path) == (content, self._sign(mirror.path)):
            return SAME  # neither it nor the file has changed since the last look: nothing is opened
        try:
            outcome = self._put_now(mirror)
        except OSError as error:  # one note that is too large, or may not be opened, keeps no other one back
            self.problems[mirror.path] = f"cannot be read or written ({error.strerror or error})"
            return KEPT_OUT
        if outcome in (SAME, WRITTEN) and (sign := self._sign(mirror.path)) is not None:
            self._put[mirror.path] = (content, sign)
        return outcome

    def _put_now(self, mirror: Mirror) -> str:
        self.problems.pop(mirror.path, None)
        for _ in range(TRIES):
            entry = ledger.read(self._bus, mirror.kind, mirror.id)
            path = self.locate(mirror.kind, mirror.id, mirror.path, entry)
            if not path:
                self.problems[mirror.path] = "was moved, and is at several places now: keep one of them"
                return KEPT_OUT
            mirror = replace(mirror, path=path)
            data = self.read_file(f"{mirror.path}.md")
            if data is not None and not self._is_quiet(mirror, data, entry):
                return LATER
            fresh = self._next(mirror, data, entry)
            if fresh is None:
                return KEPT_OUT if mirror.path in self.problems else SAME
            if self._write(mirror, data, fresh, entry):
                if mirror.kind == "task":
                    self.tasks.add(mirror.id)
                return WRITTEN
        return LATER

    def locate(self, kind: str, id: str, usual: str, entry: Doc | None) -> str:
        """Where a note is, or where it goes if it is nowhere: a person may have moved it; "" if it is at two places.

        Args:
            kind, id: the note.
            usual: where it was made.
            entry: its document in the ledger; without one it was never written.

        Raises:
            BusError: the ledger cannot be written.
        """
        last = str(entry.value.get("path") or usual) if entry else usual
        if entry is None or self.exists(last) or self.exists(usual):
            return last if self.exists(last) else usual
        found = self._moved.find(kind, id)
        if len(found) != 1:
            return "" if found else usual
        ledger.change(self._bus, kind, id, lambda value: {**value, "path": found[0]})
        return found[0]

    def exists(self, path: str) -> bool:
        """Whether there is a file at a note's place."""
        return self.path(path).exists()

    def stat(self, path: str) -> os.stat_result | None:
        """The file at a note's place; None if there is none."""
        try:
            return os.stat(self.path(path))
        except OSError:
            return None

    def _sign(self, path: str) -> Sign | None:
        found = self.stat(path)
        return None if found is None else sign_of(found)

    def names(self, folder: str) -> list[str]:
        """The notes in a folder, without `.md`."""
        return sorted(path.stem for path in self.root.joinpath(*folder.split("/")).glob("*.md"))

    def replace(self, kind: str, path: str, before: bytes, text: str) -> bool:
        """Writes a note that is a person's, and that the bus only answers in; False if it is not as it was read.

        Raises:
            OSError: the folder cannot be written.
            BusError: the ledger cannot be written.
        """
        return self.replace_file(kind, path, f"{path}.md", before, text.encode("utf-8"))

    def replace_file(self, kind: str, id: str, path: str, before: bytes | None, data: bytes) -> bool:
        """The same for any file; `before` is None for a new one.

        Args:
            kind, id: its document in the ledger.
            path: its path in the bus folder.
        """
        made = {"rev": 0, "sha256": ledger.digest(data), "human": {}}

        def note(value: dict[str, Any]) -> dict[str, Any]:
            own = [one for one in value.get("own", []) if one.get("sha256") != made["sha256"]]
            return {**value, "path": path.removesuffix(".md"), "own": [*own, made][-ledger.OWN :]}

        ledger.change(self._bus, kind, id, note)  # before the rename: a kill between leaves a hash that nothing has
        return self._swap(self.root.joinpath(*path.split("/")), before, data)

    def rests(self, path: str, data: bytes, value: Mapping[str, Any]) -> bool:
        """Whether a file that nobody needs to have read may be written over: it is ours, or at rest."""
        sha = ledger.digest(data)
        if ledger.is_own(value, sha):
            self.heard.forget(path)
            return True
        return self.heard.rests(path, sha)

    def read_file(self, path: str) -> bytes | None:
        """The bytes of a file by its path in the bus folder; None if there is none."""
        with suppress(FileNotFoundError):
            return atomic.read(str(self.root.joinpath(*path.split("/"))), LIMIT)[0]
        return None

    def _swap(self, file: Path, before: bytes | None, data: bytes) -> bool:
        """Compares and renames; False if the file is not as it was read."""
        atomic.make_folder(str(file.parent), False)
        temp, _ = atomic.write_temp(str(self.temp), data, False)
        try:
            now = atomic.read(str(file), LIMIT)[0] if file.exists() else None
            if now != before:
                return False
            if before is None:
                atomic.put_new(temp, str(file))
            else:
                atomic.put_over(temp, str(file))
            return True
        except (FileExistsError, FileNotFoundError):
            return False
        finally:
            atomic.discard(temp)

    def move(self, path: str, target: str) -> bool:
        """Gives a note another place; False if that is taken.

        Raises:
            OSError: it cannot be moved.
        """
        return self.move_file(self.path(path), target)

    def move_file(self, file: Path, target: str) -> bool:
        """See `move`."""
        atomic.make_folder(str(self.path(target).parent), False)
        try:
            atomic.put_new(str(file), str(self.path(target)))
        except FileExistsError:
            return False
        return True

    def _next(self, mirror: Mirror, data: bytes | None, entry: Doc | None) -> Next | None:
        value = entry.value if entry else {}
        try:
            text = None if data is None else data.decode("utf-8")
            parts = None if text is None else notes.split(text)
            values = {} if parts is None or parts.front is None else properties.read(parts.front)
            if text is not None and not is_ours(values, mirror):
                self.problems[mirror.path] = "is not ours, though it has the name of a note of ours: rename it"
                return None
            edits = edits_of(value, values or {}, parts.body, mirror) if parts else Edits()
            last = int(value.get("rev", 0))
            found = merged(text, values, mirror, last, edits)
            if found is None:
                return None
            shown = None if values is None else after(values, mirror, edits)
            return Next(found, next_rev(values, last), published(found, shown, value, values or {}))
        except UnicodeDecodeError:
            self.problems[mirror.path] = "is no UTF-8 text: mend it, or delete it and it is made again"
        except BrokenNote as error:
            self.problems[mirror.path] = f"{error}: put the marker lines back, or delete the note and it is made again"
        return None

    def _is_quiet(self, mirror: Mirror, data: bytes, entry: Doc | None) -> bool:
        sha, path = ledger.digest(data), mirror.path
        if entry is None and _UNTOUCHED in data[:4096]:
            return True
        if mirror.kind not in READ_FIRST:
            return self.rests(path, data, entry.value if entry else {})
        own = entry is not None and ledger.is_own(entry.value, sha)
        return own or self.heard.rests_read(path, sha)

    def _write(self, mirror: Mirror, before: bytes | None, fresh: Next, entry: Doc | None) -> bool:
        """Compares and renames; False if somebody changed the note, or the ledger, meanwhile."""
        data, path = fresh.text.encode("utf-8"), self.path(mirror.path)
        made = {"rev": fresh.rev, "sha256": ledger.digest(data), "human": fresh.human.value()}
        intended = self._note(mirror, entry, {"intended": made})
        if intended is None:
            return False
        if not self._swap(path, before, data):
            return False
        own = [*intended.value.get("own", []), made][-ledger.OWN :]
        done = {"intended": {}, "own": own, "rev": made["rev"], "delivered": "", "untick": []}
        self._note(mirror, intended, done)
        return True

    def _note(self, mirror: Mirror, entry: Doc | None, change: dict[str, Any]) -> Doc | None:
        key = ledger.key(mirror.kind, mirror.id)
        try:
            if entry is None:
                return self._bus.store.create(key, {"path": mirror.path, **change}, durable=False)
            return self._bus.store.replace(entry, {**entry.value, **change}, durable=False)
        except (Exists, Stale):
            return None

    def path(self, path: str) -> Path:
        """The file of a note."""
        return self.root.joinpath(*f"{path}.md".split("/"))


__all__ = ["KEPT_OUT", "LATER", "SAME", "WRITTEN", "Notebook"]
