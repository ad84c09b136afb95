"""Who is here: `.bus/presence/<session>/<agent>`, a heartbeat of every server process and of the agents in it.

Written at most every 30 s and not synced to disk. Who has gone is told by its process, never by a missing heartbeat.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from agent_bus import host
from agent_bus.bus import Bus
from agent_bus.domain import presence
from agent_bus.operations import quiet
from agent_bus.store.port import Doc, Exists, Stale

PREFIX = ".bus/presence"
EVERY_S = 30.0
AGENT_PARAMETERS = ("agent_id", "caller_agent_id", "fromAgent", "author")
ONLOOKER = "agent-bus-doctor"
"""A client of ours that looks and changes nothing."""
_BEATS = "presence"
_BORN = time.monotonic()


def heard(bus: Bus, verb: str, given: Mapping[str, Any]) -> None:
    """Notes a call of this caller, and of the agent that the call names; at most every 30 s for each."""
    if bus.caller.client.startswith(ONLOOKER):
        return
    for agent in dict.fromkeys(("main", _named(given))):
        if agent and _is_due(bus, agent) and (bus.layout is None or bus.layout.is_ours()):
            tool = {"name": verb, "ts": bus.stamp()}
            beat(bus, session_of(bus), agent, {"last_tool": tool, "parent": "" if agent == "main" else "main"})


def session_of(bus: Bus) -> str:
    """The caller's session: what the client or the HTTP transport passes, else client, pid and start of the process."""
    passed = bus.caller.session or os.environ.get("AGENT_BUS_SESSION_ID", "")
    if passed:
        return presence.safe(passed)
    here = host.this_process()
    started = hashlib.sha256(f"{here.boot}{here.pid_started}".encode()).hexdigest()[:6]
    return presence.safe(f"{presence.label_of(bus.caller.client)}-{here.pid}-{started}")


def beat(bus: Bus, session: str, agent: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a heartbeat: who, in which process, and what changes."""
    key = f"{PREFIX}/{presence.safe(session)}/{presence.safe(agent)}"
    name, _, version = bus.caller.client.rpartition(" ")
    base = {
        "schema": 1, "session": session, "agent": agent, "label": presence.label_of(bus.caller.client or "cli"),
        "bus_agent": bus.caller.agent, "parent": "", "client": {"name": name or version, "version": version},
        **host.as_record(host.this_process()),
        "cwd": os.getcwd(), "workspace": bus.settings.workspace,
    }  # fmt: skip
    while True:
        old = quiet.get(bus, key)
        seen = {"first_seen": (old.value if old else {}).get("first_seen") or bus.stamp(), "last_seen": bus.stamp()}
        value = {**(old.value if old else {}), **base, **seen, **changes, "source": "heartbeat"}
        with suppress(Exists, Stale):
            if old is None:
                return bus.store.create(key, value, durable=False).value
            return bus.store.replace(old, value, durable=False).value


def listed(bus: Bus) -> Iterator[tuple[Doc, str]]:
    """The heartbeats of everybody who has not gone, with the state to show."""
    for session in bus.store.folders(PREFIX):
        for doc in bus.store.list(f"{PREFIX}/{session}"):
            state = presence.state(doc.value, _life(doc.value), bus.now())
            if state != presence.GONE:
                yield doc, state


def addresses(bus: Bus) -> list[str]:
    """The addresses `label:session:agent` of everybody who is here."""
    return [presence.address(doc.value) for doc, _ in listed(bus)]


def tidy(bus: Bus) -> list[str]:
    """Drops the heartbeats of who has gone; their keys. For the reaper."""
    gone = []
    for session in bus.store.folders(PREFIX):
        for doc in bus.store.list(f"{PREFIX}/{session}"):
            if presence.state(doc.value, _life(doc.value), bus.now()) == presence.GONE:
                with suppress(Stale):
                    bus.store.delete(doc)
                    gone.append(doc.key)
    return gone


def _named(given: Mapping[str, Any]) -> str:
    found = next((given[k] for k in AGENT_PARAMETERS if isinstance(given.get(k), str) and given[k]), "")
    return presence.safe(found.rpartition(":")[2]) if found else ""


def _is_due(bus: Bus, agent: str) -> bool:
    """Whether it is time for a heartbeat; asked at every call, so it only looks into a table."""
    session = (bus.caller.session, bus.caller.client)
    beats: dict[tuple[tuple[str, str], str], float] = bus.memo.setdefault(_BEATS, {})
    now = bus.clock.boot_s()
    if now - beats.get((session, agent), float("-inf")) < EVERY_S:
        return False
    beats[session, agent] = now
    return True


def _life(value: Mapping[str, Any]) -> str:
    try:
        return host.liveness(
            host.ProcessId(
                str(value["host"]),
                str(value["boot"]),
                str(value["pid_ns"]),
                int(value["pid"]),
                str(value["pid_started"]),
            )
        )
    except (KeyError, TypeError, ValueError):
        return host.UNKNOWN


def uptime_s() -> int:
    """How long this process has run, in seconds."""
    return int(time.monotonic() - _BORN)
