"""What carries a vault to other devices, and what that needs (docs/obsidian.md "Sync")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_bus.doctor.seen import ADVICE, ERROR, WARN, Seen
from agent_bus.doctor.sync import FOLDERS, MARKS
from agent_bus.notes import obsidian
from agent_bus.store.layout import Layout

SYNC = "Obsidian Sync"
_MARKS = {**MARKS, ".git": "git", ".sync": "Resilio"}
_PLUGINS = {"obsidian-livesync": "LiveSync", "remotely-save": "Remotely Save", "obsidian-git": "git"}
_WHOLE = {"iCloud", "OneDrive", "Google Drive", "Nextcloud", "Resilio", "FreeFileSync"}
"""These upload a folder as it is, hidden folders too, and have no rule to leave one out that we could name."""
_OWN_ADVICE = {SYNC: "sync", "git": "git", "Syncthing": "syncthing", "Dropbox": "dropbox"}


def services(vault: Path, root: Path) -> list[str]:
    """The services at work on a vault, by folders' names, their marks, and Obsidian's settings."""
    found = [*_by_folder(root), *_by_settings(vault)]
    return list(dict.fromkeys(found))


def look(found: Sequence[str], layout: Layout) -> Iterator[Seen]:
    """What the services need; two at once undo one another's work."""
    where = layout.root.name
    if len(found) > 1:
        yield Seen("two_services", ERROR, where, values={"names": ", ".join(found)})
    for name in found:
        case = _OWN_ADVICE.get(name, "whole" if name in _WHOLE else "plugin")
        if case in ("sync", "plugin") or not layout.is_moved:
            yield Seen("service", ADVICE, where, case, {"name": name, "bus": where})
    if carriers := [name for name in found if name != SYNC]:
        yield Seen("json_synced", WARN, f"{where}/inbox", values={"names": ", ".join(carriers)})


def _by_folder(root: Path) -> Iterator[str]:
    for folder in (root, *root.parents):
        yield from (service for service, name in FOLDERS.items() if name.match(folder.name))
        if folder != Path.home():
            yield from (service for mark, service in _MARKS.items() if (folder / mark).exists())


def _by_settings(vault: Path) -> Iterator[str]:
    if obsidian.core_plugin(vault, "sync"):
        yield SYNC
    plugins = obsidian.read(vault, "community-plugins.json")
    yield from (service for id, service in _PLUGINS.items() if isinstance(plugins, list) and id in plugins)
