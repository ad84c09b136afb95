"""The emergency stop on processes: every run of this host is ended or frozen, and thawed on resume.

It works on run documents, so with and without a launcher; two at once meet in the documents' compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_bus.bus import Bus
from agent_bus.domain import lease
from agent_bus.domain.outcome import classify
from agent_bus.domain.run import RUNNING, Run, seconds_since
from agent_bus.operations import outcomes, runs, settle
from agent_bus.operations.runs import Held
from agent_bus.store.port import Stale
from agent_bus.times import parse_stamp

if TYPE_CHECKING:
    from agent_bus.launchers.trees import Survivor

_TRIES = 5


@dataclass
class Halted:
    """What was done, by run id, by us or by its launcher; who could not be ended or frozen; runs on other hosts."""

    stopped: list[str] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)
    survivors: list[dict[str, Any]] = field(default_factory=list)
    other_hosts: list[str] = field(default_factory=list)


def halt(bus: Bus, mode: str, mine: Callable[[Run], bool] = lambda _: True) -> Halted:
    """Ends (`kill`) or stops (`freeze`) the trees of all live runs of this host, side by side.

    Args:
        mine: which of them.
    """
    done = Halted()
    live = [h for h in runs.live(bus) if h.run.live]
    done.other_hosts = [f"{h.run.run_id} on {h.run.host}" for h in live if not runs.is_here(h.run)]
    here = [h for h in live if runs.is_here(h.run) and mine(h.run)]
    if mode == "freeze":
        _freeze(bus, [h for h in here if h.run.state == RUNNING and not h.run.frozen_at], done)
        done.frozen += [h.run.run_id for h in here if h.run.frozen_at]
    else:
        _end(bus, here, done)
    return done


def ended_since(bus: Bus, at: str) -> list[str]:
    """The runs that ended for a stop since it was made, whoever ended them: a launcher that sees the stop does so too.

    Args:
        at: when the stop was made, as its record says; one that is no time gives no runs, as a stop must not fail.
    """
    try:
        since = parse_stamp(at)
        ended = [r for r in runs.recent(bus, since) if r.outcome == "stopped"]
        return sorted(r.run_id for r in ended if parse_stamp(r.ended_at) >= since)
    except ValueError:
        return []


def thaw(bus: Bus) -> list[str]:
    """Lets every frozen run of this host go on, with a fresh lease; their ids."""
    frozen = [h for h in runs.live(bus) if h.run.live and runs.is_here(h.run) and h.run.frozen_at]
    if not frozen:
        return []
    from agent_bus.launchers import trees

    for held in frozen:
        _fresh_lease(bus, held.run)
    trees.thaw_all([runs.tree(h.run) for h in frozen])
    for held in frozen:
        slept = max(0.0, seconds_since(held.run.frozen_at, bus.now()))
        _note(bus, held, frozen_at="", frozen_s=held.run.frozen_s + slept)
    return [h.run.run_id for h in frozen]


def _end(bus: Bus, here: list[Held], done: Halted) -> None:
    if not here:
        return
    from agent_bus.launchers import trees
    from agent_bus.operations import endings  # the adapters: only where there are runs

    family = [runs.tree(h.run) for h in here]
    left = trees.end_all(family, bus.settings.launcher.grace_s)
    for held, tree in zip(here, family, strict=True):
        _name(done, left.get(held.run.run_id, []))
        words = "; ".join(f"process {s.pid} is still there: {s.why}" for s in left.get(held.run.run_id, []))
        seen = endings.Seen(tree.poll(), stopped=True, survivors=words)
        now = runs.read(bus, held.run.run_id)  # its launcher may have written meanwhile
        if now is not None and now.run.live:
            end, evidence = endings.examine(bus, now.run, seen)
            endings.finish(bus, now, seen, endings.again(classify(end)), evidence)
        done.stopped.append(held.run.run_id)


def _freeze(bus: Bus, here: list[Held], done: Halted) -> None:
    if not here:
        return
    from agent_bus.launchers import trees

    marked = [_note(bus, h, frozen_at=bus.stamp()) for h in here]  # first: a frozen run is never taken for a dead one
    left = trees.freeze_all([runs.tree(h.run) for h in here])
    for held in marked:
        if held is not None:
            done.frozen.append(held.run.run_id)
            _name(done, left.get(held.run.run_id, []))


def _note(bus: Bus, held: Held, **changes: Any) -> Held | None:
    """Writes into a run's document whatever its launcher writes meanwhile; None once it has ended."""
    for _ in range(_TRIES):
        now = runs.read(bus, held.run.run_id)
        if now is None or not now.run.live:
            return None
        with suppress(Stale):
            return runs.note(bus, now, **changes)
    return None


def _fresh_lease(bus: Bus, run: Run) -> None:
    for _ in range(_TRIES):
        found = outcomes.held_by(bus, run)
        if found is None:
            return
        with suppress(Stale):
            settle.write(bus, found, lease.renew(found.task, bus.now(), bus.settings.lease_s, called=False))
            return


def _name(done: Halted, left: list[Survivor]) -> None:
    done.survivors += [{"pid": s.pid, "why": s.why} for s in left]
