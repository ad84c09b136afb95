"""Tasks: take the next one, see what is open."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain.task import Task
from agent_bus.errors import BusError
from agent_bus.offers import resource
from agent_bus.operations import choices, claim, find, holders, listing, reading, recover, waits, why
from agent_bus.times import parse_stamp

State = Literal[
    "", "pending_approval", "scheduled", "waiting", "pending", "in_progress", "in_review", "blocked",
    "completed", "failed", "cancelled", "rejected", "expired", "dead_letter",
]  # fmt: skip


class Received(BaseModel):
    """The task to work on, or none."""

    task: dict[str, Any] | None
    lease_id: str
    lease_until: str
    already_held: bool
    queue_length: int
    cursor: str
    next: str


class TaskRows(BaseModel):
    """Open tasks, oldest first."""

    tasks: list[dict[str, Any]]
    counts: dict[str, int]
    cursor: str
    next: str


class TaskDocument(BaseModel):
    """One task; a long text in it is cut, with its length beside it."""

    task: dict[str, Any]
    why: str
    next: str


def undo_receive(bus: Bus, result: BaseModel) -> None:
    """Gives a task back whose answer could not be delivered; not counted."""
    if not isinstance(result, Received) or result.task is None or result.already_held:
        return
    found = find.find(bus, str(result.task["task_id"]))
    if found and found.task.lease and found.task.lease.id == result.lease_id:
        recover.undo_claim(bus, found, "the answer could not be delivered")


@command(group="core", writes=True, always_load=True, undo=undo_receive)
async def receive_task(
    bus: Bus,
    agent_name: Annotated[str, Param("Your agent's name (or a pool of it).", max_chars=200)] = "",
    wait_s: Annotated[int, Param("Seconds to wait for a task, 0 to 50.", low=0, high=50, clamp=True)] = 0,
    worker: Annotated[str, Param("Label of this worker, if several share the agent: NAME#2.", max_chars=200)] = "",
    cursor: Annotated[
        str, Param("From the last answer, for the rest of a long task that you hold.", max_chars=40)
    ] = "",
) -> Received:
    """Take the next task of your inbox; a task you already hold is given again. Nothing to do is task null: call again
    with wait_s=45. When done call submit_report.
    """
    agent = holders.inbox_for(bus, agent_name)
    label = holders.worker_for(bus, worker, agent)
    if cursor:
        held = await waits.on_thread(partial(claim.held, bus, agent, label))
        if held is None:
            raise BusError("conflict", "you hold no task, so there is nothing to read on.", "Leave cursor out.")
        return _received(bus, agent, held, cursor)
    look = partial(_look, bus, agent, label)
    return await waits.until(bus, look, wait_s, partial(undo_receive, bus)) or _received(bus, agent, None, "")


@command(group="core", writes=False)
def list_tasks(
    bus: Bus,
    agent_name: Annotated[str, Param("Only this agent's tasks; empty: all agents.", max_chars=200)] = "",
    state: Annotated[State, Param("Only tasks in this state; empty: all that have not ended.")] = "",
    limit: Annotated[int, Param("Rows at most, 1 to 100.", low=1, high=100)] = 20,
    cursor: Annotated[str, Param("From the last answer, for the next page.", max_chars=60)] = "",
) -> TaskRows:
    """List tasks, oldest first: id, from, to, state, priority, age, first 120 characters."""
    agent = ids.check_agent(agent_name, "agent_name") if agent_name else ""
    if cursor:
        ids.check_task_id(cursor, "cursor")
    keys = listing.keys(bus, agent, state)
    rows, more = paging.take(_open(bus, keys, agent, state, cursor), limit, partial(_row, bus))
    last = str(rows[-1]["task_id"]) if more else ""
    hint = "Call again with this cursor for more." if more else "get_task shows one whole task and why it waits."
    return TaskRows(tasks=rows, counts=listing.counts(bus, agent), cursor=last, next=hint)


@resource("bus://tasks", group="core", volatile=("age_s",))
def tasks_document(bus: Bus) -> TaskRows:
    """The first page of open tasks, as list_tasks shows them."""
    return list_tasks(bus)


@resource("bus://task/{task_id}", group="core", complete=choices.task_ids)
def task_document(bus: Bus, task_id: str) -> TaskDocument:
    """One task with its history, and why it does not move."""
    task = find.need(bus, task_id).task
    words = paging.brief(why.in_words(bus, task), 400)
    return TaskDocument(task=reading.task_document(task), why=words, next="get_task shows it whole, in parts.")


def _open(bus: Bus, keys: list[str], agent: str, state: str, cursor: str) -> Iterator[Task]:
    for key in keys:
        if cursor and key.rpartition("/")[2] <= cursor:
            continue
        found = find.read_quietly(bus, key)
        if found and (not agent or ids.same_name(found.task.to, agent)) and (not state or found.task.status == state):
            yield found.task


def _row(bus: Bus, task: Task) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task_id": task.task_id,
        "from": task.sender,
        "to": task.to,
        "state": task.status,
        "priority": task.priority,
        "age_s": _age_s(bus, task),
        "instruction": paging.cut(task.instruction, 120),
    }
    return paging.slim(row | ({"worker": task.lease.worker} if task.lease else {}), 900)


def _age_s(bus: Bus, task: Task) -> int:
    try:
        return max(0, int((bus.now() - parse_stamp(task.created_at)).total_seconds()))
    except ValueError:
        return 0


def _look(bus: Bus, agent: str, label: str, first: bool) -> Received | None:
    """One look: the claim and the whole answer in one step, so that no cancel can fall between the two."""
    claimed = claim.receive(bus, agent, label, first)
    return _received(bus, agent, claimed, "") if claimed else None


def _received(bus: Bus, agent: str, claimed: claim.Claimed | None, cursor: str) -> Received:
    queued = claim.queue_length(bus, agent)
    if claimed is None:
        hint = "Nothing to do. Call receive_task again with wait_s=45 to wait for work."
        empty = {"task": None, "lease_id": "", "lease_until": "", "already_held": False}
        return Received(**empty, queue_length=queued, cursor="", next=hint)
    task = claimed.found.task
    assert task.lease is not None
    shown, rest = reading.task_for_worker(task, cursor)
    facts = f"task_id={task.task_id}, worker={task.lease.worker}, lease_id={task.lease.id}"
    hint = f'Do the task, then submit_report({facts}, status=completed, summary="what you did"); or failed, or blocked.'
    if rest:
        hint = f"The task is longer: receive_task(agent_name={agent}, cursor={rest}) gives the next part. {hint}"
    if task.cancel:
        hint = f"The sender wants this task cancelled: stop and report. {hint}"
    return Received(
        task=shown,
        lease_id=task.lease.id,
        lease_until=task.lease.until,
        already_held=claimed.already_held,
        queue_length=queued,
        cursor=rest,
        next=hint,
    )
