"""Workspaces and projects as documents: `.bus/workspaces/<ws>`, `.bus/projects/<p>`.

Which project a workspace belongs to stands in the workspace's document alone, so that it has one owner at most.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import place
from agent_bus.errors import BusError, invalid
from agent_bus.operations import quiet
from agent_bus.store.port import Doc, Exists, Stale

WORKSPACES = ".bus/workspaces"
PROJECTS = ".bus/projects"
_TRIES = 20
_HINT = "Pass the absolute path of your project's folder as workspace."


@dataclass(frozen=True)
class Workspace:
    """A workspace as its document says; one that has none yet was never written to."""

    id: str
    cwd: str
    project: str = ""
    migrating: str = ""

    @property
    def owner(self) -> str:
        """What its records stand under: the project's id, else its own."""
        return self.project or self.id


def resolve(bus: Bus, given: str, note: bool) -> Workspace:
    """The workspace that a call means: the parameter, else the setting; never the folder the server runs in.

    Args:
        given: an absolute path, an id, or "".
        note: True for calls that write: the first use is noted.

    Raises:
        BusError: `invalid` without one or for a relative path, `not_found` for an unknown id.
    """
    text = given or bus.settings.workspace
    if not text:
        raise invalid("workspace", "is missing, and none is set for this server", _HINT)
    if place.is_workspace_id(text):
        found = read(bus, text)
        if found is None:
            raise BusError("not_found", f"there is no workspace {text}.", _HINT)
        return found
    path = normal(text)
    name = place.workspace_id(path)
    found = read(bus, name)
    if found is None and note:
        with suppress(Exists):
            base = os.path.basename(path) or path
            value = {"id": name, "cwd": path, "name": base, "project": "", "created_at": bus.stamp()}
            bus.store.create(f"{WORKSPACES}/{name}", value)
        found = read(bus, name)
    return found or Workspace(name, path)


def normal(text: str) -> str:
    """A path in the form that is compared: absolute, links resolved, folded where the file system ignores case.

    Raises:
        BusError: `invalid` for a relative one, or none at all.
    """
    if not os.path.isabs(text) or "\0" in text:
        raise invalid("workspace", f"must be an absolute path or ws_…, got {text[:60]!a}", _HINT)
    path = os.path.realpath(text)
    return path.casefold() if _ignores_case(path) else path


def read(bus: Bus, name: str) -> Workspace | None:
    """The workspace of an id, None if it was never used."""
    doc = quiet.get(bus, f"{WORKSPACES}/{name}")
    return None if doc is None else _of(doc)


def members(bus: Bus, found: Workspace) -> list[str]:
    """What a workspace's records stand under, the place of new ones first: its project and all workspaces of that."""
    if not found.project:
        return [found.id]
    return [found.project, *(d.name for d in listed(bus) if d.value.get("project") == found.project)]


def listed(bus: Bus) -> Iterator[Doc]:
    """The documents of all workspaces."""
    return bus.store.list(WORKSPACES)


def listed_projects(bus: Bus) -> list[Doc]:
    """The documents of the projects that are not archived."""
    return [doc for doc in bus.store.list(PROJECTS) if not doc.value.get("archived_at")]


def project(bus: Bus, name: str) -> Doc:
    """The document of a project.

    Raises:
        BusError: `not_found`.
    """
    doc = quiet.get(bus, f"{PROJECTS}/{name}") if place.is_project_id(name) else None
    if doc is None:
        raise place.no_project(name)
    return doc


def change(bus: Bus, key: str, **changes: Any) -> dict[str, Any]:
    """Changes fields of a workspace or project that is there.

    Raises:
        BusError: `busy` if others keep changing it, `not_found` if it has gone.
    """
    for _ in range(_TRIES):
        doc = quiet.get(bus, key)
        if doc is None:
            raise BusError(
                "not_found", f"there is no document {key.rpartition('/')[2]}.", "moa_projects_list shows all."
            )
        with suppress(Stale):
            return bus.store.replace(doc, {**doc.value, **changes}).value
    raise BusError("busy", f"{key.rpartition('/')[2]} is being changed by others.", "Try again in a moment.")


def _of(doc: Doc) -> Workspace:
    value = doc.value
    return Workspace(
        doc.name, str(value.get("cwd", "")), str(value.get("project") or ""), str(value.get("migrating") or "")
    )


def _ignores_case(path: str) -> bool:
    """Whether the other spelling of the nearest folder that is there means the same folder."""
    here = path
    while not os.path.exists(here) and os.path.dirname(here) != here:
        here = os.path.dirname(here)
    other = here.swapcase()
    try:
        return other != here and os.path.samefile(here, other)
    except OSError:
        return False
