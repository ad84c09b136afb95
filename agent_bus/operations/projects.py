"""Projects: several workspaces with one board. Moving a workspace's entries to a project, and back.

The move is repeatable: each target entry notes, in `origin`, up to which version of which board it has taken in.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import board, place
from agent_bus.errors import BusError
from agent_bus.operations import boards, quiet, workspaces
from agent_bus.operations.boards import BOARD, Place
from agent_bus.store.port import Doc, Exists, Stale

_TRIES = 20


def create(bus: Bus, name: str) -> dict[str, Any]:
    """A new project."""
    value = {"projectId": "", "name": place.check_name(name), "created_at": bus.stamp(), "archived_at": ""}
    while True:
        fresh = f"p_{bus.token()[:12]}"
        with suppress(Exists):
            return bus.store.create(f"{workspaces.PROJECTS}/{fresh}", {**value, "projectId": fresh}).value


def migrate(bus: Bus, workspace: str, project: str) -> tuple[int, str]:
    """Moves a workspace's board under a project; what was written meanwhile comes along. Repeating finishes it.

    The source stays as it is. Returns how many entries were taken over, and the workspace's id.

    Raises:
        BusError: `conflict` if the workspace belongs to another project, `not_found` without the project.
    """
    workspaces.project(bus, project)
    found = workspaces.resolve(bus, workspace, note=True)
    if other := {found.project, found.migrating} - {"", project}:
        rule = f"the workspace {found.id} belongs to {other.pop()}"
        raise BusError("conflict", f"{rule}, not to {project}.", "Detach it first: agent-bus project detach.")
    key = f"{workspaces.WORKSPACES}/{found.id}"
    if not found.project:
        workspaces.change(bus, key, migrating=project)
    source, target = _place(found.id), _place(project)
    moved = _copy(bus, source, target)
    # Writers look at this document after their write: one that still sees no project is seen by the second copy.
    workspaces.change(bus, key, project=project, migrating="")
    return len(moved | _copy(bus, source, target)), found.id


def detach(bus: Bus, workspace: str) -> list[str]:
    """Takes a workspace out of its project; its own board is as it was before. Its id, [] if it was in none."""
    found = workspaces.resolve(bus, workspace, note=False)
    if not (found.project or found.migrating):
        return []
    workspaces.change(bus, f"{workspaces.WORKSPACES}/{found.id}", project="", migrating="")
    return [found.id]


def rename(bus: Bus, project: str, name: str) -> dict[str, Any]:
    """Another name for a project."""
    workspaces.project(bus, project)
    return workspaces.change(bus, f"{workspaces.PROJECTS}/{project}", name=place.check_name(name))


def archive(bus: Bus, project: str) -> list[str]:
    """Hides a project and takes all workspaces out of it; their ids."""
    doc = workspaces.project(bus, project)
    if not doc.value.get("archived_at"):
        workspaces.change(bus, doc.key, archived_at=bus.stamp())
    members = [d for d in workspaces.listed(bus) if project in (d.value.get("project"), d.value.get("migrating"))]
    for one in members:
        workspaces.change(bus, one.key, project="", migrating="")
    return [one.name for one in members]


def _place(owner: str) -> Place:
    return Place(f"{BOARD}/{owner}", owner, f"@board/{owner}")


def _copy(bus: Bus, source: Place, target: Place) -> set[str]:
    """Takes over what the target has not taken in yet; the names of those entries."""
    docs = bus.store.list(f"{source.folder}/entries")
    return {d.name for d in docs if _take_in(bus, source, target, d)}


def _take_in(bus: Bus, source: Place, target: Place, doc: Doc) -> bool:
    key, board_id = str(doc.value.get("key", "")), source.scope
    upto = board.version_of(doc.value)
    with bus.store.lock(doc.name):
        for _ in range(_TRIES):
            old = quiet.get(bus, target.entry(key))
            seen = _origin(old).get(board_id, 0)
            if seen >= upto:
                return False
            kept = bus.store.list(source.history(key))
            new = [d.value for d in kept if seen < board.version_of(d.value) < upto] + [doc.value]
            with suppress(Exists, Stale):
                _join(bus, target, key, old, new, {**_origin(old), board_id: upto})
                return True
    raise BusError("busy", f"the key {key[:80]!r} is being written by others.", "Repeat the command.")


def _join(
    bus: Bus, target: Place, key: str, old: Doc | None, new: list[dict[str, Any]], origin: dict[str, int]
) -> None:
    """Puts versions behind those of the target; the newest by time becomes the entry, all others its history.

    A kill on the way leaves history above the entry's version, which the next write or the repeated move takes over.
    """
    if old is None:
        for value in new[:-1]:
            boards.keep(bus, target, key, value)
        bus.store.create(target.entry(key), {**new[-1], "origin": origin})
        return
    first = board.version_of(old.value)
    numbered = [{**value, "version": first + n} for n, value in enumerate(new, 1)]
    if str(old.value.get("ts", "")) > str(new[-1].get("ts", "")):
        numbered.append({**old.value, "version": first + len(new) + 1})
    for value in numbered[:-1]:
        boards.keep(bus, target, key, value)
    boards.swap(bus, target, key, old, {**old.value, **numbered[-1], "origin": origin})


def _origin(doc: Doc | None) -> dict[str, int]:
    found = doc.value.get("origin") if doc else None
    return dict(found) if isinstance(found, dict) else {}
