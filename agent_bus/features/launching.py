"""Launched agents: their runs and logs, their sessions, what they may spend, and why they are parked."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain.outcome import task_effect
from agent_bus.domain.run import Run
from agent_bus.domain.task import note_event
from agent_bus.errors import BusError, invalid
from agent_bus.operations import find, launchable, parking, settle
from agent_bus.operations import runs as documents
from agent_bus.operations import sessions as maps
from agent_bus.store.port import Stale

_RECENT_DAYS = 7
_TRIES = 20


class RunRows(BaseModel):
    """Runs, newest first."""

    runs: list[dict[str, Any]]
    next: str


class RunLog(BaseModel):
    """The last lines of a run's log, without secrets."""

    run_id: str
    state: str
    outcome: str
    lines: list[str]
    next: str


class SessionRows(BaseModel):
    """Sessions of launched agents, by work folder and thread."""

    sessions: list[dict[str, Any]]
    forgotten: list[str]
    next: str


class Unparked(BaseModel):
    """The agent may be started again."""

    agent: str
    unparked: bool
    next: str


class Budget(BaseModel):
    """What a task may spend from now on."""

    task_id: str
    limits: dict[str, Any]
    next: str


@command(group="launcher", writes=False)
def runs(
    bus: Bus,
    agent: Annotated[str, Param("Only this agent's runs.", max_chars=200)] = "",
    task_id: Annotated[str, Param("Only the runs of this task.", max_chars=60)] = "",
    live: Annotated[bool, Param("Only runs that have not ended.")] = False,
    limit: Annotated[int, Param("Rows at most, 1 to 100.", low=1, high=100)] = 20,
) -> RunRows:
    """List the runs of launched agents, newest first: state, outcome, cost, and what they were not allowed."""
    found = [r for r in _known(bus, task_id, live) if not agent or ids.same_name(r.agent, agent)]
    chosen = sorted((r for r in found if r.live or not live), key=lambda r: r.made_at, reverse=True)
    rows, more = paging.take(chosen, limit, _row)
    hint = "Give a task_id or a higher limit for more." if more else "run_log(task_id=…) shows what a run wrote."
    return RunRows(runs=rows, next=hint)


@command(group="launcher", writes=False)
def run_log(
    bus: Bus,
    task_id: Annotated[str, Param("The task.", max_chars=60)],
    run: Annotated[int, Param("Which of its runs; 0 = the last.", low=0, high=999_999)] = 0,
    tail: Annotated[int, Param("How many lines, 1 to 1000.", low=1, high=1000)] = 200,
) -> RunLog:
    """Show the last lines that a run of a task wrote; secrets are taken out."""
    found = documents.of_task(bus, ids.check_task_id(task_id))
    chosen = next((r for r in reversed(found) if r.n == run or not run), None)
    if chosen is None:
        raise BusError("not_found", f"{task_id} has no run{f' {run}' if run else ''}.", "runs(task_id=…) lists them.")
    from agent_bus.launchers import output  # the launcher's side: only where there are runs
    from agent_bus.operations.endings import secrets

    hidden = secrets(bus, chosen)
    lines = [output.redact(t, hidden) for t in output.tail(documents.file(bus, chosen, "log"), tail)]
    shown = _that_fit(lines)
    hint = "" if len(shown) == len(lines) else f"The first {len(lines) - len(shown)} lines did not fit. "
    state = f"It is {chosen.state}{f': {chosen.reason}' if chosen.reason else ''}."
    return RunLog(run_id=chosen.run_id, state=chosen.state, outcome=chosen.outcome, lines=shown, next=hint + state)


@command(group="launcher", writes=True, idempotent=True)
def sessions(
    bus: Bus,
    agent: Annotated[str, Param("Only this agent's sessions.", max_chars=200)] = "",
    forget: Annotated[
        str, Param("A thread whose next run begins a new session; a person decides.", max_chars=200)
    ] = "",
) -> SessionRows:
    """List the sessions that launched agents go on with, or let a thread begin a new one."""
    if forget and not (bus.caller.person or bus.caller.role == "operator"):
        raise BusError("refused", "a person forgets sessions.", f"A person runs: agent-bus sessions --forget {forget}")
    done = []
    for doc in maps.listed(bus, agent):
        if forget and doc.value.get("thread") == forget:
            value = doc.value
            place = maps.Place(
                *(str(value.get(k, "")) for k in ("agent", "work_dir", "thread", "launcher", "config_dir"))
            )
            maps.forget(bus, place, "a person asked for it")
            done.append(str(value.get("session_id", "")))
    rows, _ = paging.take(maps.listed(bus, agent), 100, lambda d: {k: v for k, v in d.value.items() if k != "schema"})
    return SessionRows(sessions=rows, forgotten=done, next="The session of a thread is gone on with by its next run.")


