"""The notes of rooms: `rooms/<room>.md` and the parts of its transcript, written at most every few seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import room, room_mirror, room_note
from agent_bus.domain.mirrors import Local, Mirror
from agent_bus.errors import BusError
from agent_bus.notes import ledger, names
from agent_bus.notes.notebook import SAME, WRITTEN, Notebook
from agent_bus.operations import quiet, rooms
from agent_bus.operations.agents import known_agents
from agent_bus.operations.rooms import Room
from agent_bus.texts import Texts

KIND, SHOWN = "room", 10


@dataclass
class _Script:
    """A transcript as far as it was read: the last record, and the text of each part that is not yet written."""

    number: int = 0
    part: int = 1
    text: str = ""
    last: dict[str, Any] | None = None
    open: dict[int, str] = field(default_factory=dict)
    written: int = -1


class RoomNotes:
    """Writes the notes of rooms.

    Args:
        bus: with a folder.
        notebook, texts, local: as the mirror's.
    """

    def __init__(self, bus: Bus, notebook: Notebook, texts: Texts, local: Local) -> None:
        self._bus = bus
        self._notebook = notebook
        self._texts = texts
        self._local = local
        self._scripts: dict[str, _Script] = {}
        self._shown: dict[str, tuple[str, str, int]] = {}
        self._over: set[str] = set()
        """Closed rooms whose notes are whole: nothing changes there any more."""
        self._next_s = float("-inf")

    def write(self, now_s: float) -> None:
        """Writes what has changed since the last time, at most every `room_interval_s`.

        Raises:
            OSError: the folder cannot be written.
            BusError: the ledger cannot be written.
        """
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._bus.settings.vault.room_interval_s
        for name in self._bus.store.folders(rooms.PREFIX):
            script = self._scripts.get(name)
            if name in self._over or (script is None and self._was_written(name)):
                continue
            if script is None or script.written != self._number(name):
                self._write_room(name, script)

    def latest(self) -> list[tuple[str, int, str]]:
        """The rooms that were spoken in last: file name, messages and time of the last, at most ten."""
        found = sorted(self._shown.values(), reverse=True)[:SHOWN]
        return [(stem, messages, self._local(at)) for at, stem, messages in found]

    def _write_room(self, name: str, script: _Script | None) -> None:
        try:
            found = rooms.settled(self._bus, name)
        except BusError:
            return  # the rooms' own tools name what is wrong
        if script is None:
            script = self._scripts[name] = _Script()
        stem = self._stem(found.name)
        self._read(found, script)
        last = script.last
        mirrors = [
            *(room_mirror.part_mirror(self._texts, found.setup, stem, number, text, self._local)
              for number, text in sorted(script.open.items())),
            room_mirror.room_mirror(self._texts, found.setup, found.head, last, stem, script.part if script.text else 0,
                                    self._bus.settings.timezone, self._local),
        ]  # fmt: skip
        written = [self._put(mirror) for mirror in mirrors]  # each, whatever becomes of the others
        at = str((last or {}).get("at") or found.setup["opened_at"])
        shown = self._shown[name] = (at, stem, int(found.head["messages"]))
        if all(written):
            script.written = int(found.head["number"])
            script.open.clear()
            if not found.is_open:
                ledger.change(self._bus, KIND, found.name, lambda value: {**value, "whole": list(shown)})
                self._over.add(name)

    def _put(self, mirror: Mirror) -> bool:
        return self._notebook.put(mirror) in (WRITTEN, SAME)

    def _read(self, found: Room, script: _Script) -> None:
        """Adds the entries of new records; a part that would be too large is followed by another."""
        for record in rooms.records(self._bus, found, script.number):
            entry = room_note.transcript_entry(self._texts, record, self._bus.settings.timezone)
            if script.text and len(script.text.encode()) + len(entry.encode()) > room_mirror.PART_BYTES:
                script.part, script.text = script.part + 1, ""
            script.text += entry
            script.number = int(record["number"])
            if entry:
                script.open[script.part] = script.text
            if room.is_public(record):
                script.last = record

    def _number(self, name: str) -> int:
        doc = quiet.get(self._bus, f"{rooms.PREFIX}/{name}/head")
        return int(doc.value.get("number", 0)) if doc else -1

    def _was_written(self, name: str) -> bool:
        """Whether an earlier run has written all of a closed room; an open one is read anew."""
        setup = quiet.get(self._bus, f"{rooms.PREFIX}/{name}/setup")
        doc = ledger.read(self._bus, KIND, str(setup.value.get("room", ""))) if setup else None
        whole = doc.value.get("whole") if doc else None
        if not isinstance(whole, list) or len(whole) != 3:
            return False
        self._shown[name] = (str(whole[0]), str(whole[1]), int(whole[2]))
        self._over.add(name)
        return True

    def _stem(self, name: str) -> str:
        """The file name of a room's note; one that an agent has too gets an ending, as a link must mean one note."""
        taken = any(ids.same_name(name, agent) for agent in known_agents(self._bus))
        return names.of_agent(f"{name}-room" if taken else name)
