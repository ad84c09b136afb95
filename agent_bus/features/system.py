"""The bus as a whole: its health, its emergency stop, its resumption, its owner."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel

from agent_bus import __version__, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.errors import BusError
from agent_bus.offers import resource
from agent_bus.operations import agents, halting, health, listing, outbox, recover, stop
from agent_bus.operations import inbox as inboxes
from agent_bus.operations.find import read_quietly


class Health(BaseModel):
    """How the bus is; `problems` is empty when all is well."""

    version: str
    bus_id: str
    owner: str
    stopped: dict[str, Any] | None
    counts: dict[str, int]
    oldest_waiting_s: int
    agents: int
    reports_pending: int
    quarantine: int
    foreign_files: int
    free_bytes: int
    settings_hash: str
    jobs: list[dict[str, Any]]
    outboxes: list[dict[str, Any]]
    problems: list[str]
    next: str


class Stopped(BaseModel):
    """The bus is stopped; what was and what could not be."""

    stopped: list[str]
    frozen: list[str]
    survivors: list[dict[str, Any]]
    other_hosts: list[str]
    agents: list[str]
    failed: list[str]
    next: str


class Resumed(BaseModel):
    """The bus runs again."""

    resumed: bool
    requeued: list[str]
    agents: list[str]
    next: str


class TakenOver(BaseModel):
    """This host is the owner of the bus folder."""

    owner: str
    former_owner: str
    epoch: int
    already: bool
    stopped: bool
    next: str


@command(group="core", writes=False)
def system_health(bus: Bus) -> Health:
    """Check the bus: counts, oldest waiting task, stop, and problems in sentences that say what to do."""
    facts, found = health.examine(bus), stop.read(bus)
    jobs, _ = paging.take(health.jobs_alive(bus.layout), 40, dict, 1200)
    boxes, _ = paging.take(outbox.overview(bus), 40, dict, 1200)
    problems = _that_fit(facts.problems, paging.size([jobs, boxes]))
    hint = "All is well." if not problems else "problems says what to do."
    owner, bus_id = health.identity(bus)
    return Health(
        version=__version__,
        bus_id=bus_id,
        owner=owner,
        stopped=paging.slim(found, 700, 1500) if found is not None else None,
        counts=listing.counts(bus, ""),
        oldest_waiting_s=facts.oldest_waiting_s,
        agents=len(agents.known_agents(bus)),
        reports_pending=len(bus.store.keys("reports/pending")),
        quarantine=facts.quarantine,
        foreign_files=facts.foreign_files,
        free_bytes=bus.layout.free_bytes() if bus.layout else 0,
        settings_hash=bus.settings.fingerprint(),
        jobs=jobs,
        outboxes=boxes,
        problems=problems,
        next=hint,
    )


@resource("bus://health", group="core", volatile=("free_bytes", "oldest_waiting_s", "jobs"))
def health_document(bus: Bus) -> Health:
    """How the bus is, as system_health says it."""
    return system_health(bus)


@command(group="core", writes=True, idempotent=True)
def emergency_stop(
    bus: Bus,
    reason: Annotated[str, Param("Why, for people.", max_chars=500)] = "",
    mode: Annotated[Literal["kill", "freeze"], Param("What happens to agents that the bus has started.")] = "kill",
) -> Stopped:
    """Stop everything at once: no task is given out or started until a person resumes. Reports and reading
    still work.
    """
    by = bus.caller.agent or ("a person" if bus.caller.person else bus.caller.channel)
    record = {"epoch": bus.token(), "at": bus.stamp(), "by": by, "reason": reason, "mode": mode}
    already = stop.read(bus)
    # One that was cut short has no epoch yet, and a note in the vault ends with the note: both get a full record.
    failed = [] if (already or {}).get("epoch") else stop.begin(bus, record)
    done = halting.halt(bus, mode) if bus.layout is not None else halting.Halted()
    if bus.layout is not None:
        done.stopped = sorted(
            {*done.stopped, *halting.ended_since(bus, str((already or {}).get("at") or record["at"]))}
        )
    names, more = stop.mark_agents(bus)
    bus.journal.write(
        bus.now(), {"at": bus.stamp(), "event": "bus.stopped", "agent": by, "reason": reason, "outcome": mode}
    )
    hint = "Only a person can resume: agent-bus resume." + (" It was stopped already." if already is not None else "")
    return Stopped(
        stopped=paging.some(done.stopped),
        frozen=paging.some(done.frozen),
        survivors=done.survivors[:20],
        other_hosts=paging.some(done.other_hosts),
        agents=paging.some(names),
        failed=paging.some([*failed, *more]),
        next=hint,
    )


@command(group="operator", writes=True, people=True)
def resume(
    bus: Bus,
    requeue: Annotated[bool, Param("Also give back tasks that were held when the bus was stopped.")] = False,
) -> Resumed:
    """End the emergency stop."""
    record = stop.read(bus)
    if record is None:
        return Resumed(resumed=False, requeued=[], agents=stop.settle(bus), next="The bus was not stopped.")
    if requeue and bus.layout is not None:
        halting.halt(bus, "kill")  # what is frozen does not go on
    given_back = _give_back(bus, requeue)
    if not stop.end(bus, str(record.get("epoch", ""))):
        raise BusError("conflict", "another stop was made meanwhile.", "Look at system_health, then resume again.")
    if bus.layout is not None:
        halting.thaw(bus)
    names = stop.settle(bus)
    bus.journal.write(
        bus.now(), {"at": bus.stamp(), "event": "bus.resumed", "agent": bus.caller.agent, "outcome": "ok"}
    )
    return Resumed(
        resumed=True, requeued=paging.some(given_back), agents=paging.some(names), next="Tasks are given out again."
    )


@command(group="operator", writes=True, people=True, any_host=True)
def takeover(bus: Bus) -> TakenOver:
    """Make this host the one that writes to the bus folder, for when the former owner is gone."""
    if bus.layout is None:
        raise BusError("refused", "this engine has no owner host.", "Nothing needs to be done.")
    former, _ = health.identity(bus)
    if bus.layout.is_ours() and bus.layout.format_file.exists():
        epoch, owned = health.epoch(bus), "This host is the owner already."
        return TakenOver(
            owner=former, former_owner=former, epoch=epoch, already=True, stopped=stop.is_stopped(bus), next=owned
        )
    bus.layout.make(bus.now())
    fresh = bus.layout.take_over(bus.now())
    health.rebuild_ledger(bus)
    bus.journal.write(
        bus.now(),
        {
            "at": bus.stamp(),
            "event": "bus.takeover",
            "agent": bus.caller.agent,
            "outcome": fresh["owner"]["host"],
        },
    )
    hint = (
        "Check the open tasks, then: agent-bus resume."
        if stop.is_stopped(bus)
        else "This host writes now; the former owner is refused."
    )
    return TakenOver(
        owner=fresh["owner"]["name"],
        former_owner=former,
        epoch=fresh["owner"]["epoch"],
        already=False,
        stopped=stop.is_stopped(bus),
        next=hint,
    )


def _give_back(bus: Bus, everything: bool) -> list[str]:
    """While stopped the reaper takes nothing; now what dead holders held goes back, uncounted; on request all of it."""
    given = []
    for folder in bus.store.folders("inbox"):
        index = inboxes.index(bus, folder)
        index.update(full=True)
        for row in index.held():
            found = read_quietly(bus, row.key)
            if found is None or found.task.lease is None or not (everything or recover.is_lost(bus, found.task)):
                continue
            if recover.take_back(bus, found, "the bus was stopped", counted=False):
                given.append(found.task.task_id)
    return given


def _that_fit(problems: list[str], taken: int) -> list[str]:
    rows, more = paging.take(problems, 40, lambda p: {"p": paging.brief(p, 1000)}, paging.ROOM - 2400 - taken)
    shown = [str(r["p"]) for r in rows]
    return [*shown, f"{len(problems) - len(shown)} more problems are not shown."] if more else shown
