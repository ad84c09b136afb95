"""What a client may suggest where an agent, a task or a key is asked for; the likeliest first."""

from __future__ import annotations

from agent_bus.bus import Bus
from agent_bus.operations import agents, listing

ENOUGH_TASKS = 1000
"""Older ended tasks are suggested only as long as there are fewer than that: nobody looks for them by their id."""


def agent_names(bus: Bus) -> list[str]:
    """The agents that the bus knows."""
    return agents.known_agents(bus)


def task_ids(bus: Bus) -> list[str]:
    """Task ids, newest first: all that have not ended, and the last ones that have."""
    found = {key.rpartition("/")[2] for key in listing.keys(bus, "", "")}
    for month in sorted(bus.store.folders("archive"), reverse=True):
        if len(found) >= ENOUGH_TASKS:
            break
        found |= {key.rpartition("/")[2] for key in bus.store.keys(f"archive/{month}")}
    return sorted(found, reverse=True)


def reported_ids(bus: Bus) -> list[str]:
    """Ids of tasks whose report waits for a verdict, newest first."""
    return sorted((key.rpartition("/")[2] for key in bus.store.keys("reports/pending")), reverse=True)


def context_keys(bus: Bus) -> list[str]:
    """The keys of the shared context as they were first written."""
    return [str(doc.value.get("key", doc.name)) for doc in bus.store.list("shared_context")]