@command(group="launcher", writes=True, people=True, idempotent=True)
def unpark(bus: Bus, agent: Annotated[str, Param("The agent.", max_chars=200)]) -> Unparked:
    """Let a parked agent be started again, and the others of its account."""
    name = next((n for n in launchable.names(bus) if ids.same_name(n, agent)), "")
    if not name:
        known = ", ".join(launchable.names(bus)) or "none"
        raise invalid("agent", f"must have a launcher, got {agent[:40]!a}", f"Agents with a launcher: {known}.")
    account = launchable.account_of(name, bus.settings.agents[name])
    done = parking.clear(bus, name, account, everybody=True)
    hint = "Its tasks start within a moment, if a launcher runs." if done else "It was not parked."
    return Unparked(agent=name, unparked=done, next=hint)


@command(group="launcher", writes=True, people=True, idempotent=True)
def budget(
    bus: Bus,
    task_id: Annotated[str, Param("The task.", max_chars=60)],
    cost: Annotated[str, Param("USD that it may spend in all, whatever the day's sums.", max_chars=20)] = "",
    tokens: Annotated[int, Param("Tokens that it may spend in all; 0 = as it was.", low=0, high=10**12)] = 0,
    runtime_s: Annotated[int, Param("Seconds that a run may last; 0 = as it was.", low=0, high=604_800)] = 0,
) -> Budget:
    """Raise what a task may spend, so that it starts although a limit is reached."""
    changes: dict[str, Any] = {"tokens": tokens, "runtime_s": runtime_s}
    if cost:
        changes["granted_usd"] = _amount(cost)
    changes = {k: v for k, v in changes.items() if v}
    if not changes:
        raise invalid("cost", "is missing, and so are tokens and runtime_s", "For example 3.")
    for _ in range(_TRIES):
        found = find.need(bus, task_id)
        limits = {**found.task.limits, **changes}
        words = ", ".join(f"{k} {v}" for k, v in changes.items())
        task = note_event(found.task, "budget", "a person", bus.now(), words, limits=limits)
        try:
            settle.write(bus, found, task)
            return Budget(task_id=task_id, limits=limits, next="The next launch looks at it.")
        except Stale:
            continue
    raise BusError("busy", f"{task_id} is being changed by others.", "Try again in a moment.")


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise invalid("cost", f"must be a number above 0, got {text[:20]!a}", "For example 3.")
    return value


def _known(bus: Bus, task_id: str, live: bool) -> list[Run]:
    if task_id:
        return documents.of_task(bus, ids.check_task_id(task_id))
    if live or bus.layout is None:
        return [h.run for h in documents.live(bus)]
    return documents.recent(bus, bus.now() - timedelta(days=_RECENT_DAYS))


def _row(run: Run) -> dict[str, Any]:
    keys = ("run_id", "task_id", "agent", "worker", "state", "outcome", "reason", "made_at", "ended_at", "session_id")
    row = {k: getattr(run, k) for k in keys if getattr(run, k)}
    row |= {"pid": run.pid} if run.live and run.pid else {}
    row |= {"frozen": True} if run.frozen_at else {}
    if run.state == "ended":
        row |= {"exit_code": run.exit_code, "cost_usd": run.cost_usd if run.cost_known else "unknown"}
        row |= {"counted": True} if task_effect(run.outcome) == "crash" else {}
    return row | ({"not_allowed": run.denials} if run.denials else {})


def _that_fit(lines: list[str]) -> list[str]:
    """The last lines that fit into an answer."""
    kept: list[str] = []
    room = paging.ROOM - 600
    for line in reversed(lines):
        room -= paging.size(line) + 2
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
