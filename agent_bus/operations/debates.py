"""Debates as documents: `.bus/debates/<id>/`."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.operations import workspaces

PREFIX = ".bus/debates"


def is_closed(bus: Bus, task_id: str) -> bool:
    """Whether a debate is over and its result is archived."""
    head = workspaces.get(bus, f"{PREFIX}/{task_id}/head")
    return head is not None and head.value.get("state") == "closed"


def open_ids(bus: Bus) -> list[str]:
    """The debates that are not closed, by name."""
    return [
        name
        for name in bus.store.folders(PREFIX)
        if bus.store.exists(f"{PREFIX}/{name}/setup") and not is_closed(bus, name)
    ]
