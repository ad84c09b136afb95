"""The task: its document, its states, and the one table of what may follow what.

Rules:
1. Status decides, the folder follows (`place`).
2. Every write is one transition (or a note within a state) and raises `step` by one; steps name the effects.
3. `attempt` counts leases and never falls; `crashes` counts the attempts that ended badly.
4. Terminal states never change; only a verdict on their report may be added.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agent_bus import ids
from agent_bus.times import stamp

HISTORY = 200
NOTE_CHARS = 500
PRIORITIES = ("high", "normal", "low")

PENDING_APPROVAL, SCHEDULED, WAITING, PENDING = "pending_approval", "scheduled", "waiting", "pending"
IN_PROGRESS, IN_REVIEW, BLOCKED = "in_progress", "in_review", "blocked"
COMPLETED, FAILED, CANCELLED, REJECTED, EXPIRED = "completed", "failed", "cancelled", "rejected", "expired"
DEAD_LETTER = "dead_letter"

TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED, REJECTED, EXPIRED})
PARKED = frozenset({SCHEDULED, WAITING, BLOCKED, IN_REVIEW})
"""States whose documents lie in waiting/."""
STATES = (
    PENDING_APPROVAL, SCHEDULED, WAITING, PENDING, IN_PROGRESS, IN_REVIEW, BLOCKED,
    COMPLETED, FAILED, CANCELLED, REJECTED, EXPIRED, DEAD_LETTER,
)  # fmt: skip

READY = (PENDING, SCHEDULED, WAITING, BLOCKED)
"""Where a task goes that is free to run: now, later, after others, or nowhere (a dependency that can't be met)."""

TRANSITIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "approve": ((PENDING_APPROVAL,), READY),
    "reject": ((PENDING_APPROVAL,), (REJECTED,)),
    "expire": ((PENDING_APPROVAL, SCHEDULED, WAITING, PENDING), (EXPIRED,)),
    "come_due": ((SCHEDULED, WAITING), READY),
    "close_gate": ((PENDING, SCHEDULED, WAITING), (PENDING_APPROVAL,)),
    "receive": ((PENDING,), (IN_PROGRESS,)),
    "submit": ((IN_PROGRESS,), (COMPLETED, IN_REVIEW, FAILED, SCHEDULED, BLOCKED)),
    "release": ((IN_PROGRESS,), (PENDING, SCHEDULED, CANCELLED)),
    "recover": ((IN_PROGRESS,), (PENDING, DEAD_LETTER, CANCELLED)),
    "give_up": ((PENDING,), (DEAD_LETTER,)),
    "cancel": (
        (PENDING_APPROVAL, SCHEDULED, WAITING, PENDING, BLOCKED, IN_PROGRESS, DEAD_LETTER),
        (CANCELLED,),
    ),
    "accept": ((IN_REVIEW, BLOCKED), (COMPLETED, FAILED)),
    "rework": ((IN_REVIEW, BLOCKED), (PENDING,)),
    "retry": ((BLOCKED, DEAD_LETTER), (PENDING,)),
}
"""Event → (states it may start from, states it may lead to). docs/protocol.md's drawing is made from this."""


class NotAllowed(Exception):
    """The event cannot happen in the task's state: a fault of the caller's view of the world.

    Args:
        event: the event.
        status: the state the task is in.
    """

    def __init__(self, event: str, status: str) -> None:
        super().__init__(event, status)
        self.event = event
        self.status = status


class Record(BaseModel):
    """A frozen piece of a document that keeps the keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Holder(Record):
    """Who holds a lease: a process (all five fields), a launcher's run, an HTTP session, or only a label (pid 0)."""

    host: str = ""
    boot: str = ""
    pid_ns: str = ""
    pid: int = 0
    pid_started: str = ""
    session: str = ""
    run: str = ""


class Lease(Record):
    """The right to work on a task, for one holder, until a time."""

    id: str
    worker: str
    holder: Holder
    until: str
    called_at: str = ""


