"""Obsidian's settings that hide the notes of the bus, or show them wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agent_bus.doctor.seen import ADVICE, ERROR, WARN, Seen
from agent_bus.notes import obsidian, plan, template
from agent_bus.notes.dashboard import language_of
from agent_bus.notes.place import SETTINGS


def look(vault: Path, root: Path) -> Iterator[Seen]:
    """Bases, excluded files, property types, and whether the template is the newest."""
    if obsidian.core_plugin(vault, "bases") is False:
        yield Seen("bases_off", ERROR, f"{SETTINGS}/core-plugins.json")
    yield from _excluded(vault, root)
    ours = template.shipped()
    for name in obsidian.other_types(vault, ours.settings(root.name)):
        yield Seen("types", WARN, obsidian.TYPES, values={"name": name})
    if old := list(plan.older(ours, root, language_of(root) or template.LANGUAGES[0])):
        yield Seen("template", ADVICE, root.name, "older", {"names": ", ".join(old[:5]), "vault": vault})


def _excluded(vault: Path, root: Path) -> Iterator[Seen]:
    app = obsidian.read(vault, "app.json")
    filters = app.get("userIgnoreFilters") if isinstance(app, dict) else None
    base = root.relative_to(vault).as_posix()
    for one in filters if isinstance(filters, list) else []:
        if any(_covers(str(one), f"{base}/{folder}/x.md") for folder in ("notes", "notes/tasks", "rooms")):
            yield Seen("excluded", ERROR, f"{SETTINGS}/app.json", values={"filter": one})


def _covers(filter: str, path: str) -> bool:
    """Whether a filter of Obsidian's "Excluded files" hides a path: `/…/` is a regular expression, else a prefix."""
    if len(filter) > 2 and filter[0] == filter[-1] == "/":
        try:
            return re.search(filter[1:-1], path) is not None
        except re.error:  # written for another engine
            return False
    return bool(filter) and path.startswith(filter)
