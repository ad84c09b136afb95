"""The approval gate around tasks: what is scanned, with which words, and when a passed task must be looked at again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import approval
from agent_bus.domain.approval import Hit, WordLists
from agent_bus.domain.task import Task
from agent_bus.ids import same_name


def look(
    bus: Bus, target: str, instruction: str, context: Any, sender: str, *, chained: bool = False
) -> tuple[Hit, ...]:
    """What makes a task wait for a person: risky words, or a sender whose orders the target does not take.

    Args:
        chained: `previous` in the context was put there by the bus: a result, no order, and not looked at.
    """
    hits = _words(bus, instruction + "\n" + "\n".join(_texts(context, "previous" if chained else "")))
    agent = next((a for n, a in bus.settings.agents.items() if same_name(n, target)), None)
    if agent and "*" not in agent.orders_from and not any(same_name(n, sender) for n in agent.orders_from):
        return (*hits, Hit(sender or "nobody", "sender"))
    return hits


def fingerprint(task: Task) -> str:
    """The SHA-256 of what a person approves: instruction, context and target."""
    return approval.fingerprint(task.instruction, task.context, task.to)


def check_again(bus: Bus, task: Task, known: str) -> tuple[Hit, ...]:
    """What stands against running a task now: nothing if its text is the one that passed.

    Args:
        known: the fingerprint that passed at dispatch, "" for a task that never passed (made by hand or by the seed).
    """
    now = fingerprint(task)
    if task.approval is not None and task.approval.get("state") == "granted":
        if approval.still_valid(task.approval, now):
            return ()
        found = look(bus, task.to, task.instruction, task.context, task.sender)
        return found or (Hit("text changed after the approval", "changed"),)
    if now == known:
        return ()
    return look(bus, task.to, task.instruction, task.context, task.sender)


def _words(bus: Bus, text: str) -> tuple[Hit, ...]:
    lists = bus.memo.get("words")
    if lists is None:
        gate = bus.settings.gate
        added = {"money": gate.money, "deletion": gate.deletion, **gate.extra}
        lists = bus.memo["words"] = WordLists.build({k: v for k, v in added.items() if v}, gate.off)
    return approval.scan(text, lists)


def _texts(context: Any, skip: str) -> Iterator[str]:
    """The texts of a context, but for one key on its top level."""
    if isinstance(context, str):
        yield context
    elif isinstance(context, dict):
        for key, value in context.items():
            if key != skip:
                yield from _texts(value, "")
    elif isinstance(context, list):
        for value in context:
            yield from _texts(value, "")
