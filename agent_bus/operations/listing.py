"""Lists over many tasks: keys in order, counts per state, and walks along dependencies, without reading everything."""

from __future__ import annotations

from collections import Counter

from agent_bus.bus import Bus
from agent_bus.domain.task import IN_PROGRESS, PARKED, PENDING, TERMINAL, Task, inbox
from agent_bus.operations import find, waiting
from agent_bus.operations import inbox as inboxes

_WALK = 1000


def keys(bus: Bus, agent: str, state: str) -> list[str]:
    """The keys of tasks that may be in a state ("" = any that has not ended), oldest id first."""
    found: list[str] = []
    if state in TERMINAL:
        for month in bus.store.folders("archive"):
            found += bus.store.keys(f"archive/{month}")
        return sorted(found, key=_name)
    if state in ("", PENDING, IN_PROGRESS):
        found += _inbox_keys(bus, agent, state)
    for folder, states in (
        ("waiting", PARKED),
        ("approvals", {"pending_approval"}),
        ("dead_letter", {"dead_letter"}),
    ):
        if not state or state in states:
            found += bus.store.keys(folder)
    return sorted(found, key=_name)


def ended_last(bus: Bus, most: int) -> list[Task]:
    """Tasks that ended last, the last one at the end: of the newest ids, as many as four times `most` are looked at."""
    months = sorted((name for name in bus.store.folders("archive") if name[:1].isdigit()), reverse=True)[:2]
    newest = sorted((key for month in months for key in bus.store.keys(f"archive/{month}")), key=_name)[-4 * most :]
    tasks = [found.task for key in newest if (found := find.read_quietly(bus, key)) is not None]
    return sorted(tasks, key=lambda task: str(task.history[-1].get("at", "")) if task.history else "")[-most:]


def counts(bus: Bus, agent: str) -> dict[str, int]:
    """How many tasks that have not ended are in each state; with an agent: in its inbox."""
    found: Counter[str] = Counter()
    for folder in _folders(bus, agent):
        index = inboxes.index(bus, folder)
        index.update()
        found[PENDING] += len(index)
        found[IN_PROGRESS] += len(index.held())
    if not agent:
        found["pending_approval"] = len(bus.store.keys("approvals"))
        found["dead_letter"] = len(bus.store.keys("dead_letter"))
        found += waiting_counts(bus)
    return {k: v for k, v in sorted(found.items()) if v}


def waiting_counts(bus: Bus) -> Counter[str]:
    """How many tasks in waiting/ are in each state."""
    return waiting.index(bus).counts()


def cycle_from(bus: Bus, task_id: str) -> list[str]:
    """A cycle of dependencies that can be reached from a task, [] if there is none; bounded."""
    path: list[str] = []
    seen: set[str] = set()

    def walk(one: str) -> list[str]:
        if one in path:
            return [*path[path.index(one) :], one]
        if one in seen or len(seen) > _WALK:
            return []
        seen.add(one)
        path.append(one)
        found = find.find(bus, one)
        for needed in found.task.depends_on if found and not found.task.ended else []:
            if cycle := walk(needed["task"]):
                return cycle
        path.pop()
        return []

    return walk(task_id)


def _inbox_keys(bus: Bus, agent: str, state: str) -> list[str]:
    found: list[str] = []
    for folder in _folders(bus, agent):
        if state == IN_PROGRESS:
            index = inboxes.index(bus, folder)
            index.update()
            found += [h.key for h in index.held()]
        else:
            found += bus.store.keys(f"inbox/{folder}")
    return found


def _folders(bus: Bus, agent: str) -> list[str]:
    return [inbox(agent).partition("/")[2]] if agent else list(bus.store.folders("inbox"))


def _name(key: str) -> str:
    return key.rpartition("/")[2]
