"""Board entries: `<scope folder>/entries/<name>`, and `<scope folder>/history/<name>/<version>` for what they replaced.

A write is two steps under the lock of the entry's name: keep the present version, then swap the entry by comparison. A
kill between them leaves a kept copy of a version that is still the present one, which the next write takes over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import board, place
from agent_bus.errors import BusError
from agent_bus.operations import debates, quarantine, quiet, workspaces
from agent_bus.store.port import Doc, Exists, Feed, Stale, Unreadable

BOARD = ".bus/board"
_TRIES = 20


@dataclass(frozen=True)
class Place:
    """One board: where it lies, and what results call it."""

    folder: str
    scope: str
    channel: str
    task_id: str = ""
    workspace: str = ""

    def entry(self, key: str) -> str:
        """The document of a key."""
        return f"{self.folder}/entries/{board.file_name(key)}"

    def history(self, key: str) -> str:
        """Where the earlier versions of a key lie."""
        return f"{self.folder}/history/{board.file_name(key)}"


@dataclass(frozen=True, slots=True)
class Row:
    """What lists know of a live entry."""

    name: str
    key: str
    author: str
    ts: str
    tags: tuple[str, ...]
    bytes: int
    version: int

    @property
    def order(self) -> tuple[str, str]:
        """Its place in lists: by time, then by name."""
        return self.ts, self.name


class BoardIndex:
    """The live entries of one board without their values, kept by a feed."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._rows: dict[str, Row] = {}
        self._damaged: set[str] = set()
        self._guard = threading.Lock()

    def newest(self) -> tuple[list[Row], int]:
        """All rows, newest first, and how many entries cannot be read."""
        with self._guard:
            for key, doc in self._feed.changes(True):
                name = key.rpartition("/")[2]
                self._rows.pop(name, None)
                self._damaged.discard(name)
                if isinstance(doc, Unreadable):
                    self._damaged.add(name)
                elif doc is not None and board.is_live(doc.value):
                    self._rows[name] = _row(doc)
            return sorted(self._rows.values(), key=lambda r: r.order, reverse=True), len(self._damaged)


def find_place(bus: Bus, scope: str, workspace: str, note: bool = False) -> Place:
    """The board that a call means.

    Args:
        note: True for calls that write: a workspace's first use is noted.

    Raises:
        BusError: `invalid` for a scope or workspace that is none, `not_found` for a project or debate.
    """
    kind, name = place.read_scope(scope)
    if kind == "task":
        if note and debates.is_closed(bus, name):
            raise BusError("conflict", f"the debate {name} is closed.", "Its board can only be read now.")
        if not debates.exists(bus, name):
            raise BusError("not_found", f"there is no debate {name}.", "moa_init makes one.")
        return Place(f"{debates.folder(name)}/board", scope, name, task_id=name)
    if kind == "global":
        return Place(f"{BOARD}/global", scope, "@board/global")
    if kind == "project":
        workspaces.project(bus, name)
        return _of_owner(name)
    found = workspaces.resolve(bus, workspace, note)
    if note and found.migrating:
        hint = f"Try again in a moment; agent-bus project migrate {found.id} {found.migrating} ends what was cut short."
        raise BusError("busy", f"the workspace {found.id} is being moved to a project.", hint)
    return _of_owner(found.owner, found.id)


def read(bus: Bus, at: Place, key: str) -> dict[str, Any] | None:
    """The entry of a key as it stands on disk, a tombstone too; None if there is none, or it is damaged."""
    doc = quiet.get(bus, at.entry(key))
    return None if doc is None else doc.value


def write(
    bus: Bus,
    scope: str,
    workspace: str,
    key: str,
    author: str,
    value: str | None,
    tags: list[str],
    expected: int = 0,
    only_if_new: bool = False,
) -> tuple[Place, dict[str, Any] | None]:
    """Writes the next version of a key, or deletes it (value None).

    Returns:
        The board, and the entry as written; None if there was nothing to delete.

    Raises:
        BusError: as `find_place`; `conflict` for a version that was missed or a board that is closed; `busy`.
    """  # fmt: skip
    at = find_place(bus, scope, workspace, note=True)
    made = put(bus, at, key, author, value, tags, expected, only_if_new)
    # A workspace may have got a project since: whoever moves its entries either saw this write or we see the project.
    for _ in range(_TRIES):
        again = _moved(bus, at)
        if again is None:
            break
        at = again
        made = put(bus, at, key, author, value, tags)
    if made is not None:
        _tell(bus, at, made)
    return at, made


