"""A run: one started process tree for one task. Its document, its states, and what its end means for task and agent.

Rules:
1. A run is made (`starting`) before its task is claimed, and ends (`ended`, with an outcome) before its task moves on.
2. Done means that a report of the run's lease is on the bus; exit code and last words prove nothing.
3. `starting` comes back only for a further process of the same run (a nudge, a session that had to be made anew).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from pydantic import Field

from agent_bus.domain.outcome import UNSPENT
from agent_bus.domain.task import Record, Task
from agent_bus.times import parse_stamp, stamp

STARTING, RUNNING, ENDED = "starting", "running", "ended"
TRANSITIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "spawn": ((STARTING,), (RUNNING,)),
    "again": ((RUNNING,), (STARTING,)),
    "adopt": ((STARTING, RUNNING), (STARTING, RUNNING)),
    "note": ((STARTING, RUNNING), (STARTING, RUNNING)),
    "end": ((STARTING, RUNNING), (ENDED,)),
}
"""Event → (states it may start from, states it may lead to)."""

RUN_ID = re.compile(r"r-(t-\d{8}-\d{6}-\d{3,9})-(\d{1,6})(?:-[0-9a-f]{1,16})?", re.ASCII)
START_FAILURES = 3
"""Starts of one task that may fail before it is a dead letter."""
TAIL_LINES = 40


class Run(Record):
    """A run's document, `.bus/runs/<task_id>/<n>` (docs/vault-format.md)."""

    schema_version: int = Field(1, alias="schema")
    run_id: str
    task_id: str
    n: int
    attempt: int = 0
    lease_id: str
    agent: str
    worker: str
    launcher: str
    host: str
    owner: dict[str, Any] = Field(default_factory=dict)
    job: str = ""
    state: str = STARTING
    pid: int = 0
    pid_started: str = ""
    executable: str = ""
    argv_sha256: str = ""
    version: str = ""
    work_dir: str = ""
    account: str = ""
    thread: str = ""
    session_id: str = ""
    session_mode: str = "continue"
    resumed: bool = False
    healed: int = 0
    restarts: int = 0
    why_again: str = ""
    option: str = ""
    runtime_s: float = 0.0
    made_at: str = ""
    started_at: str = ""
    first_byte_at: str = ""
    first_call_at: str = ""
    warned_at: str = ""
    frozen_at: str = ""
    frozen_s: float = 0.0
    ended_at: str = ""
    retry_at: str = ""
    exit_code: int = -1
    signal: str = ""
    outcome: str = ""
    reason: str = ""
    tail: str = ""
    cost_usd: float = 0.0
    cost_known: bool = False
    tokens: int = 0
    turns: int = 0
    denials: list[str] = Field(default_factory=list)
    nudges: int = 0
    log: str = ""
    log_from: int = 0

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.state != ENDED

    def value(self) -> dict[str, Any]:
        """The document."""
        return self.model_dump(by_alias=True)


class NotAllowed(Exception):
    """The event cannot happen in the run's state: somebody else was first."""


def follow(run: Run, event: str, state: str, **changes: Any) -> Run:
    """The run after an event.

    Raises:
        NotAllowed: the table has no such transition.
    """
    sources, targets = TRANSITIONS[event]
    if run.state not in sources or state not in targets:
        raise NotAllowed(event, run.state)
    return run.model_copy(update={"state": state, **changes})


def run_id(task_id: str, n: int, chance: str) -> str:
    """The id of a task's n-th run.

    Args:
        chance: hex characters. Two buses of one user may give the same task id in the same second, and the run id is
            the marker by which processes are found and ended: it must be nobody else's.
    """
    return f"r-{task_id}-{n}-{chance}"


def task_of(run_id: str) -> tuple[str, int]:
    """Task id and number of a run id; ("", 0) for what is none."""
    match = RUN_ID.fullmatch(run_id)
    return (match[1], int(match[2])) if match else ("", 0)


def void(run: Run, now: datetime, reason: str) -> Run:
    """The end of a run whose process never was."""
    return follow(run, "end", ENDED, outcome="void", reason=reason, ended_at=stamp(now))


def is_reported(task: Task, lease_id: str) -> bool:
    """Whether a report of this lease was taken, even if the task has moved on since."""
    if task.report is not None and task.report.get("lease_id") == lease_id:
        return True
    current = ""
    for line in task.history:
        if line.get("event") in ("receive", "adopt"):
            current = str(line.get("note", ""))
        elif line.get("event") == "submit" and current == lease_id:
            return True
    return False


def launches(runs: list[Run], task: Task) -> list[Run]:
    """The runs of a task that count: those that started, since a person last retried it."""
    retried = max((str(h.get("at", "")) for h in task.history if h.get("event") == "retry"), default="")
    return [r for r in runs if r.outcome not in UNSPENT and r.made_at >= retried]


def seconds_since(text: str, now: datetime) -> float:
    """Seconds since a stored time; infinity for one that cannot be read."""
    try:
        return (now - parse_stamp(text)).total_seconds()
    except ValueError:
        return float("inf")
