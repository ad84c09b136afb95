"""Dispatching: put a task into an agent's inbox, and ask the person at the client if the gate holds it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.commands import Ask, Param, Question, command
from agent_bus.domain.task import PENDING_APPROVAL, REJECTED, Task
from agent_bus.errors import BusError
from agent_bus.operations import approving, asking, find, launching, orders
from agent_bus.operations.dispatch import Sent, dispatch

INSTRUCTION_CHARS = 200_000

Priority = Literal["high", "normal", "low"]


class Dispatched(BaseModel):
    """A task was dispatched."""

    task_id: str
    status: str
    auto_launched: bool
    launch: str
    deduplicated: bool
    matched_terms: list[str]
    warnings: list[str]
    next: str


def ask_approval(bus: Bus, result: BaseModel) -> Question | None:
    """What the person at the client is asked about a task that the gate holds; one that was found again is not."""
    if not isinstance(result, Dispatched) or result.status != PENDING_APPROVAL or result.deduplicated:
        return None
    found = find.find_quietly(bus, result.task_id)
    return asking.about_approval(bus, found.task) if found else None


def take_approval(bus: Bus, result: BaseModel, seen: str, yes: bool, comment: str) -> BaseModel:
    """The answer after the person's word; what stands against it leaves the task where it is, and says so."""
    assert isinstance(result, Dispatched)
    decide = approving.approve if yes else approving.reject
    try:
        task = decide(bus, result.task_id, comment, seen)
    except BusError as error:
        return _as_it_is(bus, result, f"The answer was not taken: {error.message}")
    remark = f" ({comment})" if comment else ""
    if task.status == REJECTED:
        words = f"A person refused it{remark}. It will never run; do not send it again."
        return result.model_copy(update={"status": task.status, "next": words})
    return _as_it_is(bus, result, f"A person approved it{remark}.", task)


def _as_it_is(bus: Bus, result: Dispatched, said: str, task: Task | None = None) -> Dispatched:
    task = task or find.need(bus, result.task_id).task
    fresh = _dispatched(bus, Sent(task, result.deduplicated), result.warnings)
    return fresh.model_copy(update={"matched_terms": result.matched_terms, "next": f"{said} {fresh.next}"})


@command(group="core", writes=True, always_load=True, ask=Ask(ask_approval, take_approval))
def dispatch_task(
    bus: Bus,
    target: Annotated[str, Param("Agent that gets the task, for example claude-code.", max_chars=200)],
    instruction: Annotated[str, Param("What is to be done, 1 to 200,000 characters.", max_chars=INSTRUCTION_CHARS)],
    priority: Annotated[Priority, Param("Order in the inbox.")] = "normal",
    context: Annotated[
        str, Param('Data for the worker: text, or a JSON object such as {"new_project": true}.', json=True)
    ] = "",
    from_agent: Annotated[str, Param("Sender; default: the agent this server runs for.", max_chars=200)] = "",
    depends_on: Annotated[
        list[str],
        Param("Task ids to wait for: id, id:failure or id:always, at most 50.", max_items=50, max_chars=60),
    ] = [],  # noqa: B006 (never changed)
    not_before: Annotated[str, Param("Earliest start, as 2026-03-07T10:15:00Z.", max_chars=60)] = "",
    dedupe_key: Annotated[
        str,
        Param("The same key and request within 24 h is one task, so a call may be repeated.", max_chars=200),
    ] = "",
    options: Annotated[
        str,
        Param(
            "JSON object: max_attempts, retry_failed, expires_at, parent, thread, labels, limits, next_tasks.",
            json=True,
        ),
    ] = "",
) -> Dispatched:
    """Put a task into an agent's inbox. Risky words make it wait for a person (status pending_approval). Next:
    get_reports(task_id=…, wait_s=45) for the result.
    """
    order, notes = orders.read_order(
        bus,
        target=target,
        instruction=instruction,
        priority=priority,
        context=context,
        from_agent=from_agent,
        depends_on=depends_on,
        not_before=not_before,
        dedupe_key=dedupe_key,
        options=options,
    )
    return _dispatched(bus, dispatch(bus, order), notes)


def _dispatched(bus: Bus, sent: Sent, notes: list[str]) -> Dispatched:
    task, plan = sent.task, launching.for_task(bus, sent.task)
    terms = paging.some([f"{h.term} ({h.category})" for h in sent.hits])
    follow_up = f"get_reports(task_id={task.task_id}, wait_s=45) waits for the result."
    if task.status == PENDING_APPROVAL:
        follow_up = f"It runs only after a person approves it: agent-bus approve {task.task_id}"
    elif plan.reason:
        follow_up = f"{plan.reason[:1].upper()}{plan.reason[1:].rstrip('.')}. {follow_up}"
    return Dispatched(
        task_id=task.task_id,
        status=task.status,
        auto_launched=plan.start,
        launch=plan.launch,
        deduplicated=sent.deduplicated,
        matched_terms=terms,
        warnings=notes,
        next=follow_up,
    )
