"""Parked agents and accounts: `.bus/parked/<name>`, and the breakers (docs/launcher.md "Parking").

One document for an agent, one for an account (agents of one account are parked together), one for all. After `until` it
stays, for one run at a time to try; a report takes it away.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import parking
from agent_bus.domain.outcome import ACCOUNT_WIDE, BREAKING
from agent_bus.domain.run import Run, seconds_since
from agent_bus.operations import runs
from agent_bus.operations.launchable import account_of
from agent_bus.store.port import Doc, Exists, Stale, Unreadable
from agent_bus.times import stamp

PREFIX = ".bus/parked"
ALL = "all"
EVIDENCE_CHARS = 300
_TRIES = 20


def name_of(agent: str = "", account: str = "") -> str:
    """The name of an agent's document, or of an account's."""
    return f"agent.{ids.folder_of(agent)}" if agent else f"account.{hashlib.sha256(account.encode()).hexdigest()[:16]}"


def read(bus: Bus, name: str) -> Doc | None:
    """A parking as it stands, None if there is none."""
    with suppress(Unreadable):
        return bus.store.get(f"{PREFIX}/{name}")
    return None


def listed(bus: Bus) -> list[dict[str, Any]]:
    """Every parking that holds now."""
    return [d.value for d in bus.store.list(PREFIX) if holds(bus, d.value)]


def of_agent(bus: Bus, agent: str) -> dict[str, Any]:
    """The parking that keeps an agent from being started, {} if there is none."""
    settings = next((a for n, a in bus.settings.agents.items() if ids.same_name(n, agent)), None)
    if settings is None or not settings.launcher:
        return {}
    for name in (ALL, name_of(agent=agent), name_of(account=account_of(agent, settings))):
        doc = read(bus, name)
        if doc is not None and holds(bus, doc.value):
            return doc.value
    return {}


def holds(bus: Bus, value: dict[str, Any]) -> bool:
    """Whether a parking keeps runs from starting; False once its time is over or what it waits for has changed."""
    until = str(value.get("until", ""))
    if until:
        return seconds_since(until, bus.now()) < 0
    return value.get("reason") != "config" or value.get("mark") == config_mark(bus, str(value.get("executable", "")))


def config_mark(bus: Bus, executable: str) -> str:
    """What changes when the settings or the program do."""
    with suppress(OSError):
        found = os.stat(executable)
        return f"{bus.settings.fingerprint()} {found.st_mtime_ns} {found.st_size}"
    return f"{bus.settings.fingerprint()} none"


def problems(bus: Bus) -> Iterator[str]:
    """What is parked, for system_health."""
    for value in listed(bus):
        who = ", ".join(map(str, value.get("agents", [])))
        until = f"until {value['until']}" if value.get("until") else "until that changes"
        first = next(iter(value.get("agents", [])), "")
        allow = f"allow the bus's tools in {value.get('launcher')} (agent-bus init prints the lines), then "
        mend = allow if value.get("reason") == "not_approved" else ""
        yield f"{who} is parked {until} ({_why(value)}): {mend}agent-bus unpark {first}"


def reason_for(bus: Bus, agent: str, account: str, live: Iterable[Run]) -> str:
    """Why an agent is parked, in words; "" if it may start."""
    for name in (ALL, name_of(agent=agent), name_of(account=account)):
        doc = read(bus, name)
        if doc is None:
            continue
        value = doc.value
        words = _why(value)
        if holds(bus, value):
            until = f"until {value['until']}" if value.get("until") else f"until agent-bus unpark {agent}, or a change"
            return f"parked {until} ({words})"
        if name != ALL and any(_tries(r, value, name) for r in live):
            return f"one run tries whether it is over ({words})"
    return ""


def _why(value: dict[str, Any]) -> str:
    return f"{value.get('reason')}: {value.get('evidence')}".rstrip(": ")


def _tries(run: Run, value: dict[str, Any], name: str) -> bool:
    mine = name in (name_of(agent=run.agent), name_of(account=run.account))
    return mine and run.made_at > str(value.get("since", ""))


def park(bus: Bus, run: Run, reason: str, evidence: str, named_until: float = 0.0, executable: str = "") -> bool:
    """Parks the run's agent, or its account; True if it was not parked for this reason already.

    Once a run: the document names the run that parked it.
    """
    account = run.account if reason in ACCOUNT_WIDE else ""
    name = name_of(account=account) if account else name_of(agent=run.agent)
    for _ in range(_TRIES):
        old = read(bus, name)
        same = old is not None and old.value.get("reason") == reason
        if old is not None and same and (old.value.get("run") == run.run_id or holds(bus, old.value)):
            return False
        count = int(old.value.get("count", 0)) + 1 if old is not None and same else 0
        value = {
            "account": account,
            "agents": _agents(bus, account, run.agent),
            "reason": reason,
            "evidence": evidence[:EVIDENCE_CHARS],
            "since": bus.stamp(),
            "until": parking.until(reason, count, bus.now(), named_until, bus.settings.launcher.parked_default_s),
            "count": count,
            "run": run.run_id,
            "launcher": run.launcher,
        }
        if reason == "config":
            value |= {"executable": executable, "mark": config_mark(bus, executable)}
        if _put(bus, name, old, value):
            _tell(bus, value, run.agent)
            return True
    return False


def note_end(bus: Bus, run: Run, reason: str, evidence: str, named_until: float = 0.0) -> None:
    """What a run's end means for its agent: a report clears, a reason parks, failures in a row break."""
    if run.outcome == "reported":
        clear(bus, run.agent, run.account)
    elif reason:
        park(bus, run, reason, evidence, named_until, run.executable)
    elif run.outcome in BREAKING:
        ended = runs.recent(bus, bus.now() - timedelta(seconds=parking.BREAKER_MOST_S * 2))
        if parking.broken(ended, run.agent):
            park(bus, run, "breaker", f"{parking.BREAKER_RUNS} runs in a row ended without a report")
        if parking.broken_everywhere(ended, bus.now()):
            _park_all(bus, run)


