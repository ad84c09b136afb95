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
from agent_bus.operations import rooms
from agent_bus.operations.agents import known_agents
from agent_bus.operations.rooms import Room
from agent_bus.store.port import Unreadable
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
            number = self._number(name)
            script = self._scripts.get(name)
            if script is None and number == self._kept(name):
                script = self._scripts[name] = _Script(written=number)
            if script is None or script.written != number:
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
        if script is None or not script.number:
            script = self._scripts[name] = _Script()  # a closed room of an earlier run that changed after all
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
        if all(written):
            script.written = int(found.head["number"])
            script.open.clear()
            ledger.change(self._bus, KIND, found.name, lambda value: {**value, "number": script.written})
        at = str((last or {}).get("at") or found.setup["opened_at"])
        self._shown[name] = (at, stem, int(found.head["messages"]))

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
        try:
            doc = self._bus.store.get(f"{rooms.PREFIX}/{name}/head")
        except Unreadable:
            return -1
        return int(doc.value.get("number", 0)) if doc else 0

    def _kept(self, name: str) -> int:
        """What was written of a closed room in an earlier run; an open one is read anew."""
        head = self._bus.store.get(f"{rooms.PREFIX}/{name}/head")
        setup = self._bus.store.get(f"{rooms.PREFIX}/{name}/setup")
        if head is None or setup is None or head.value.get("state") != room.CLOSED:
            return -2
        doc = ledger.read(self._bus, KIND, str(setup.value.get("room", "")))
        return int(doc.value.get("number", -2)) if doc else -2

    def _stem(self, name: str) -> str:
        """The file name of a room's note; one that an agent has too gets an ending, as a link must mean one note."""
        taken = any(ids.same_name(name, agent) for agent in known_agents(self._bus))
        return names.of_agent(f"{name}-room" if taken else name)
