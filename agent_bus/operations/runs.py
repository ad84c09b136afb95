"""Run documents: `.bus/runs/<task_id>/<n>`, and a mark `.bus/live/<run_id>` until a run's end is applied to its task.

Order of writes of a run, and what a kill between two of them leaves:

    live mark          no run document: the mark is taken away
    run, `starting`    no process: void, once its launcher is gone
    claim of the task  launcher dead: the run is void and the task goes back, not counted
    process            found by its marker: adopted, or ended if it is not exactly one
    run, `running`     adopted
    run, `ended`       its outcome is applied to the task by whoever finds the mark
    task               the mark is taken away
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent_bus import host, ids
from agent_bus.bus import Bus
from agent_bus.domain import outcome
from agent_bus.domain import run as machine
from agent_bus.domain.lease import left_s
from agent_bus.domain.run import ENDED, Run
from agent_bus.domain.task import Lease
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

if TYPE_CHECKING:
    from agent_bus.launchers.trees import Tree

RUNS, LIVE = ".bus/runs", ".bus/live"
_TICK_NS = 2_000_000_000
"""A folder's time is coarse on some file systems (FAT: 2 s)."""
_CACHED = 10_000


@dataclass(frozen=True)
class Held:
    """A run as it was read: its document (for compare-and-swap) and its content."""

    doc: Doc
    run: Run


def key(run: Run) -> str:
    """The key of a run's document."""
    return f"{RUNS}/{run.task_id}/{run.n}"


def folder(bus: Bus, task_id: str) -> Path:
    """Where the files of a task's runs lie."""
    assert bus.layout is not None
    return bus.layout.state / "runs" / task_id


def file(bus: Bus, run: Run, ending: str) -> Path:
    """A file of a run: `log`, `prompt`, `held` …"""
    return folder(bus, run.task_id) / f"{run.n}.{ending}"


def read(bus: Bus, run_id: str) -> Held | None:
    """The run of an id; None if there is none, or its document cannot be read."""
    task_id, n = machine.task_of(run_id)
    found = _read(bus, f"{RUNS}/{task_id}/{n}") if task_id else None
    return found if found is not None and found.run.run_id == run_id else None


def of_task(bus: Bus, task_id: str) -> list[Run]:
    """A task's runs, oldest first."""
    if not ids.is_task_id(task_id):
        return []
    found = (_read(bus, k) for k in bus.store.keys(f"{RUNS}/{task_id}"))
    return sorted((h.run for h in found if h), key=lambda r: r.n)


def live(bus: Bus) -> list[Held]:
    """The runs whose marks are there: those that have not ended, and those whose end is still to be applied."""
    found = (read(bus, k.rpartition("/")[2]) for k in bus.store.keys(LIVE))
    return [h for h in found if h is not None]


def sweep_marks(bus: Bus) -> None:
    """Takes away the marks of launchers that died before they wrote the run."""
    for doc in bus.store.list(LIVE):
        owner = doc.value.get("owner")
        if read(bus, doc.name) is None and _liveness(owner) == host.DEAD:
            unmark(bus, doc.name)


def recent(bus: Bus, since: datetime) -> list[Run]:
    """The runs of all tasks whose documents have changed since a time; of a task that has one, all of them."""
    assert bus.layout is not None
    found = []
    with suppress(OSError), os.scandir(bus.layout.state / "runs") as entries:
        for entry in entries:
            with suppress(OSError):  # a folder's time moves with every document that is put into it
                moved = entry.stat().st_mtime_ns
                if moved >= (since.timestamp() - 2) * 1e9 and ids.is_task_id(entry.name):
                    found += _remembered(bus, entry.name, moved)
    return found


