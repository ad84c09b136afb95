"""Reports: say how a task went, read what others said, and decide on it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain.task import IN_REVIEW
from agent_bus.errors import BusError, invalid
from agent_bus.offers import resource
from agent_bus.operations import choices, find, finish, holders, reading, waits

SUMMARY_CHARS = 20_000
ARTIFACTS = 200
ARTIFACT_CHARS = 1_000


class Submitted(BaseModel):
    """What became of a report."""

    accepted: bool
    duplicate: bool
    stale_attempt: bool
    task_state: str
    next: str


class Reports(BaseModel):
    """A page of reports, oldest first; with task_id those of one task."""

    reports: list[dict[str, Any]]
    task_state: str
    cursor: str
    next: str


class Acknowledged(BaseModel):
    """The verdict stands."""

    task_id: str
    verdict: str
    already: bool
    task_state: str
    dispatched: list[str]
    next: str


@command(group="core", writes=True, idempotent=True, always_load=True)
def submit_report(
    bus: Bus,
    task_id: Annotated[str, Param("The task you received.", max_chars=60)],
    worker: Annotated[str, Param("Your agent or worker name.", max_chars=200)] = "",
    status: Annotated[
        Literal["completed", "failed", "blocked"],
        Param("completed, failed, or blocked (then put your question into summary).", required=True),
    ] = "completed",
    summary: Annotated[
        str, Param("What was done or found, at most 20,000 characters.", max_chars=SUMMARY_CHARS, required=True)
    ] = "",
    artifacts: Annotated[
        list[str], Param("Files made or changed, at most 200.", max_items=ARTIFACTS, max_chars=ARTIFACT_CHARS)
    ] = [],  # noqa: B006 (never changed)
    needs_review: Annotated[bool, Param("True: a person or the sender must accept it first.")] = False,
    lease_id: Annotated[
        str, Param("From receive_task; needed if the task was given out more than once.", max_chars=80)
    ] = "",
) -> Submitted:
    """Report the end of a task, exactly once; the same report again changes nothing. Next: receive_task for
    more work.
    """
    if not summary.strip():
        raise invalid("summary", "must not be empty", "Say in a sentence what was done, found, or is missing.")
    bound = bus.caller.agent
    label = holders.worker_for(bus, worker, bound) if worker or bound else ""
    if not label:
        raise invalid("worker", "must not be empty", "Give your agent's name, for example claude-code.")
    given = finish.Given(label, status, summary, tuple(artifacts), needs_review, lease_id)
    done = finish.submit(bus, task_id, given)
    follow_up = "Call receive_task for the next task."
    if done.stale:
        follow_up = "This lease was no longer yours: the report is kept for the record only. Call receive_task."
    elif done.task.status == IN_REVIEW:
        follow_up = "It waits for review. Call receive_task for other work meanwhile."
    return Submitted(
        accepted=not done.stale,
        duplicate=done.duplicate,
        stale_attempt=done.stale,
        task_state=done.task.status,
        next=follow_up,
    )


@command(group="core", writes=False, always_load=True)
async def get_reports(
    bus: Bus,
    status_filter: Annotated[
        Literal["", "completed", "failed", "blocked"], Param("Only reports with this status.")
    ] = "",
    agent_filter: Annotated[str, Param("Only reports on tasks of this agent or worker.", max_chars=200)] = "",
    include_processed: Annotated[bool, Param("Also acknowledged ones.")] = False,
    task_id: Annotated[str, Param("Reports of one task, whole, also of former attempts.", max_chars=60)] = "",
    wait_s: Annotated[
        int, Param("With task_id: seconds to wait for its report, 0 to 50.", low=0, high=50, clamp=True)
    ] = 0,
    limit: Annotated[int, Param("Rows at most, 1 to 100.", low=1, high=100)] = 20,
    cursor: Annotated[str, Param("From the last answer, for the next page.", max_chars=100)] = "",
) -> Reports:
    """Read reports; with task_id and wait_s=45 wait for one result. Next: acknowledge_report, which also starts the
    task's chain.
    """
    if task_id:
        await waits.on_thread(partial(find.need, bus, task_id))
        await waits.until(bus, lambda _: reading.current_report(bus, task_id), wait_s)
        return await waits.on_thread(partial(_of_task, bus, task_id, cursor))
    agent = ids.check_agent(agent_filter, "agent_filter") if agent_filter else ""
    return await waits.on_thread(partial(_page, bus, status_filter, agent, include_processed, limit, cursor))


@resource("bus://reports", group="core")
def reports_document(bus: Bus) -> Reports:
    """The first page of reports that wait for a verdict, as get_reports shows them."""
    return _page(bus, "", "", False, 20, "")


@resource("bus://report/{task_id}", group="core", complete=choices.task_ids)
def report_document(bus: Bus, task_id: str) -> Reports:
    """The reports of one task, as get_reports with its id shows them; none yet is an empty list."""
    return _of_task(bus, task_id, "")


def _of_task(bus: Bus, task_id: str, cursor: str) -> Reports:
    state = find.need(bus, task_id).task.status
    found = reading.reports_of(bus, task_id)
    number, _, offset = cursor.partition(":")
    start = int(number) if number.isdecimal() else 0
    rows: list[dict[str, Any]] = []
    used = 0
    for index, report in enumerate(found[start:], start):
        row, rest = reading.whole_row(report, offset if index == start else "", paging.ROOM - used - 1500)
        rows.append(row)
        used += paging.size(row)
        if rest or used > paging.ROOM - 2500:
            following = f"{index}:{rest}" if rest else f"{index + 1}:" if index + 1 < len(found) else ""
            return Reports(reports=rows, task_state=state, cursor=following, next=_reading_on(following))
    hint = (
        f"acknowledge_report(task_id={task_id}) when you have used it."
        if found
        else "No report yet: call again with wait_s=45."
    )
    return Reports(reports=rows, task_state=state, cursor="", next=hint)


def _reading_on(cursor: str) -> str:
    return "Call again with this cursor for the rest." if cursor else "acknowledge_report when you have used them."


def _page(bus: Bus, status: str, agent: str, processed: bool, limit: int, cursor: str) -> Reports:
    reports = reading.reports(bus, status, agent, processed, cursor)
    rows, more = paging.take(reports, limit, reading.short_row)
    last = str(rows[-1].pop("_cursor")) if more and rows else ""
    for row in rows:
        row.pop("_cursor", None)
    hint = (
        "Call again with this cursor for more."
        if more
        else "get_reports(task_id=…) shows one whole; acknowledge_report decides."
    )
    return Reports(reports=rows, task_state="", cursor=last, next=hint)


@command(group="core", writes=True, idempotent=True)
def acknowledge_report(
    bus: Bus,
    task_id: Annotated[str, Param("The task whose report you have read.", max_chars=60)],
    verdict: Annotated[Literal["accept", "rework"], Param("rework: the task goes back with your comment.")] = "accept",
    comment: Annotated[
        str, Param("What is to be done better, or an answer to a blocked task.", max_chars=SUMMARY_CHARS)
    ] = "",
) -> Acknowledged:
    """Decide on a report: accept ends the task and dispatches the next ones of its chain; rework gives it back with a
    comment.
    """
    found = find.need(bus, task_id)
    if verdict == "accept" and found.task.status == IN_REVIEW and _is_worker(bus, found.task.report or {}):
        raise BusError(
            "not_yours",
            f"the worker of {task_id} cannot accept its own work.",
            "The sender or a person reviews it.",
        )
    task, already = finish.judge(bus, task_id, verdict, comment, bus.caller.agent or bus.caller.channel)
    next_ids = reading.chain_ids(bus, task) if verdict == "accept" else []
    follow_up = (
        f"The chain went on: {', '.join(next_ids[:5])}." if next_ids else "Nothing else is to be done for this task."
    )
    if verdict == "rework":
        follow_up = "It is pending again; the worker sees your comment."
    return Acknowledged(
        task_id=task_id,
        verdict=verdict,
        already=already,
        task_state=task.status,
        dispatched=next_ids,
        next=follow_up,
    )


def _is_worker(bus: Bus, report: dict[str, Any]) -> bool:
    worker = ids.agent_of(str(report.get("worker", "")))
    return bool(bus.caller.agent) and ids.same_name(bus.caller.agent, worker)
