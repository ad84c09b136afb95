"""The notes that show tasks, reports and agents: what stands in their properties and regions. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_bus.domain import inert
from agent_bus.domain.inert import Plain, Value, fence, flat
from agent_bus.domain.task import BLOCKED, DEAD_LETTER, IN_REVIEW, PENDING_APPROVAL, TERMINAL, Task

Say = Callable[..., str]
Local = Callable[[str], str]
"""A time stamp of a document as the owner host's local time, `2026-12-01T18:30:00`; "" for none."""
_CALLOUTS = {
    PENDING_APPROVAL: "warning", BLOCKED: "question", DEAD_LETTER: "danger", IN_REVIEW: "question",
    "in_progress": "info",
    "completed": "success", "failed": "failure", "cancelled": "abstract", "rejected": "abstract", "expired": "abstract",
}  # fmt: skip
NEEDS_YOU = (PENDING_APPROVAL, BLOCKED, IN_REVIEW, DEAD_LETTER)


@dataclass(frozen=True)
class Mirror:
    """A note as it shall be.

    Args:
        kind, id: which note it is, wherever it lies.
        path: where it lies in the bus folder, without `.md`.
        properties: those that are ours, in order; `ab_rev` is not among them.
        regions: text by name, in order; each text ends in a line feed.
        human: the part below, written once.
    """

    kind: str
    id: str
    path: str
    properties: tuple[tuple[str, Value], ...]
    regions: Mapping[str, str]
    human: str


@dataclass(frozen=True)
class Deciding:
    """What a person can decide in a task's note, and what became of what they decided.

    Args:
        req: the nonce of what is asked; "" if nothing is.
        here: whether an approval may be given in the note; `open`: whether anything may be decided in notes.
        fault: why nothing is done as the note stands, in words; "" if nothing is wrong.
        log: the outcomes, oldest first, each a line and the text that it delivered; None leaves the log as it is.
    """

    req: str = ""
    here: bool = True
    open: bool = True
    fault: str = ""
    log: Sequence[tuple[str, str]] | None = None


def head(kind: str, id: str, title: str, *more: tuple[str, Value]) -> tuple[tuple[str, Value], ...]:
    """The properties that every note of ours has, then its own."""
    return (
        ("aliases", [title]),
        ("tags", [Plain(f"agent-bus/{kind}")]),
        ("cssclasses", [Plain("agent-bus")]),
        ("publish", False),
        ("ab_kind", Plain(kind)),
        ("ab_id", id if kind in ("agent", "room", "room-transcript") else Plain(id)),
        *more,
    )


def task_note(task: Task, say: Say, local: Local, deciding: Deciding = Deciding()) -> Mirror:
    """The note of a task."""
    title = inert.title(task.instruction)
    approval = task.approval or {}
    updated = str(task.history[-1].get("at", "")) if task.history else task.created_at
    ended = task.status in TERMINAL
    more: list[tuple[str, Value]] = [
        ("ab_title", title),
        ("ab_status", Plain(task.status)),
        ("ab_from", task.sender),
        ("ab_to", task.to),
        ("ab_priority", Plain(task.priority)),
        ("ab_created", Plain(local(task.created_at))),
        ("ab_updated", Plain(local(updated))),
        *([("ab_finished", Plain(local(updated)))] if ended else []),
        ("ab_attempt", task.attempt),
        ("ab_approval", Plain(_approval_word(task))),
        ("ab_categories", [str(one) for one in approval.get("categories") or []]),
        ("ab_req", Plain(deciding.req)),
        ("ab_approve", False),
        ("ab_decision", ""),
        ("ab_after", [f"[[{one.get('id', '')}]]" for one in task.depends_on]),
    ]
    regions = {"body": _task_body(task, say, deciding)}
    if deciding.log is not None:
        regions["log"] = _log(deciding.log, say)
    return Mirror("task", task.task_id, f"notes/tasks/{task.task_id}", head("task", task.task_id, title, *more),
                  regions, f"\n{say('mirror.decision')}\n\n{say('mirror.notes')}\n")  # fmt: skip


def _log(log: Sequence[tuple[str, str]], say: Say) -> str:
    lines = "".join(f"- {line}\n" + (fence(text) if text else "") for line, text in log)
    return f"\n{say('mirror.log')}\n{lines}"


def _approval_word(task: Task) -> str:
    state = str((task.approval or {}).get("state", ""))
    if task.status == PENDING_APPROVAL:
        return "open"
    return {"granted": "approved", "denied": "rejected"}.get(state, "none")


