"""Role files as edits: a whole file of ours, or our block in a file of the user. What the user edited stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent_bus.clients.edits import Change, Known
from agent_bus.clients.entries import ADDED, REMOVED, UNCHANGED, UPDATED
from agent_bus.clients.hunks import BOM, apply, decode, difference, encode
from agent_bus.clients.roles.block import find_block, put_block, take_block
from agent_bus.clients.roles.known import unchanged
from agent_bus.errors import BusError

KEPT = "kept"
EDITED, LEFT = "clients.note.edited", "clients.note.left"
T = TypeVar("T")


@dataclass(frozen=True)
class FileEdit:
    """A file that is ours as a whole."""

    path: Path
    text: str
    name: str
    private: bool
    force: bool = False
    signed: bool = True

    def put(self, before: bytes | None, known: Known) -> Change:
        """Writes the file; one that somebody edited, or that was never ours, is kept, and ours goes beside it."""
        after = encode(self.text, str(self.path))
        if before is None:
            return Change(ADDED, after, tuple(difference("", self.text)), text=self.text)
        if before == after:
            return Change(UNCHANGED, before, text=self.text)
        if self.force or unchanged(decode(before, str(self.path)), known.texts):
            return Change(UPDATED, after, None, text=self.text)
        return Change(KEPT, before, note=EDITED, beside=self.text)

    def take(self, now: bytes, known: Known) -> Change:
        """Removes the file unless somebody edited it."""
        if self.force or unchanged(decode(now, str(self.path)), known.texts):
            return Change(REMOVED, None, None)
        return Change(KEPT, now, note=LEFT)


@dataclass(frozen=True)
class BlockEdit:
    """Our block in a file of the user."""

    path: Path
    text: str
    private: bool
    force: bool = False
    name: str = "block"
    signed: bool = True

    def put(self, before: bytes | None, known: Known) -> Change:
        """Puts the block at the end, or in the place of ours; one that somebody edited is kept."""
        old = decode(before or b"", str(self.path))
        found = self._named(find_block, old)
        if found is not None and found.text == self.text:
            return Change(UNCHANGED, before, text=self.text)
        if found is not None and not self.force and not unchanged(found.text, known.texts):
            return Change(KEPT, before, note=EDITED, beside=self.text + "\n")
        hunks = tuple(difference(old, put_block(old, self.text)))
        after = encode(apply(old, hunks), str(self.path))
        return Change(UPDATED if found else ADDED, after, hunks, text=self.text)

    def take(self, now: bytes, known: Known) -> Change:
        """Takes the block out unless somebody edited it."""
        text = decode(now, str(self.path))
        found = self._named(find_block, text)
        if found is None:
            return Change(UNCHANGED, now)
        if not self.force and not unchanged(found.text, known.texts):
            return Change(KEPT, now, note=LEFT)
        bare = take_block(text)
        gone = known.made and not bare.removeprefix(BOM).strip()
        return Change(REMOVED, None if gone else encode(bare, str(self.path)), None)

    def _named(self, look: Callable[[str], T], text: str) -> T:
        """What a look at the text gives; its refusal names the file."""
        try:
            return look(text)
        except BusError as error:
            raise BusError(error.code, f"{self.path}: {error.message}", error.hint) from None
