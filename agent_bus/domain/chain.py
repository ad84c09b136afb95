"""Chains: what is dispatched when a task ends (docs/protocol.md "Chains"). Written by agents, so checked like
any input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_bus import ids
from agent_bus.domain.task import COMPLETED, FAILED, PRIORITIES, Task
from agent_bus.errors import BusError, invalid, too_large

DEPTH = 20
TASKS = 200
INSTRUCTION_CHARS = 200_000
WHEN = ("completed", "failed", "always")
_KEYS = {"target", "instruction", "priority", "context", "when", "next_tasks"}
KEY_PREFIX = "task-chain-"


def check_chain(data: Any, name: str = "next_tasks") -> list[dict[str, Any]]:
    """The steps of a chain, checked whole.

    Args:
        data: `{"next_tasks": [...]}` or the list itself.

    Raises:
        BusError: `invalid` naming the step by its index path; `too_large` over 20 levels or 200 tasks.
    """
    steps = data.get("next_tasks") if isinstance(data, Mapping) else data
    if not isinstance(steps, list):
        good = '{"next_tasks": [{"target": "coder", "instruction": "write tests"}]}'
        raise invalid(name, "must be a list of tasks", f"For example {good}.")
    count = _check_steps(steps, name, 1)
    if count > TASKS:
        raise too_large(name, count, TASKS, "tasks")
    return steps


def branch(task: Task) -> str:
    """Which steps follow a task's end: `completed`, `failed`, or "" for none."""
    if task.status == COMPLETED:
        return "completed"
    return "failed" if task.status == FAILED else ""


def chosen(steps: list[dict[str, Any]], branch_name: str) -> list[tuple[int, dict[str, Any]]]:
    """The steps of a level that run on this branch, each with its index."""
    if not branch_name:
        return []
    return [(i, s) for i, s in enumerate(steps) if s.get("when", "completed") in (branch_name, "always")]


def step_context(step: Mapping[str, Any], task: Task) -> Any:
    """The context of a step's task: its own, with the result before it as data under `previous`."""
    report = task.report or {}
    previous = {
        "task_id": task.task_id,
        "status": report.get("status", task.status),
        "summary": report.get("summary", ""),
        "artifacts": report.get("artifacts", []),
    }
    context = step.get("context")
    if isinstance(context, Mapping):
        return {**context, "previous": previous}
    return {"text": context, "previous": previous} if context else {"previous": previous}


def texts(steps: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(target, instruction) of every step on every level; what the gate looks at."""
    for step in steps:
        yield step["target"], step["instruction"]
        yield from texts(step.get("next_tasks", []))


def _check_steps(steps: list[Any], name: str, level: int) -> int:
    if steps and level > DEPTH:
        raise too_large(name, level, DEPTH, "levels")
    count = 0
    for index, step in enumerate(steps):
        where = f"{name}[{index}]"
        _check_step(step, where)
        count += 1
        nested = step.get("next_tasks", [])
        if not isinstance(nested, list):
            raise invalid(f"{where}.next_tasks", "must be a list of tasks")
        count += _check_steps(nested, f"{where}.next_tasks", level + 1)
    return count


def _check_step(step: Any, where: str) -> None:
    if not isinstance(step, dict):
        raise invalid(where, "must be an object with target and instruction")
    if unknown := sorted(set(step) - _KEYS):
        raise invalid(f"{where}.{unknown[0][:40]}", "is unknown", f"Known are {', '.join(sorted(_KEYS))}.")
    for key in ("target", "instruction"):
        if not isinstance(step.get(key), str) or not step[key].strip():
            raise invalid(f"{where}.{key}", "must be a text that is not empty")
    if len(step["instruction"]) > INSTRUCTION_CHARS:
        raise too_large(f"{where}.instruction", len(step["instruction"]), INSTRUCTION_CHARS)
    try:
        ids.check_agent(step["target"], f"{where}.target")
    except BusError as error:
        raise invalid(f"{where}.target", error.message.partition(" ")[2].rstrip("."), error.hint) from None
    for key, words in (("priority", PRIORITIES), ("when", WHEN)):
        if step.get(key, words[0]) not in words:
            raise invalid(f"{where}.{key}", f"must be {', '.join(words[:-1])} or {words[-1]}", f'Use "{words[0]}".')
