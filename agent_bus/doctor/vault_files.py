"""The files in the bus folder: copies of conflicts, names, placeholders, markers, links, and how many there are."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from agent_bus.doctor.seen import ADVICE, ERROR, WARN, Seen
from agent_bus.doctor.sync import CONFLICT, MOST_FILES
from agent_bus.domain import notes
from agent_bus.domain.notes import BrokenNote
from agent_bus.notes import names
from agent_bus.notes.place import SETTINGS
from agent_bus.notes.settled import is_placeholder

MIRRORS, VISIBLE, PATHS = 2000, 5000, 20
"""Most files that the bus writes for people; most that the app has to look at; most paths in one finding."""
_OURS = ("notes", "rooms", "chains")
_NOTES = (".md", ".base", ".canvas")


@dataclass
class _Found:
    """What one walk through the folder gathers, as paths in it."""

    files: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)


def look(root: Path) -> Iterator[Seen]:
    """Every finding about files; placeholders are not opened."""
    found = _walk(root)
    mirrors = [path for path in found.files if path.startswith(tuple(f"{folder}/" for folder in _OURS))]
    if len(mirrors) > MIRRORS:
        yield Seen("mirror_budget", ERROR, root.name, values={"count": len(mirrors), "most": MIRRORS})
    if len(found.files) > VISIBLE:
        yield Seen("visible_files", WARN, root.name, values={"count": len(found.files), "most": VISIBLE})
    yield from _some("copies", "", [path for path in found.files if CONFLICT.search(path)])
    yield from _names([path for path in found.files if path.endswith(_NOTES)])
    yield from _some("placeholders", "", found.waiting)
    yield from _some("markers", "", [path for path in mirrors if _is_broken(root, path, found.waiting)])
    yield from _some("links", "link", found.links)
    yield from _some("links", "nested", found.nested)
    if offered := [path for path in found.files if ".new." in path]:
        yield Seen("template", ADVICE, offered[0], "offered", {"paths": ", ".join(offered[:PATHS])})


def _walk(root: Path) -> _Found:
    found = _Found()
    for entry in islice(_entries(root), MOST_FILES):
        path = Path(entry.path).relative_to(root).as_posix()
        if entry.is_symlink():
            found.links.append(path)
        elif entry.is_dir():
            found.nested += [path] if entry.name == SETTINGS else []
        elif entry.name.startswith(".") and entry.name.endswith(".icloud"):
            found.waiting.append(path)
        elif not entry.name.startswith("."):
            found.files.append(path)
            found.waiting += [path] if is_placeholder(entry.stat(follow_symlinks=False)) else []
    return found


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All files and folders below a folder in order; not into links, and not into the machine's side."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name == ".bus":
            continue
        yield entry
        if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode) and entry.name != SETTINGS:
            yield from _entries(Path(entry.path))


def _names(paths: list[str]) -> Iterator[Seen]:
    bad = {path: fault for path in paths if (fault := names.fault(path.rpartition("/")[2]))}
    if bad:
        path, fault = next(iter(bad.items()))
        yield Seen("names", WARN, path, "bad", {"count": len(bad), "rule": fault})
    counts = Counter(map(names.same, paths))
    yield from _some("names", "same", [path for path in paths if counts[names.same(path)] > 1])


def _is_broken(root: Path, path: str, waiting: list[str]) -> bool:
    if not path.endswith(".md") or path in waiting:
        return False
    try:
        notes.regions(notes.split((root / path).read_text(encoding="utf-8", errors="replace")).body)
    except BrokenNote:
        return True
    except OSError:
        return False
    return False


def _some(id: str, case: str, paths: list[str]) -> Iterator[Seen]:
    if paths:
        yield Seen(id, WARN, paths[0], case, {"count": len(paths), "paths": ", ".join(paths[:PATHS])})
