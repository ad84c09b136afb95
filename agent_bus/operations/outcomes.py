"""What a run's end does to its task: applied after the run document says so, by whoever finds it not yet applied."""

from __future__ import annotations

from contextlib import suppress

from agent_bus.bus import Bus
from agent_bus.domain import lease
from agent_bus.domain.outcome import task_effect
from agent_bus.domain.report import end
from agent_bus.domain.run import Run
from agent_bus.domain.task import DEAD_LETTER, IN_PROGRESS, PENDING
from agent_bus.operations import find, recover, runs, settle, stop
from agent_bus.operations.find import Found
from agent_bus.store.port import Stale

_TRIES = 20
_WHY_CHARS = 480


def apply(bus: Bus, run: Run) -> bool:
    """Moves the task of an ended run as its outcome says; True if nothing is left to be done.

    A task that the run's lease no longer holds has moved on already. While the bus is stopped, a run that was ended for
    the stop keeps its task.
    """
    for _ in range(_TRIES):
        found = held_by(bus, run)
        effect = task_effect(run.outcome)
        if found is not None and effect == "hold" and stop.is_stopped(bus):
            return False
        if found is not None and effect and recover.take_back(bus, found, why(run), effect == "crash") is None:
            continue  # somebody wrote between: look again
        runs.unmark(bus, run.run_id)
        return True
    return False


def held_by(bus: Bus, run: Run) -> Found | None:
    """The run's task, while the run's lease holds it."""
    found = find.find_quietly(bus, run.task_id)
    if found is None or found.task.status != IN_PROGRESS or found.task.lease is None:
        return None
    return found if found.task.lease.id == run.lease_id else None


def renew(bus: Bus, run: Run) -> None:
    """Keeps the lease of a living run; it is written when a minute of it has gone."""
    found = held_by(bus, run)
    if found is None or found.task.lease is None:
        return
    ttl = bus.settings.lease_s
    if lease.left_s(found.task.lease, bus.now()) < ttl - min(60.0, ttl * 0.1):
        with suppress(Stale):
            settle.write(bus, found, lease.renew(found.task, bus.now(), ttl, called=False))


def name_process(bus: Bus, run: Run, process: dict[str, object]) -> None:
    """The lease names the run's process from now on, no longer its launcher's."""
    for _ in range(_TRIES):
        found = held_by(bus, run)
        if found is None or found.task.lease is None:
            return
        holder = found.task.lease.holder.model_copy(update=process)
        held = found.task.lease.model_copy(update={"holder": holder})
        task = found.task.model_copy(update={"lease": held, "step": found.task.step + 1})
        with suppress(Stale):
            settle.write(bus, found, task)
            return


def give_up(bus: Bus, found: Found, reason: str) -> None:
    """pending → dead_letter: it will never be started again."""
    if found.task.status == PENDING:
        with suppress(Stale):
            dead = end(found.task, "give_up", DEAD_LETTER, "bus", bus.now(), reason)
            settle.commit(bus, found, dead, "task.dead_letter", reason=reason)


def why(run: Run) -> str:
    """Why a run's task goes back, with its last words."""
    said = run.tail.strip()[-300:] if task_effect(run.outcome) == "crash" else ""
    words = run.reason if run.reason.startswith(run.outcome) else f"{run.outcome}: {run.reason}"
    return (words + (f" — last output: {said}" if said else ""))[:_WHY_CHARS]