def clear(bus: Bus, agent: str, account: str, everybody: bool = False) -> bool:
    """Takes the parkings of an agent and its account away, on request that of all too; whether there were any."""
    names = [name_of(agent=agent), name_of(account=account), *([ALL] if everybody else [])]
    found = [d for n in names if (d := read(bus, n)) is not None]
    for doc in found:
        with suppress(Stale):
            bus.store.delete(doc)
    return bool(found)


def _park_all(bus: Bus, run: Run) -> None:
    old = read(bus, ALL)
    if old is not None and holds(bus, old.value):
        return
    until = stamp(bus.now() + timedelta(seconds=parking.GLOBAL_S))
    words = f"{parking.GLOBAL_RUNS} runs of all agents failed within {parking.GLOBAL_S // 60} minutes"
    base = {"account": "", "agents": ["*"], "reason": "breaker", "evidence": words, "since": bus.stamp()}
    if _put(bus, ALL, old, base | {"until": until, "count": 0, "run": run.run_id}):
        _tell(bus, base | {"until": until}, "*")


def _put(bus: Bus, name: str, old: Doc | None, value: dict[str, Any]) -> bool:
    try:
        if old is None:
            bus.store.create(f"{PREFIX}/{name}", value)
        else:
            bus.store.replace(old, value)
    except (Exists, Stale):
        return False
    return True


def _agents(bus: Bus, account: str, agent: str) -> list[str]:
    if not account:
        return [agent]
    return sorted(n for n, a in bus.settings.agents.items() if a.launcher and account_of(n, a) == account) or [agent]


def _tell(bus: Bus, value: dict[str, Any], agent: str) -> None:
    line = {"at": bus.stamp(), "event": "agent.parked", "agent": agent, "outcome": value["reason"]}
    bus.journal.write(bus.now(), {**line, "until": value.get("until", ""), "agents": value["agents"]})
