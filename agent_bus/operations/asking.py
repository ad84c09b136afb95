"""The question to the person at a client: who may be asked about what, and in which words (docs/resources.md
"Being asked").

An answer comes through the client of an agent, which can answer by itself: so it never opens the protected categories,
never serves a run that the bus has started, and stands only for a text that was shown whole.
"""

from __future__ import annotations

import os

from pydantic_core import to_json

from agent_bus import host
from agent_bus.bus import Bus
from agent_bus.commands import Question
from agent_bus.domain.task import PENDING_APPROVAL, Task
from agent_bus.launchers.prompt import visible
from agent_bus.operations import gate
from agent_bus.texts import Texts, choose_language

SHOWN_CHARS = 4000
"""Nobody can judge more in a dialog; a longer text waits for a person elsewhere."""


def about_approval(bus: Bus, task: Task) -> Question | None:
    """The question whether a waiting task may run; None where a client is not to be asked."""
    record = task.approval or {}
    categories = {str(c) for c in record.get("categories") or []}
    if (
        task.status != PENDING_APPROVAL
        or bus.settings.approval.elicitation == "off"
        or not categories.isdisjoint(bus.settings.approval.protected)
        or _is_a_run(bus)
    ):
        return None
    if len(_order(task)) > SHOWN_CHARS:
        return None
    texts = _texts(bus)
    return Question(shown(bus, task), texts.say("ask.yes"), texts.say("ask.comment"), gate.fingerprint(task))


def shown(bus: Bus, task: Task) -> str:
    """A waiting task as a person sees it before they decide: whole, and nothing in it can pass for words of ours."""
    terms = (task.approval or {}).get("terms") or []
    return _texts(bus).say(
        "ask.approval",
        sender=visible(task.sender or "-"),
        target=visible(task.to),
        terms=", ".join(visible(str(term)) for term in terms),
        order="\n".join(f"> {line}" for line in visible(_order(task)).split("\n")),
        task_id=task.task_id,
    )


def _texts(bus: Bus) -> Texts:
    return Texts(choose_language(bus.settings.language, os.environ))


def _order(task: Task) -> str:
    return task.instruction if task.context is None else f"{task.instruction}\n\n{_context(task)}"


def _context(task: Task) -> str:
    return task.context if isinstance(task.context, str) else to_json(task.context, indent=2).decode("utf-8")


def _is_a_run(bus: Bus) -> bool:
    """Whether the caller is a worker that the bus has started; some clients hide that from their servers."""
    caller = bus.caller
    return bool(caller.run or caller.lease_id or (caller.process and host.set_above("AGENT_BUS_RUN_ID")))
