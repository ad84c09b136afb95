"""Carrying out edits in the files of a user, and taking them out again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bus.clients import Home, files, manifest
from agent_bus.clients.edits import Change, Edit, Known
from agent_bus.clients.entries import REMOVED, UNCHANGED
from agent_bus.clients.hunks import decode, encode, without
from agent_bus.clients.manifest import Manifest, Record, digest
from agent_bus.clients.role_edits import KEPT
from agent_bus.clients.roles.known import unchanged
from agent_bus.errors import BusError

REFUSED = "refused"
_HOT_ROUNDS = 3
_HOT_PAUSE_S = 1.0


@dataclass(frozen=True)
class Site:
    """Whose files may be changed, and how.

    Args:
        home: the user's.
        project: the project's folder, None for none.
        manifest: what we know of earlier changes.
        force: follow links out of home and project.
        dry: plan only.
        pause: sleeps; seconds.
    """

    home: Home
    project: Path | None
    manifest: Manifest
    force: bool = False
    dry: bool = False
    pause: Callable[[float], None] = time.sleep

    def within(self) -> list[Path]:
        """The folders that a file of this user may lie in."""
        return [self.home.folder, *([self.project] if self.project else [])]


@dataclass(frozen=True)
class Done:
    """What became of one edit. `before` and `after` are for a diff; `error` says why nothing was done."""

    path: Path
    what: str
    before: bytes | None = None
    after: bytes | None = None
    backup: Path | None = None
    note: str = ""
    error: BusError | None = None


def put(edit: Edit, holder: str, site: Site, hot: bool = False) -> Done:
    """Puts one thing into its file.

    Args:
        holder: who wants it there, `<client>:<scope>`.
        hot: whether a running client may write the file from what it read before; then it is looked at once more.
    """
    done = _put(edit, f"{holder}:{edit.name}", site)
    for _ in range(_HOT_ROUNDS if hot and not site.dry and done.error is None and done.what != UNCHANGED else 0):
        site.pause(_HOT_PAUSE_S)
        again = _put(edit, f"{holder}:{edit.name}", site)
        if again.what == UNCHANGED:
            break
        done = replace(again, before=done.before, backup=done.backup or again.backup)
    return done


def take(edits: Sequence[Edit], holder: str, site: Site) -> list[Done]:
    """Takes the things of one holder out of their files; a file is byte for byte as it was if nobody else changed it.

    Returns:
        What became of each file, in the order of the edits.
    """
    by_path: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    done, folders = [], list[Path]()
    for path, group in by_path.items():
        try:
            real = files.target(path, site.within(), site.force)
            record = site.manifest.get(real)
            done.append(_take(group, holder, site, real, record))
        except BusError as error:
            done.append(Done(path, REFUSED, error=error))
            continue
        if done[-1].after is None and record and not site.dry:
            folders += map(Path, record.folders)
    files.remove_empty(folders)  # of all files together: one may have made the folder that another is the last in
    return done


def _put(edit: Edit, holder: str, site: Site) -> Done:
    changes: list[Change] = []
    record: Record | None = None

    def plan(before: bytes | None) -> bytes | None:
        changes.append(edit.put(before, _known(record)))
        return changes[-1].after

    try:
        path = files.target(edit.path, site.within(), site.force)
        record = site.manifest.get(path)
        done = _written(
            path, plan, site.dry, edit.private, lambda now: not (record and record.made and _intact(record, now))
        )
    except BusError as error:
        return Done(edit.path, REFUSED, error=error)
    change = changes[-1]
    note = change.note
    if change.beside and not site.dry:
        note = _put_beside(edit, change.beside) or note
    elif not site.dry and edit.name and (edit.signed or change.what != UNCHANGED):
        note = _remember(site.manifest, done, change, holder) or note
    return Done(edit.path, change.what, done.before, done.after, done.backup, note)


def _written(
    path: Path, plan: Callable[[bytes | None], bytes | None], dry: bool, private: bool, keep: Callable[[bytes], bool]
) -> files.Written:
    if dry:
        before = files.read(path)
        return files.Written(path, before, plan(before))
    return files.change(path, plan, private, keep)


def _remember(records: Manifest, done: files.Written, change: Change, holder: str) -> str:
    """Notes it in the manifest; the key of a message if that cannot be written."""
    known = records.get(done.path)
    if change.what == UNCHANGED and known and holder in known.holders:
        return ""
    fresh = manifest.after(known, done, change, holder)
    return _keep(records, fresh)


def _put_beside(edit: Edit, text: str) -> str:
    """The text that a user may take over by hand, beside the file that stays; the key of a message if it cannot be."""
    try:
        files.change(_beside(edit.path), lambda now: encode(text, str(edit.path)), edit.private, lambda now: False)
    except BusError:
        return "clients.note.not_beside"
    return ""


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _known(record: Record | None) -> Known:
    return Known(record.made, record.texts) if record else Known()


def _keep(records: Manifest, record: Record) -> str:
    try:
        records.put(record)
    except OSError:
        return "clients.note.no_manifest"
    return ""


def _take(edits: Sequence[Edit], holder: str, site: Site, path: Path, record: Record | None) -> Done:
    left = tuple(one for one in record.holders if not one.startswith(f"{holder}:")) if record else ()
    shared = {one.rpartition(":")[2] for one in left}
    mine = [edit for edit in edits if edit.signed or (record and f"{holder}:{edit.name}" in record.holders)]
    going = [edit for edit in mine if edit.name not in shared]
    notes = ["clients.note.shared"] if len(going) < len(mine) else []

    def plan(now: bytes | None) -> bytes | None:
        if now is not None and not left and record and (whole := _as_it_was(record, now)) is not None:
            return None if record.made and not whole.strip() else whole
        for edit in going:
            if now is not None:
                change = edit.take(now, _known(record))
                now = change.after
                notes.extend([change.note] if change.note else [])
        return now

    done = _written(path, plan, site.dry, True, lambda now: left != () or not record or _as_it_was(record, now) is None)
    if record and not site.dry:
        changed = replace(record, sha256=digest(done.after or b""), spans=None) if done.after != done.before else record
        notes.extend(filter(None, [_keep(site.manifest, replace(changed, holders=left))]))
    if not site.dry:
        _drop_beside(path)
    what = REMOVED if done.before != done.after else KEPT if notes else UNCHANGED
    return Done(edits[0].path, what, done.before, done.after, done.backup, notes[-1] if notes else "")


def _drop_beside(path: Path) -> None:
    """Removes what we put beside a file, unless somebody made it theirs."""
    with suppress(BusError):
        files.change(_beside(path), _without_ours, True, lambda now: False)


def _without_ours(now: bytes | None) -> bytes | None:
    if now is None or unchanged(now.decode("utf-8", "replace")) or unchanged(now.decode("utf-8", "replace").rstrip()):
        return None
    return now


def _as_it_was(record: Record, now: bytes) -> bytes | None:
    """The file without our text; None if somebody else changed it since."""
    if record.spans is None or not _intact(record, now):
        return None
    return encode(without(decode(now, record.path), record.spans), record.path)


def _intact(record: Record, now: bytes) -> bool:
    """Whether a file is as we left it."""
    return record.sha256 == digest(now)
