"""What we put into which file of this machine: `.bus/clients/<host>/<8 hex of the path>.json`.

With it a file is given back byte for byte. Nothing depends on it: without, an entry is known by what it starts.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic_core import from_json, to_json

from agent_bus import host
from agent_bus.clients.edits import Change
from agent_bus.clients.entries import UNCHANGED
from agent_bus.clients.files import Written
from agent_bus.clients.hunks import Span, track
from agent_bus.clients.roles.known import digest as text_digest
from agent_bus.store import atomic
from agent_bus.store.layout import Layout

SCHEMA = 1
_TEXTS = 20


@dataclass(frozen=True)
class Record:
    """One file.

    Args:
        path: the file, links followed.
        made: whether there was no file before us.
        folders: the folders that we made for it.
        sha256: of the whole file, as we left it.
        spans: where text of ours stands in it (characters); None once more than that was changed.
        holders: what of which client stands there, `<client>:<scope>:<what>`.
        texts: digests of the whole texts, files and blocks, that we put there.
    """

    path: str
    made: bool = False
    folders: tuple[str, ...] = ()
    sha256: str = ""
    spans: tuple[Span, ...] | None = ()
    holders: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class Manifest:
    """The records of one bus folder for this host.

    Args:
        layout: the bus; None if there is none, then nothing is kept.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._layout = layout if layout and layout.state.is_dir() else None

    def get(self, path: Path) -> Record | None:
        """The record of a file; None without one that can be read."""
        file = self._file(path)
        return _read(file) if file else None

    def all(self) -> list[Record]:
        """Every record of this host."""
        folder = self._folder()
        found = [_read(file) for file in sorted(folder.glob("*.json"))] if folder else []
        return [record for record in found if record is not None]

    def put(self, record: Record) -> None:
        """Writes a record; one without holders goes.

        Raises:
            OSError: the bus folder cannot be written.
        """
        file = self._file(Path(record.path))
        if file is None or self._layout is None:
            return
        if not record.holders:
            file.unlink(missing_ok=True)
            return
        atomic.make_folder(str(file.parent), False)
        data = to_json({"schema": SCHEMA, **asdict(record)}, indent=2)
        atomic.put_file(str(self._layout.state / "tmp"), str(file), data, True)

    def _folder(self) -> Path | None:
        return self._layout.state / "clients" / host.host_id() if self._layout else None

    def _file(self, path: Path) -> Path | None:
        folder = self._folder()
        return folder / f"{digest(os.fsencode(path))[:8]}.json" if folder else None


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def after(known: Record | None, done: Written, change: Change, holder: str) -> Record:
    """The record of a file after something of ours was put there.

    Args:
        known: the record before.
        done: what was written.
        change: what was planned.
        holder: who wants it there, and what it is.
    """
    hunks = None if change.what == UNCHANGED and not known else change.hunks
    texts = [text_digest(change.text)] if change.text else []
    old = known or Record(str(done.path), made=done.before is None)
    intact = known is None or (done.before is not None and known.sha256 == digest(done.before))
    spans = track(old.spans, hunks) if intact and hunks is not None else None
    return replace(
        old,
        folders=tuple(dict.fromkeys([*old.folders, *map(str, done.folders)])),
        sha256=digest(done.after or b""),
        spans=tuple(spans) if spans is not None else None,
        holders=tuple(dict.fromkeys([*old.holders, holder])),
        texts=tuple(dict.fromkeys([*old.texts, *texts]))[-_TEXTS:],
    )


def _read(file: Path) -> Record | None:
    try:
        found = from_json(file.read_bytes())
        spans = found["spans"]
        return Record(
            str(found["path"]),
            bool(found["made"]),
            tuple(map(str, found["folders"])),
            str(found["sha256"]),
            None if spans is None else tuple((int(a), int(size)) for a, size in spans),
            tuple(map(str, found["holders"])),
            tuple(map(str, found.get("texts", []))),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
