"""Obsidian's own settings of a vault: read for the doctor, and edited only where a person asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from agent_bus.errors import invalid
from agent_bus.notes.place import SETTINGS

TYPES = f"{SETTINGS}/types.json"
BOOKMARKS = f"{SETTINGS}/bookmarks.json"


@dataclass(frozen=True)
class Edit:
    """A settings file's new content.

    Args:
        path: the file in the vault.
        was: its bytes now, None without one.
        data: its bytes then.
    """

    path: str
    was: bytes | None
    data: bytes


def edits(vault: Path, ours: dict[str, bytes]) -> tuple[list[Edit], list[str]]:
    """What our property types and bookmarks change in a vault's settings, and the properties whose other type stays.

    Args:
        vault: the vault.
        ours: the files of the template's `.obsidian`.

    Raises:
        BusError: `invalid` for a file that is not what Obsidian writes.
    """
    found, kept = [], []
    for path, change in ((TYPES, _with_types), (BOOKMARKS, _with_bookmarks)):
        was = (vault / path).read_bytes() if (vault / path).exists() else None
        old = _object(path, was)
        fresh, other = change(old, json.loads(ours[path]))
        kept += other
        if fresh != old:
            data = json.dumps(fresh, indent=2, ensure_ascii=False).encode() + b"\n"
            found.append(Edit(path, was, data))
    return found, kept


def runs() -> bool:
    """Whether Obsidian runs: it keeps its settings in memory and would write over ours."""
    names = (process.info["name"] or "" for process in psutil.process_iter(["name"]))
    return any(name.casefold().startswith("obsidian") for name in names)


def other_types(vault: Path, ours: dict[str, bytes]) -> list[str]:
    """Our properties that have another type in the vault."""
    found = read(vault, "types.json")
    return _with_types(found, json.loads(ours[TYPES]))[1] if found else []


def core_plugin(vault: Path, id: str) -> bool | None:
    """Whether a core plugin is on; None if the vault does not say. Old versions have a list of those that are on."""
    found = read(vault, "core-plugins.json")
    if isinstance(found, list):
        return id in found
    value = found.get(id) if isinstance(found, dict) else None
    return value if isinstance(value, bool) else None


def read(vault: Path, name: str) -> Any:
    """One of Obsidian's settings files, {} if it is not there or cannot be read."""
    try:
        return json.loads((vault / SETTINGS / name).read_bytes())
    except (OSError, ValueError):
        return {}


def _object(path: str, data: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(data) if data and data.strip() else {}
    except ValueError as error:
        raise invalid(path, f"cannot be read ({error})", "Mend or remove it; nothing was written.") from None
    if not isinstance(found, dict):
        raise invalid(path, "must hold an object", "Mend or remove it; nothing was written.")
    return found


def _with_types(old: dict[str, Any], ours: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    types = old.get("types", {}) if isinstance(old, dict) else {}
    types = types if isinstance(types, dict) else {}
    wanted = {name: kind for name, kind in ours["types"].items() if name.startswith("ab_")}
    fresh = wanted | types
    return {**old, "types": {**types, **fresh}}, sorted(name for name in wanted if fresh[name] != wanted[name])


def _with_bookmarks(old: dict[str, Any], ours: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    items = old.get("items", [])
    items = items if isinstance(items, list) else []
    there = set(_paths(items))
    missing = [item for item in ours["items"] if not set(_paths([item])) <= there]
    return ({**old, "items": [*items, *missing]} if missing else old), []


def _paths(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            yield from [str(item["path"])] if "path" in item else []
            yield from _paths(item.get("items") or [])
