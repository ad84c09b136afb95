"""Tips as documents: `.bus/tips/<project or workspace>/<id>`. Those of all workspaces of a project are its tips."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import tip
from agent_bus.errors import BusError, invalid
from agent_bus.operations import quiet, workspaces
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

PREFIX = ".bus/tips"
_ID = re.compile(r"tip_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_TRIES = 20


def create(bus: Bus, workspace: str, fields: dict[str, Any], status: str, author: str) -> Doc:
    """A new tip of a workspace; errors as `tip.create`."""
    owner = workspaces.resolve(bus, workspace, note=True).owner
    while True:
        name = f"tip_{uuid.uuid4()}"
        made = tip.create(name, fields, status, author, bus.stamp())
        with suppress(Exists):
            return bus.store.create(f"{PREFIX}/{owner}/{name}", made)


def find(bus: Bus, workspace: str, name: str) -> Doc:
    """A tip of a workspace.

    Raises:
        BusError: `invalid` for what is no id, `not_found`, `corrupt` for a file that cannot be read.
    """
    if not _ID.fullmatch(name):
        raise invalid("id", f"must be a tip's id, got {name[:50]!a}", "moa_tip_list shows them.")
    for owner in _owners(bus, workspace):
        key = f"{PREFIX}/{owner}/{name}"
        try:
            doc = bus.store.get(key)
        except Unreadable as error:
            raise _corrupt(name, error.reason) from None
        if doc is not None:
            if not tip.is_tip(doc.value):
                raise _corrupt(name, "fields are missing")
            return doc
    raise BusError("not_found", f"there is no tip {name} in this workspace.", "moa_tip_list shows them.")


def listed(bus: Bus, workspace: str) -> tuple[list[Doc], list[str]]:
    """The tips of a workspace, newest first, and the ids of those that cannot be read."""
    docs: list[Doc] = []
    corrupt: list[str] = []
    for key in (k for owner in _owners(bus, workspace) for k in bus.store.keys(f"{PREFIX}/{owner}")):
        doc = quiet.get(bus, key)
        if doc is not None and tip.is_tip(doc.value):
            docs.append(doc)
        elif doc is not None or bus.store.exists(key):
            corrupt.append(key.rpartition("/")[2])
    return sorted(docs, key=lambda d: (d.value["updatedAt"], d.name), reverse=True), corrupt


def change(bus: Bus, workspace: str, name: str, step: Callable[[Doc], dict[str, Any] | None]) -> Doc:
    """Changes a tip: two who change different fields at once both win.

    Args:
        step: the next value of what is there now; None = it is as it should be.

    Raises:
        BusError: as `find`, what the step raises, `busy`.
    """
    with bus.store.lock(name):
        for _ in range(_TRIES):
            doc = find(bus, workspace, name)
            value = step(doc)
            if value is None:
                return doc
            with suppress(Stale):
                return bus.store.replace(doc, value)
    raise BusError("busy", f"the tip {name} is being written by others.", "Try again in a moment.")


def _owners(bus: Bus, workspace: str) -> list[str]:
    return workspaces.members(bus, workspaces.resolve(bus, workspace, note=False))


def _corrupt(name: str, why: str) -> BusError:
    return BusError("corrupt", f"the tip {name} cannot be read ({why}).", "Mend its file, or take it away.")