class Task(Record):
    """A task's document; seed keys first, the rest only when it says something (docs/protocol.md "Documents")."""

    task_id: str
    sender: str = Field("", alias="from")
    to: str
    instruction: str
    priority: str = "normal"
    context: Any = None
    status: str
    created_at: str = ""
    schema_version: int = Field(0, alias="schema")
    step: int = 0
    attempt: int = 0
    crashes: int = 0
    max_attempts: int = 3
    retry_failed: bool = False
    lease: Lease | None = None
    report: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None
    comment: dict[str, Any] | None = None
    reason: str = ""
    not_before: str = ""
    expires_at: str = ""
    depends_on: list[dict[str, str]] = []
    dedupe_key: str = ""
    parent: str = ""
    thread: str = ""
    labels: list[str] = []
    limits: dict[str, Any] = {}
    next_tasks: list[dict[str, Any]] = []
    cancel: dict[str, Any] | None = None
    approval: dict[str, Any] | None = None
    history: list[dict[str, Any]] = []
    history_cut: int = 0

    @property
    def ended(self) -> bool:
        """Whether the state is terminal."""
        return self.status in TERMINAL

    def value(self) -> dict[str, Any]:
        """The document."""
        full = self.model_dump(by_alias=True)
        seed = {k: full.pop(k) for k in SEED_KEYS}
        return seed | {k: v for k, v in full.items() if k not in _DEFAULTS or v != _DEFAULTS[k]}


SEED_KEYS = ("task_id", "from", "to", "instruction", "priority", "context", "status", "created_at")
_DEFAULTS = {
    f.alias or n: f.get_default() for n, f in Task.model_fields.items() if n not in SEED_KEYS and n != "sender"
}


def read_task(value: Mapping[str, Any]) -> Task:
    """The task in a document.

    Raises:
        ValueError: a key has a wrong type, or the status is none of ours.
    """
    task = Task.model_validate(value)
    if task.status not in STATES:
        raise ValueError(f"status {task.status[:40]!r} is none of {', '.join(STATES)}")
    return task


def place(task: Task) -> str:
    """The key at which a task of this status belongs."""
    if task.status in (PENDING, IN_PROGRESS):
        return f"{inbox(task.to)}/{task.task_id}"
    if task.status == PENDING_APPROVAL:
        return f"approvals/{task.task_id}"
    if task.status in PARKED:
        return f"waiting/{task.task_id}"
    if task.status == DEAD_LETTER:
        return f"dead_letter/{task.task_id}"
    return f"archive/{ids.month_of(task.task_id)}/{task.task_id}"


def inbox(agent: str) -> str:
    """The prefix of an agent's inbox."""
    return f"inbox/{ids.folder_of(agent)}"


def may(task: Task, event: str) -> bool:
    """Whether the event is possible in the task's state."""
    return task.status in TRANSITIONS[event][0]


def follow(task: Task, event: str, status: str, by: str, now: datetime, note: str = "", **changes: Any) -> Task:
    """The task after an event: new status, `step` + 1, a line of history.

    Raises:
        NotAllowed: the table has no such transition.
    """
    sources, targets = TRANSITIONS[event]
    if task.status not in sources or status not in targets:
        raise NotAllowed(event, task.status)
    return note_event(task, event, by, now, note, status=status, **changes)


def note_event(task: Task, event: str, by: str, now: datetime, note: str = "", **changes: Any) -> Task:
    """The task after an event within its state: `step` + 1 and a line of history."""
    line = {"at": stamp(now), "event": event, "by": by}
    note = cut_note(note)
    history = [*task.history, line | {"note": note} if note else line]
    cut = max(0, len(history) - HISTORY)
    return task.model_copy(
        update={
            "step": task.step + 1,
            "history": history[cut:],
            "history_cut": task.history_cut + cut,
            **changes,
        }
    )


def cut_note(note: str) -> str:
    """A note as the history keeps it: 200 of them must fit into a document."""
    return note if len(note) <= NOTE_CHARS else f"{note[:NOTE_CHARS]}…"


def rank(priority: str) -> int:
    """0 high, 1 normal, 2 low; a word that is none of them counts as normal."""
    return PRIORITIES.index(priority) if priority in PRIORITIES else 1


def aged_rank(priority: str, waited_s: float, ageing_s: int) -> int:
    """The rank after ageing: one step up for each `ageing_s` seconds waited (0 = never), so that low never starves."""
    steps = int(waited_s // ageing_s) if ageing_s and waited_s > 0 else 0
    return max(0, rank(priority) - steps)
