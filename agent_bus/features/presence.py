"""Who is here, and how the bus is reached; seen from heartbeats, without a look into anybody's private files."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from agent_bus import __version__, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import presence as rules
from agent_bus.operations import debates, pages, presence
from agent_bus.store import records
from agent_bus.store.port import Doc
from agent_bus.times import stamp

_SHOWN = ("label", "client", "cwd", "workspace", "task", "phase", "model", "last_tool", "first_seen", "last_seen")


class Status(BaseModel):
    """The bus as this process has it."""

    bus: dict[str, Any]
    tasks: list[str]
    control_plane_url: str
    pid: int
    uptime_s: int
    version: str


class Agents(BaseModel):
    """Sessions and agents, newest sign first; `agentsTruncated` is how many were left out."""

    started: bool
    scanning: bool
    sessionCount: int  # noqa: N815 (the names that clients know)
    agentCount: int  # noqa: N815
    sessions: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    agentsTruncated: int  # noqa: N815
    source: str
    cursor: str


class Beaten(BaseModel):
    """A heartbeat is written."""

    address: str
    last_seen: str
    next: str


@command(group="presence", writes=False)
def moa_status(bus: Bus) -> Status:
    """See how the bus is reached, which debates are open, and this server's process."""
    record = records.read(bus.layout, "up") if bus.layout is not None else None
    port = int((record or {}).get("http_port") or 0) if records.alive(record) else 0
    mine = port and (record or {}).get("process", {}).get("pid") == os.getpid()
    mode = "own" if mine else "reuse" if port else "off"
    return Status(
        bus={"port": port, "mode": mode},
        tasks=paging.some(debates.open_ids(bus), 4000),
        control_plane_url=f"http://127.0.0.1:{port}" if port else "",
        pid=os.getpid(),
        uptime_s=presence.uptime_s(),
        version=__version__,
    )


@command(group="presence", writes=False)
def moa_status_agents(
    bus: Bus,
    sessionId: Annotated[str, Param("Only the agents of one session.", max_chars=200)] = "",  # noqa: N803
    limit: Annotated[int, Param("Agents at most.", low=1, high=1000)] = 100,
    cursor: Annotated[str, Param("From the last answer, for the next page.", max_chars=200)] = "",
) -> Agents:
    """See who is here: sessions, their agents, busy or idle, and the addresses for hand-offs."""
    found = [one for one in presence.listed(bus) if not sessionId or one[0].value.get("session") == sessionId]
    ordered = sorted(found, key=lambda one: _place(one[0]), reverse=True)
    last = pages.place(cursor)
    rest = [one for one in ordered if last is None or _place(one[0]) < last]
    sessions = _sessions(ordered)
    shown, _ = paging.take(sessions, limit, lambda row: row, paging.ROOM // 3)
    room = paging.ROOM - paging.size(shown) - 300
    rows, more = paging.take(rest, limit, lambda one: paging.slim(_agent(*one), 600, 1500), room)
    behind = pages.cursor(*_place(rest[len(rows) - 1][0])) if more else ""
    return Agents(
        started=True,
        scanning=False,
        sessionCount=len(sessions),
        agentCount=len(ordered),
        sessions=shown,
        agents=rows,
        agentsTruncated=len(rest) - len(rows),
        source="local",
        cursor=behind,
    )


@command(group="presence", writes=True, idempotent=True)
def heartbeat(
    bus: Bus,
    session: Annotated[str, Param("The session, as it names itself.", max_chars=200)],
    agent: Annotated[str, Param("The agent in it.", max_chars=80)] = "main",
    parent: Annotated[str, Param("The agent that started it.", max_chars=80)] = "",
    state: Annotated[Literal["busy", "idle"], Param("What it does.")] = "idle",
    task: Annotated[str, Param("What it works on, in a line.", max_chars=200)] = "",
    for_s: Annotated[int, Param("With busy: for how long, 1 to 86400 s.", low=1, high=86_400)] = 600,
) -> Beaten:
    """Say that an agent is there; for hooks and scripts, and for agents whose server does not see them."""
    until = stamp(bus.now() + timedelta(seconds=for_s)) if state == "busy" else ""
    changes = {"parent": parent, "task": task, "busy_until": until, "pid": 0, "pid_started": ""}
    value = presence.beat(bus, session, agent, changes)
    return Beaten(
        address=rules.address(value), last_seen=value["last_seen"], next="moa_status_agents shows who is here."
    )


def _place(doc: Doc) -> tuple[str, str]:
    return str(doc.value.get("last_seen", "")), doc.key.removeprefix(f"{presence.PREFIX}/").replace("/", ":")


def _agent(doc: Doc, state: str) -> dict[str, Any]:
    value = doc.value
    parent = str(value.get("parent") or "")
    row = {
        "agentId": str(value.get("agent", "")),
        "sessionId": str(value.get("session", "")),
        "address": rules.address(value),
        "state": state,
        "kind": "sub" if parent else "main",
        "parentAgentId": parent,
    }
    return row | {key: value[key] for key in _SHOWN if value.get(key)}


def _sessions(found: list[tuple[Doc, str]]) -> list[dict[str, Any]]:
    """A row for each session, from its agent that was seen last."""
    rows: dict[str, dict[str, Any]] = {}
    for doc, state in found:
        name = str(doc.value.get("session", ""))
        seen = {"sessionId": name, "client": doc.value.get("client", {}), "state": state, "agents": 0}
        row = rows.setdefault(name, {**seen, "last_seen": str(doc.value.get("last_seen", ""))})
        row["agents"] += 1
        if rules.BUSY in (state, row["state"]):
            row["state"] = rules.BUSY
    return list(rows.values())