def put(
    bus: Bus,
    at: Place,
    key: str,
    author: str,
    value: str | None,
    tags: list[str],
    expected: int = 0,
    only_if_new: bool = False,
) -> dict[str, Any] | None:
    """One write to one board; see `write`."""  # fmt: skip
    target = at.entry(key)
    with bus.store.lock(target.rpartition("/")[2]):
        for _ in range(_TRIES):
            doc, after = _present(bus, at, key)
            old = doc.value if doc else None
            board.check_expected(old, key, expected, only_if_new)
            if value is None and not board.is_live(old):
                return None
            made = board.next_version(old, key, bus.now(), author, value, tags, after)
            with suppress(Exists, Stale):
                swap(bus, at, key, doc, made)
                return made
    raise BusError("busy", f"the key {key[:80]!r} is being written by others.", "Try again in a moment.")


def swap(bus: Bus, at: Place, key: str, doc: Doc | None, made: dict[str, Any]) -> None:
    """Keeps the present version, then puts another in its place; the caller holds the lock of the entry's name.

    Raises:
        Exists, Stale: somebody without the lock (a hand, an editor) was quicker.
    """
    if doc is None:
        bus.store.create(at.entry(key), made)
        return
    keep(bus, at, key, doc.value)
    bus.store.replace(doc, made)


def keep(bus: Bus, at: Place, key: str, value: dict[str, Any]) -> None:
    """Puts a version into the history. What stands there under its number and differs was left by a killed writer."""
    target = f"{at.history(key)}/{board.version_of(value):06d}"
    try:
        bus.store.create(target, value)
    except Exists:
        old = quiet.get(bus, target)
        if old is None:
            quarantine.put_aside(bus, target, "a damaged version of a board entry")
            bus.store.create(target, value)
        elif old.value != value:
            bus.store.replace(old, value)


def last_kept(bus: Bus, at: Place, key: str) -> int:
    """The highest version in the history, 0 without one."""
    names = [k.rpartition("/")[2] for k in bus.store.keys(at.history(key))]
    return max((int(n) for n in names if n.isdecimal()), default=0)


def index(bus: Bus, at: Place) -> BoardIndex:
    """The index of a board in this process."""
    name = f"board:{at.folder}"
    found = bus.memo.get(name)
    if found is None:
        found = bus.memo.setdefault(name, BoardIndex(bus.store.feed(f"{at.folder}/entries")))
    return found  # type: ignore[no-any-return]


def live(bus: Bus, at: Place, rows: Iterator[Row]) -> Iterator[dict[str, Any]]:
    """The entries of rows, as they are now; those that have gone are left out."""
    for row in rows:
        doc = quiet.get(bus, f"{at.folder}/entries/{row.name}")
        if doc is not None and board.is_live(doc.value):
            yield {**doc.value, "name": row.name}


def _present(bus: Bus, at: Place, key: str) -> tuple[Doc | None, int]:
    """The present document and, without one, the last version that was lost; a damaged file is put aside."""
    target = at.entry(key)
    try:
        doc = bus.store.get(target)
    except Unreadable as error:
        quarantine.put_aside(bus, target, error.reason)
        doc = None
    if doc is not None:
        return doc, 0
    kept = last_kept(bus, at, key)
    return None, kept + 1 if kept else 0  # the version after the last one kept is the one that is gone


def _moved(bus: Bus, at: Place) -> Place | None:
    """The board that the workspace has meanwhile, None if it is still this one."""
    if not at.workspace:
        return None
    found = workspaces.read(bus, at.workspace)
    now = _of_owner(found.owner, found.id) if found else at
    return None if now == at else now


def _of_owner(owner: str, workspace: str = "") -> Place:
    scope = f"project:{owner}" if place.is_project_id(owner) else owner
    return Place(f"{BOARD}/{owner}", scope, f"@board/{owner}", workspace=workspace)


def _row(doc: Doc) -> Row:
    value = doc.value
    tags = value.get("tags")
    return Row(
        doc.name,
        str(value.get("key", "")),
        str(value.get("author", "")),
        str(value.get("ts", "")),
        tuple(map(str, tags)) if isinstance(tags, list) else (),
        len(str(value.get("value", "")).encode()),
        board.version_of(value),
    )


def _tell(bus: Bus, at: Place, made: dict[str, Any]) -> None:
    line = {k: made[k] for k in ("key", "author", "ts", "version")}
    op = "delete" if made["deleted"] else "write"
    told = {"at": bus.stamp(), "event": "board.updated", "op": op, "scope": at.scope, "channel": at.channel}
    bus.journal.write(bus.now(), {**told, **line, "outcome": "ok"})