def _remembered(bus: Bus, task_id: str, moved: int) -> list[Run]:
    """A task's runs, read again only if its folder has changed; one that has just changed may do so within its tick."""
    cache: dict[str, tuple[int, list[Run]]] = bus.memo.setdefault("runs", {})
    known = cache.get(task_id)
    if known is not None and known[0] == moved:
        return known[1]
    found = of_task(bus, task_id)
    if not any(r.live for r in found) and bus.now().timestamp() * 1e9 - moved > _TICK_NS:
        if len(cache) >= _CACHED:
            cache.clear()
        cache[task_id] = moved, found
    return found


def make(bus: Bus, run: Run) -> Held | None:
    """Writes a new run; None if there is one of its number: somebody else starts this task."""
    with suppress(Exists):
        bus.store.create(f"{LIVE}/{run.run_id}", {"run_id": run.run_id, "owner": run.owner})
    try:
        return Held(bus.store.create(key(run), run.value()), run)
    except Exists:
        unmark(bus, run.run_id)
        return None


def write(bus: Bus, held: Held, run: Run) -> Held:
    """The next state of a run.

    Raises:
        Stale: somebody else was first.
    """
    return Held(bus.store.replace(held.doc, run.value()), run)


def note(bus: Bus, held: Held, **changes: Any) -> Held:
    """Changes within a run's state. Raises Stale."""
    return write(bus, held, machine.follow(held.run, "note", held.run.state, **changes))


def end(bus: Bus, held: Held, **changes: Any) -> Held:
    """Ends a run. Raises Stale, and NotAllowed for one that has ended."""
    return write(bus, held, machine.follow(held.run, "end", ENDED, **{"ended_at": bus.stamp(), **changes}))


def void(bus: Bus, held: Held, reason: str) -> Held:
    """Ends a run whose process never was. Raises Stale."""
    return write(bus, held, machine.void(held.run, bus.now(), reason))


def unmark(bus: Bus, run_id: str) -> None:
    """Takes a run's mark away: nothing waits for its end any more."""
    with suppress(Stale, Unreadable):
        if doc := bus.store.get(f"{LIVE}/{run_id}"):
            bus.store.delete(doc)


def tree(run: Run) -> Tree:
    """The processes of a run."""
    from agent_bus.launchers.trees import Tree  # psutil: most verbs can do without

    return Tree(run.run_id, run.pid, run.pid_started)


def is_here(run: Run) -> bool:
    """Whether the run is one of this host."""
    return run.host == host.host_id()


def owner_liveness(run: Run) -> str:
    """`alive`, `dead` or `unknown`: the launcher that looks after a run."""
    return _liveness(run.owner)


def lost(bus: Bus, held_lease: Lease) -> bool:
    """Whether a lease that names a run may be taken back: its run has ended, or is gone after its time."""
    found = read(bus, held_lease.holder.run)
    if found is not None and not found.run.live:
        return True
    if left_s(held_lease, bus.now()) >= -bus.settings.launcher.start_s:
        return False
    if found is None or not is_here(found.run):
        return True
    return not (found.run.frozen_at or tree(found.run).alive())


def bury(bus: Bus, run_id: str) -> bool:
    """Ends a run that is `lost`, so that no launcher takes it for a living one; False if one has just written."""
    found = read(bus, run_id)
    if found is None or not found.run.live:
        return True
    try:
        end(bus, found, outcome="crashed", reason="its processes are gone, and so is its launcher")
    except (Stale, machine.NotAllowed):
        return False
    return True


def crash_counts(bus: Bus, run_id: str) -> bool | None:
    """Whether the end of a run counts against its task; None if its document does not tell."""
    found = read(bus, run_id)
    return outcome.counts(found.run.outcome) if found and not found.run.live else None


def _liveness(owner: Any) -> str:
    try:
        return host.liveness(host.ProcessId(**owner))
    except TypeError:
        return host.DEAD


def _read(bus: Bus, where: str) -> Held | None:
    with suppress(Unreadable, ValidationError):
        doc = bus.store.get(where)
        return Held(doc, Run.model_validate(doc.value)) if doc else None
    return None
