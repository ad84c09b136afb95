"""The prompt file of a run's next process: what the bus knows of the task, as launchers/prompt.py wants it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain.outcome import task_effect
from agent_bus.domain.run import Run
from agent_bus.domain.task import Task
from agent_bus.launchers import prompt, workfiles
from agent_bus.launchers.prompt import Brief, Previous
from agent_bus.operations import runs
from agent_bus.operations.launchable import Launchable
from agent_bus.texts import choose_language


def write(
    bus: Bus, agent: Launchable, run: Run, task: Task, resumed: bool, runtime_s: float, earlier: Sequence[Run]
) -> None:
    """Writes `<n>.prompt`, and `<n>.order` with the whole order if it is too long for the prompt.

    Raises:
        BusError: `unavailable` in the system's words.
    """
    assert bus.layout is not None
    last = earlier[-1] if earlier else None
    brief = Brief(
        agent=agent.name,
        role=agent.settings.role,
        root=str(bus.layout.root),
        task_id=task.task_id,
        lease_id=run.lease_id,
        worker=run.worker,
        work_dir=run.work_dir or agent.settings.work_dir,
        sender=task.sender or "somebody without a name",
        minutes=max(1, int(runtime_s // 60)),
        instruction=task.instruction,
        context=_context(task),
        previous=tuple(_previous(task, last)),
        language=_language(bus, agent),
        resumed=resumed,
        nudge=run.why_again == "no_report",
        cli_first=last is not None
        and bool(last.first_byte_at)
        and not last.first_call_at
        and last.outcome != "reported",
    )
    order = runs.file(bus, run, "order")
    made = prompt.compose(brief, lambda: secrets.token_hex(8), str(order))
    files = {runs.file(bus, run, "prompt"): made.text}
    workfiles.write(files | ({order: made.whole} if made.whole else {}))


def _context(task: Task) -> str:
    """The context as JSON text, without the result of the step before, which is a part of its own."""
    value = task.context
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k != "previous"} or None
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=1)


def _previous(task: Task, last: Run | None) -> Iterator[Previous]:
    before: Any = task.context.get("previous") if isinstance(task.context, dict) else None
    if before is not None:
        author = str(before.get("task_id", "")) if isinstance(before, dict) else ""
        yield Previous("result", author or "the step before", json.dumps(before, ensure_ascii=False, indent=1))
    if task.comment and task.comment.get("text"):
        yield Previous(_kind(task), str(task.comment.get("by") or "somebody"), str(task.comment["text"]))
    if last is not None and task_effect(last.outcome) == "crash":
        yield Previous("crash", "bus", "\n".join(t for t in (f"{last.outcome}: {last.reason}", last.tail) if t))


def _kind(task: Task) -> Any:
    """A comment on finished work is a rework; one on a question, or given with a retry, is an answer."""
    events = [h for h in task.history if h.get("event") in ("rework", "retry")]
    return "rework" if events and events[-1]["event"] == "rework" else "answer"


def _language(bus: Bus, agent: Launchable) -> str:
    own = agent.settings.language
    return own if own != "auto" else choose_language(bus.settings.language, os.environ)
