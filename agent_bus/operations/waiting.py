"""Tasks that wait: for a time, for other tasks, for a person until they expire. Moved on by whoever sees that
it is due.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import dependency
from agent_bus.domain.task import BLOCKED, SCHEDULED, WAITING, follow, place
from agent_bus.errors import BusError
from agent_bus.operations import find
from agent_bus.operations.find import Found
from agent_bus.operations.witness import record
from agent_bus.store.port import Doc, Feed, Stale, Unreadable
from agent_bus.times import parse_stamp


@dataclass(frozen=True, slots=True)
class _Row:
    status: str
    due: float
    needs: tuple[str, ...]


class WaitingIndex:
    """What lies in waiting/, kept by a feed: enough to know what is due without reading everything."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._rows: dict[str, _Row] = {}
        self._guard = threading.Lock()

    def due(self, now: datetime, full: bool = False) -> list[str]:
        """Ids whose time has come, or that lie here by mistake."""
        with self._guard:
            self._update(full)
            moment = now.timestamp()
            return sorted(k for k, r in self._rows.items() if _is_due(r, moment))

    def depending_on(self, task_id: str) -> list[str]:
        """Ids that wait for a task."""
        with self._guard:
            self._update(False)
            return sorted(k for k, r in self._rows.items() if task_id in r.needs)

    def all_waiting(self) -> list[str]:
        """Ids that wait for other tasks."""
        with self._guard:
            self._update(True)
            return sorted(k for k, r in self._rows.items() if r.status == WAITING)

    def counts(self) -> Counter[str]:
        """How many tasks are in each state."""
        with self._guard:
            self._update(False)
            return Counter(r.status for r in self._rows.values())

    def _update(self, full: bool) -> None:
        for key, doc in self._feed.changes(full):
            name = key.rpartition("/")[2]
            if isinstance(doc, Doc):
                self._rows[name] = _row(doc.value)
            else:
                self._rows.pop(name, None)


def index(bus: Bus) -> WaitingIndex:
    """The index of this process."""
    found = bus.memo.get("waiting")
    if found is None:
        found = bus.memo.setdefault("waiting", WaitingIndex(bus.store.feed("waiting")))
    return found  # type: ignore[no-any-return]


def advance_due(bus: Bus, full: bool = False) -> list[str]:
    """Moves on every task whose time has come; `full` also asks again for those that wait for others. Ids that
    moved.
    """
    names = set(index(bus).due(bus.now(), full))
    if full:
        names |= set(index(bus).all_waiting())
    return [n for n in sorted(names) if advance(bus, n)]


def advance_dependents(bus: Bus, task_id: str) -> None:
    """Looks again at every task that waits for one that has just ended."""
    for name in index(bus).depending_on(task_id):
        advance(bus, name)


def advance(bus: Bus, task_id: str) -> bool:
    """Puts one waiting task where it belongs now; False if it stays, or somebody else was first or holds its lock."""
    try:
        return _advance(bus, task_id)
    except BusError as error:
        if error.code != "busy":
            raise
        return False


def _advance(bus: Bus, task_id: str) -> bool:
    try:
        found = find.read(bus, f"waiting/{task_id}")
    except Unreadable:
        return False
    if found is None:
        return False
    if found.doc.key != place(found.task):
        return find.put_free_in_place(bus, found).doc.key != found.doc.key
    if found.task.status not in (SCHEDULED, WAITING):
        return False
    status, reason = dependency.readiness(found.task, find.outcomes(bus, found.task), bus.now())
    if status == found.task.status:
        return False
    task = follow(found.task, "come_due", status, "bus", bus.now(), reason, reason=reason)
    try:
        doc = bus.store.replace(found.doc, task.value())
    except Stale:
        return False
    find.put_in_place(bus, Found(doc, task))
    if status == BLOCKED:
        record(bus, "task.blocked", task, reason=reason)
    return True


def _is_due(row: _Row, moment: float) -> bool:
    if row.status == SCHEDULED:
        return row.due <= moment
    return row.status not in (WAITING, "blocked", "in_review")


def _row(value: dict[str, Any]) -> _Row:
    needs = tuple(str(d.get("task", "")) for d in value.get("depends_on") or [] if isinstance(d, dict))
    try:
        due = parse_stamp(str(value.get("not_before", ""))).timestamp()
    except ValueError:
        due = 0.0
    return _Row(str(value.get("status", "")), due, needs)
