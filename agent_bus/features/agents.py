"""Agents: say what you are doing, see what the others do."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain.task import Lease
from agent_bus.errors import BusError, invalid
from agent_bus.offers import resource
from agent_bus.operations import agents, choices, claim, find, holders, inbox, parking, stop
from agent_bus.store.port import Unreadable


class StatusSet(BaseModel):
    """The status is written; what the bus wants of its agent."""

    agent: str
    state: str
    current_task_id: str
    cancel_requested: bool
    stopped: bool
    lease_until: str
    next: str


class AllStatus(BaseModel):
    """Every agent known to the bus."""

    agents: list[dict[str, Any]]
    more: int
    next: str


class AgentShown(BaseModel):
    """One agent."""

    agent: dict[str, Any]
    next: str


@command(group="core", writes=True, idempotent=True, always_load=True)
def update_status(
    bus: Bus,
    agent: Annotated[str, Param("Your agent's name.", max_chars=200)] = "",
    state: Annotated[
        Literal["idle", "working", "waiting_for_review", "error", "stopped"], Param("What you are doing.")
    ] = "idle",
    current_task_id: Annotated[str, Param("The task you work on; renews your lease on it.", max_chars=60)] = "",
    note: Annotated[str, Param("A line for people, at most 500 characters.", max_chars=500)] = "",
) -> StatusSet:
    """Say what you are doing. With current_task_id it keeps the task yours and tells whether its sender
    cancelled it or the bus was stopped.
    """
    name = holders.agent_for(bus, agent, "agent")
    if current_task_id:
        ids.check_task_id(current_task_id, "current_task_id")
    stopped = stop.is_stopped(bus)
    cancelled, until = _renew(bus, name, current_task_id)
    changes = {
        "state": "stopped" if stopped else state,
        "current_task_id": current_task_id or None,
        "note": note,
    }
    if stopped:
        changes["state_before_stop"] = state
    value = agents.set_status(bus, name, changes)
    follow_up = "Go on." if state == "working" else "receive_task gives you the next task."
    if cancelled:
        follow_up = "Stop this task and report it as failed: its sender cancelled it."
    if stopped:
        follow_up = "The bus is stopped: finish nothing new, report what you have, and wait for a person."
    return StatusSet(
        agent=value["agent"],
        state=value["state"],
        current_task_id=current_task_id,
        cancel_requested=cancelled,
        stopped=stopped,
        lease_until=until,
        next=follow_up,
    )


@command(group="core", writes=False)
def get_all_status(bus: Bus) -> AllStatus:
    """See every agent: state, task, last sign, and how many tasks wait for it."""
    names = agents.known_agents(bus)
    rows, more = paging.take(names, len(names), lambda n: _row(bus, n))
    left = len(names) - len(rows) if more else 0
    hint = "list_tasks(agent_name=…) shows an agent's tasks." + (f" {left} more agents are not shown." if left else "")
    return AllStatus(agents=rows, more=left, next=hint)


@resource("bus://agents", group="core")
def agents_document(bus: Bus) -> AllStatus:
    """Every agent, as get_all_status shows them."""
    return get_all_status(bus)


@resource("bus://agent/{name}", group="core", complete=choices.agent_names)
def agent_document(bus: Bus, name: str) -> AgentShown:
    """One agent: its state, its task, what waits for it."""
    wanted = ids.check_agent(name, "name")
    known = next((n for n in agents.known_agents(bus) if ids.same_name(n, wanted)), None)
    if known is None:
        raise BusError("not_found", f"there is no agent {wanted}.", "get_all_status shows those that are known.")
    return AgentShown(agent=_row(bus, known), next=f"list_tasks(agent_name={known}) shows its tasks.")


def _row(bus: Bus, name: str) -> dict[str, Any]:
    doc = agents.status(bus, name)
    value = doc.value if doc else {}
    index = inbox.index(bus, name)
    index.update()
    row = {
        "agent": value.get("agent") or name,
        "state": value.get("state", "unknown"),
        "current_task_id": value.get("current_task_id"),
        "last_updated": value.get("last_updated", ""),
        "last_completed_task": value.get("last_completed_task"),
        "queued": len(index),
        "holds": [{"task_id": h.key.rpartition("/")[2], "worker": h.worker} for h in index.held()[:5]],
    }
    if parked := parking.of_agent(bus, name):
        row["parked"] = {k: parked.get(k) for k in ("reason", "until", "evidence")}
    return paging.slim(row | ({"note": value["note"]} if value.get("note") else {}), 3200)


def _renew(bus: Bus, agent: str, task_id: str) -> tuple[bool, str]:
    """Renews the caller's lease on a task; whether it is to be cancelled, and until when the lease runs."""
    if not task_id:
        return False, ""
    with suppress(Unreadable):
        found = find.find(bus, task_id)
        if found is None:
            raise invalid("current_task_id", f"names an unknown task, {task_id}", "Use the id that receive_task gave.")
        held = found.task.lease
        if held and _is_mine(bus, held, agent):
            found = claim.renew(bus, found)
            held = found.task.lease
        return found.task.cancel is not None, held.until if held else ""
    return False, ""


def _is_mine(bus: Bus, held: Lease, agent: str) -> bool:
    """Whether the lease is the caller's: same holder, or a caller without a process that names the agent."""
    holder = holders.holder_of(bus)
    same_agent = ids.same_name(ids.agent_of(held.worker), agent)
    if bus.caller.lease_id == held.id:
        return True
    if holder.pid or holder.session or holder.run:
        return same_agent and held.holder == holder
    return same_agent and held.holder.pid == 0
