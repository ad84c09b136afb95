"""Putting away the notes of tasks that ended long ago, or that are too many: a row in the month's note stays.

The row is written first, then the notes go; one in which a person has written moves to `notes/archive/kept/` as it is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from agent_bus.bus import Bus
from agent_bus.domain import archive_note, inert, mirrors, notes
from agent_bus.domain.mirrors import Local
from agent_bus.domain.notes import BrokenNote
from agent_bus.domain.task import Task
from agent_bus.errors import BusError
from agent_bus.notes import ledger, properties
from agent_bus.notes.notebook import SAME, WRITTEN, Notebook
from agent_bus.operations import find, vault_memory
from agent_bus.store import atomic
from agent_bus.texts import Texts
from agent_bus.times import parse_stamp

EVERY_S, SOON_S, AT_ONCE = 3600.0, 60.0, 100
KEPT = "notes/archive/kept"
_OURS = ("ab_", "aliases", "tags", "cssclasses", "publish")


class Archive:
    """Looks once an hour, and whenever there are too many notes.

    Args:
        bus: with a folder.
        notebook, texts, local: as the mirror's.
    """

    def __init__(self, bus: Bus, notebook: Notebook, texts: Texts, local: Local) -> None:
        self._bus = bus
        self._notebook = notebook
        self._texts = texts
        self._local = local
        self._next_s = self._soon_s = float("-inf")

    def run(self, now_s: float) -> None:
        """Puts away what is due, a hundred tasks at most.

        Raises:
            OSError: a folder cannot be written.
            BusError: the ledger cannot be written.
        """
        settings = self._bus.settings.vault
        too_many = len(self._notebook.tasks) - settings.max_notes
        if now_s < (self._soon_s if too_many > 0 else self._next_s):
            return
        if now_s >= self._next_s:
            vault_memory.forget(self._bus)
        self._next_s, self._soon_s = now_s + EVERY_S, now_s + SOON_S
        ended = sorted(
            (at, task.task_id, task)
            for name in sorted(self._notebook.tasks)
            if (task := self._task(name)) is not None and (at := ended_at(task)) is not None
        )
        limit = self._bus.now() - timedelta(days=settings.keep_days)
        due = [task for number, (at, _, task) in enumerate(ended) if at < limit or number < too_many]
        for task in due[:AT_ONCE]:
            self._put_away(task)
        if len(due) > AT_ONCE:
            self._next_s = self._soon_s = now_s

    def _task(self, task_id: str) -> Task | None:
        found = find.find_quietly(self._bus, task_id)
        return found.task if found else None

    def _put_away(self, task: Task) -> None:
        if not self._has_row(task):
            return
        shown = mirrors.task_note(task, self._texts.say, self._local)
        gone = self._remove("task", task.task_id, f"notes/tasks/{task.task_id}", shown.human)
        report = mirrors.report_note(task, self._texts.say, self._local)
        if report is not None:
            gone = self._remove("report", report.id, report.path, report.human) and gone
        if gone:
            self._notebook.tasks.discard(task.task_id)

    def _has_row(self, task: Task) -> bool:
        """Writes the row of a task; whether it stands there now."""
        finished = self._local(str(task.history[-1].get("at", "")) if task.history else task.created_at)
        worker = str((task.report or {}).get("worker") or task.to)
        result = self._texts.say(f"mirror.state.{task.status}")
        line = archive_note.row(
            task.task_id, worker, result, finished.replace("T", " ")[:16], inert.title(task.instruction)
        )
        number = 1
        while True:
            name = archive_note.part(finished[:7], number)
            known = self._rows(name)
            if known is None:
                return False
            if task.task_id in known or archive_note.fits(known):
                note = archive_note.archive_note(name, {**known, task.task_id: line}, self._texts.say)
                return self._notebook.put(note) in (WRITTEN, SAME)
            number += 1

    def _rows(self, name: str) -> dict[str, str] | None:
        """The rows of a month's note; None if they cannot be told."""
        try:
            data = self._notebook.path(f"notes/archive/{name}").read_bytes()
            region = notes.regions(notes.split(data.decode("utf-8")).body).get("archive")
        except FileNotFoundError:
            return {}
        except (UnicodeDecodeError, BrokenNote):
            return None
        return archive_note.rows(region.text) if region else {}

    def _remove(self, kind: str, id: str, usual: str, human: str) -> bool:
        """Takes a note away, or puts it among the kept ones; whether it is gone."""
        doc = ledger.read(self._bus, kind, id)
        place = self._notebook.locate(kind, id, usual, doc)
        path = self._notebook.path(place or usual)
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            if not place or not self._take(path, data, id, is_plain(data, human)):
                return False
        if doc is not None:
            with suppress(BusError):
                self._bus.store.delete(doc)
        return True

    def _take(self, path: Path, data: bytes, id: str, plain: bool) -> bool:
        """Moves a note out of the way first, so that what somebody writes meanwhile is seen, and put back."""
        if not plain:
            return self._notebook.move_file(path, f"{KEPT}/{id}")
        aside = self._notebook.temp / f"away-{id}"
        os.replace(path, aside)
        if aside.read_bytes() != data:
            atomic.put_new(str(aside), str(path))
            return False
        aside.unlink()
        return True


def ended_at(task: Task) -> datetime | None:
    """When a task ended; None if it has not, or its time cannot be told."""
    if not task.ended or not task.history:
        return None
    try:
        return parse_stamp(str(task.history[-1].get("at", "")))
    except ValueError:
        return None


def is_plain(data: bytes, human: str) -> bool:
    """Whether nothing in a note is a person's, boxes apart."""
    try:
        parts = notes.split(data.decode("utf-8"))
        values = properties.read(parts.front or "")
        body = notes.without_regions(notes.unticked(parts.body, frozenset(notes.controls(parts.body))))
    except (UnicodeDecodeError, BrokenNote):
        return False
    if values is None or any(not str(key).startswith(_OURS) for key in values):
        return False
    return body.split() == human.split()
