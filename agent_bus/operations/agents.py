"""Agents as the bus knows them: whoever has a status, an inbox or settings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

STATES = ("idle", "working", "waiting_for_review", "error", "stopped")


def known_agents(bus: Bus) -> list[str]:
    """Names of all agents, in order; the spelling first seen where there is a status."""
    names = {n: n for n in bus.store.folders("inbox")}
    names |= {ids.folder_of(n): n for n in bus.settings.agents}
    for doc in bus.store.list("status"):
        names[doc.name] = str(doc.value.get("agent") or doc.name)
    return [names[k] for k in sorted(names)]


def spelled(bus: Bus, name: str) -> str:
    """The name as its inbox is spelled: names that are equal after NFKC and casefold mean one agent."""
    folder = ids.folder_of(name)
    known = bus.store.folders("inbox")
    if folder in known:
        return name
    return next((k for k in known if ids.same_name(k, name) and ids.folder_of(k) != folder), name)


def status(bus: Bus, agent: str) -> Doc | None:
    """An agent's status document."""
    with suppress(Unreadable):
        return bus.store.get(f"status/{ids.folder_of(agent)}")
    return None


def set_status(bus: Bus, agent: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Writes an agent's status; the seed's keys first, others are kept. Not durable: the next call renews it."""
    for _ in range(50):
        doc = status(bus, agent)
        old = doc.value if doc else {}
        base = {
            "agent": old.get("agent") or agent,
            "state": "idle",
            "current_task_id": None,
            "last_updated": "",
            "last_completed_task": None,
        }
        value = {**base, **old, **changes, "last_updated": bus.stamp()}
        try:
            if doc is None:
                bus.store.create(f"status/{ids.folder_of(agent)}", value, durable=False)
            else:
                bus.store.replace(doc, value, durable=False)
            return value
        except (Exists, Stale):
            continue
    return value