def _task_body(task: Task, say: Say, deciding: Deciding) -> str:
    rows = [*([f"**{deciding.fault}**"] if deciding.fault else []), *_why(task, say, deciding)]
    parts = [callout(_CALLOUTS.get(task.status, "note"), say(f"mirror.state.{task.status}"), rows)]
    parts.append(f"\n{say('mirror.instruction')}\n{shown(task.instruction, task.task_id, say)}")
    if task.comment and str(task.comment.get("text", "")):
        parts.append(f"\n{say('mirror.comment')}\n{fence(str(task.comment['text']))}")
    if task.report is not None:
        name = "mirror.question" if task.status == BLOCKED else "mirror.report"
        parts.append(f"\n{say(name)}\n{shown(str(task.report.get('summary', '')), task.task_id, say)}")
        parts.append(f"\n[[{task.task_id}-report]]\n")
    return "".join(parts)


def _why(task: Task, say: Say, deciding: Deciding) -> list[str]:
    """What a person should know beside the state: why it does not move, who has it, how they decide."""
    found = []
    terms = ", ".join(str(term) for term in (task.approval or {}).get("terms") or [])
    if task.status == PENDING_APPROVAL and terms:
        found.append(say("mirror.terms", terms=flat(terms, 300)))
    if task.lease is not None:
        found.append(say("mirror.worker", worker=flat(task.lease.worker)))
    if task.reason and task.status in (DEAD_LETTER, "failed", "cancelled", "rejected", "expired"):
        found.append(say("mirror.reason", reason=flat(task.reason, 300)))
    if not deciding.open and task.status in NEEDS_YOU:
        return [*found, say("mirror.not_here", task_id=task.task_id)]
    approve = "approve_how" if deciding.here else "approve_elsewhere"
    how = {PENDING_APPROVAL: approve, IN_REVIEW: "review_how", BLOCKED: "answer_how", DEAD_LETTER: "dead_how"}.get(
        task.status
    )
    return [*found, *([say(f"mirror.{how}", task_id=task.task_id)] if how else [])]


def report_note(task: Task, say: Say, local: Local) -> Mirror | None:
    """The note of a task's report; None if it has none."""
    if task.report is None:
        return None
    report = task.report
    title = say("mirror.report_title", title=inert.title(task.instruction))[: inert.TITLE_CHARS]
    at, worker, status = (
        str(report.get("completed_at", "")),
        str(report.get("worker", "")),
        str(report.get("status", "")),
    )
    own: list[tuple[str, Value]] = [
        ("ab_title", title),
        ("ab_task", f"[[{task.task_id}]]"),
        ("ab_from", worker),
        ("ab_status", Plain(status)),
        ("ab_attempt", task.attempt),
        ("ab_finished", Plain(local(at))),
        ("ab_needs_review", bool(report.get("needs_review", False))),
    ]
    kind = {"completed": "success", "failed": "failure"}.get(status, "question")
    first = f"{say(f'mirror.state.{status}')} · {flat(worker)} · {local(at).replace('T', ' ')[:16]}"
    parts = [callout(kind, first, []), f"\n{shown(str(report.get('summary', '')), task.task_id, say)}"]
    artifacts = [str(one) for one in report.get("artifacts") or []]
    if artifacts:
        parts.append(f"\n{say('mirror.artifacts')}\n{fence(chr(10).join(artifacts))}")
    name = f"{task.task_id}-report"
    return Mirror("report", name, f"notes/reports/{name}", head("report", name, title, *own),
                  {"body": "".join(parts)}, f"\n{say('mirror.notes')}\n")  # fmt: skip


def agent_note(name: str, stem: str, status: Mapping[str, Any], waiting: int, say: Say) -> Mirror:
    """The note of an agent.

    Args:
        stem: the note's name: that of the agent, or a shorter one that no other agent has.
        status: its document, {} if it never said anything.
        waiting: how many tasks wait for it.
    """
    state = str(status.get("state") or "–")
    current, last = str(status.get("current_task_id") or ""), str(status.get("last_completed_task") or "")
    own: list[tuple[str, Value]] = [
        ("ab_status", inert.one_line(state)),
        ("ab_task", f"[[{current}]]" if current else ""),
    ]
    rows = [say("mirror.task_in_hand", link=f"[[{current}]]")] if current else []
    rows += [say("mirror.last_task", link=f"[[{last}]]")] if last else []
    body = callout("info", f"{flat(name)} · {flat(state)}", [*rows, say("mirror.waiting_for", n=waiting)])
    return Mirror("agent", name, f"notes/agents/{stem}", head("agent", name, inert.one_line(name), *own),
                  {"body": body}, f"\n{say('mirror.notes')}\n")  # fmt: skip


def callout(kind: str, title: str, rows: Sequence[str]) -> str:
    """A callout of the app's own kinds; title and rows are inert already."""
    return f"> [!{kind}] {title}\n" + "".join(f"> {row}\n" for row in rows)


def shown(text: str, task_id: str, say: Say) -> str:
    """A long text in its fence, with a pointer to the rest."""
    left = len(text) - inert.SHOWN_CHARS
    more = say("mirror.more", n=f"{left:,}", task_id=task_id) if left > 0 else ""
    return fence(text) + (f"\n{more}\n" if more else "")
