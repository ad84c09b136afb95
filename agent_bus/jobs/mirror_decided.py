"""What the note of a task says of deciding: the open request, what is wrong, and what became of former decisions."""

from __future__ import annotations

from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import wishes
from agent_bus.domain.inert import flat
from agent_bus.domain.mirrors import Deciding, Local
from agent_bus.domain.task import PENDING_APPROVAL, STATES, Task
from agent_bus.notes import ledger
from agent_bus.operations import requests
from agent_bus.texts import Texts


def deciding(bus: Bus, task: Task, texts: Texts, local: Local) -> Deciding:
    """What is shown in a task's note.

    Raises:
        BusError: the request's document cannot be written.
    """
    asked, settings, protected = requests.of_task(bus, task), bus.settings.vault, bus.settings.approval.protected
    doc = ledger.read(bus, "task", task.task_id)
    value = doc.value if doc else {}
    fault, log = str(value.get("fault") or ""), value.get("log")
    categories = [str(one) for one in (task.approval or {}).get("categories") or []]
    risky = categories if task.status == PENDING_APPROVAL else []
    here = wishes.allowed(wishes.APPROVE, settings.authority, risky, protected)
    req = asked.req if asked else ""
    lines = [(_line(one, task.task_id, texts, local), str(one.get("text") or "")) for one in log or []]
    words = texts.say(f"deciding.fault.{fault}", req=req) if fault else ""
    return Deciding(req, here, settings.authority != "none", words, lines if log else None)


def _line(one: dict[str, Any], task_id: str, texts: Texts, local: Local) -> str:
    status = str(one.get("status", ""))
    return texts.say(
        f"deciding.{one.get('name')}",
        at=local(str(one.get("at", ""))).replace("T", " ")[:16],
        status=texts.say(f"mirror.state.{status}") if status in STATES else flat(status),
        why=flat(str(one.get("why", "")), 300),
        verb=one.get("verb", ""),
        task_id=task_id,
    )
