"""Chains on documents: frozen when the task's end is first seen, each step dispatched once (docs/protocol.md "Chains").

`.bus/chains/<task_id>.<step>` holds each step's reserved id before any step is written. A step whose id is
reserved is to be written, one whose id is live or done has been. Whoever finds the document unfinished goes on.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import chain
from agent_bus.domain.task import Task
from agent_bus.errors import BusError
from agent_bus.operations import ledger
from agent_bus.operations.dispatch import Order, write
from agent_bus.operations.find import find_quietly
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

INTENDED, DONE, REFUSED = "intended", "done", "refused"
LATE = ".bus/late_chains"
"""Marks of tasks whose chain is being written after their verdict: whoever finds one runs the chain."""
_FOR_GOOD = ("invalid", "too_large")


def steps_of(bus: Bus, task: Task) -> list[dict[str, Any]]:
    """The chain of a task: what shared context says, else what rode in with it. A bad chain is none, and is
    journaled.
    """
    for source in (_shared(bus, task.task_id), task.next_tasks):
        if source:
            try:
                return chain.check_chain(source)
            except BusError as error:
                _note(bus, task, "chain.refused", str(error))
                return []
    return []


def has_steps(bus: Bus, task: Task) -> bool:
    """Whether anything is to be dispatched at this task's end, or has begun to be."""
    return bool(chain.chosen(steps_of(bus, task), chain.branch(task))) or _frozen(bus, task) is not None


def run(bus: Bus, task: Task) -> list[str]:
    """Dispatches the steps of a task that has ended with a verdict; the ids of the tasks that stand for them."""
    frozen = _frozen(bus, task) or _freeze(bus, task)
    if frozen is None:
        return []
    steps = [dict(s) for s in frozen.value["steps"]]
    if frozen.value.get("state") != DONE:
        for step in steps:
            if step["state"] == INTENDED:
                _run_step(bus, task, frozen, step)
        _finish(bus, frozen, steps)
    return [s["task_id"] for s in steps if s["state"] == DONE]


def mark_late(bus: Bus, task_id: str) -> None:
    """Says that a chain is about to be written for a task that may have its verdict; see `LATE`."""
    with suppress(Exists):
        bus.store.create(f"{LATE}/{task_id}", {"at": bus.stamp()})


def unmark_late(bus: Bus, task_id: str) -> None:
    """The chain has been run, or is not due yet."""
    doc = bus.store.get(f"{LATE}/{task_id}")
    if doc is not None:
        with suppress(Stale):
            bus.store.delete(doc)


def root_of(bus: Bus, task: Task) -> tuple[str, int]:
    """The first task of a chain of parents, and how many levels it is away (bounded)."""
    depth = 0
    while task.parent and depth <= chain.DEPTH:
        parent = find_quietly(bus, task.parent)
        if parent is None:
            break
        task, depth = parent.task, depth + 1
    return task.task_id, depth


def _run_step(bus: Bus, task: Task, frozen: Doc, step: dict[str, Any]) -> None:
    spec = step["spec"]
    extra = {"parent": task.task_id, "thread": task.thread, "next_tasks": spec.get("next_tasks", [])}
    order = Order(
        target=spec["target"],
        instruction=spec["instruction"],
        sender=task.sender,
        priority=spec.get("priority", "normal"),
        context=chain.step_context(spec, task),
        extra={k: v for k, v in extra.items() if v},
        chained=True,
    )
    for _ in range(3):
        try:
            sent = write(bus, order, step["task_id"])
        except BusError as error:
            if error.code not in _FOR_GOOD:
                raise
            step["state"] = REFUSED
            _note(bus, task, "chain.refused", str(error))
            return
        if sent is not None:
            step["state"] = DONE
            return
        step["task_id"] = _fresh_id(bus, frozen, step)
    raise BusError("busy", "a step of the chain found no id.", "Try again in a moment.")  # the chain stays unfinished


def _freeze(bus: Bus, task: Task) -> Doc | None:
    branch = chain.branch(task)
    chosen = chain.chosen(steps_of(bus, task), branch)
    if not chosen:
        return None
    problem = _limit(bus, task, len(chosen))
    steps = [
        {
            "path": str(i),
            "spec": s,
            "task_id": "" if problem else ledger.reserve(bus, bus.now()),
            "state": REFUSED if problem else INTENDED,
        }
        for i, s in chosen
    ]
    value = {"task_id": task.task_id, "branch": branch, "state": INTENDED, "steps": steps} | (
        {"problem": problem} if problem else {}
    )
    try:
        made = bus.store.create(_key(task), value)
    except Exists:
        for step in steps:
            if step["task_id"]:
                ledger.set_void(bus, str(step["task_id"]))
        return bus.store.get(_key(task))
    if problem:
        _note(bus, task, "chain.refused", problem)
    return made


def _limit(bus: Bus, task: Task, more: int) -> str:
    """Why a chain may not go on, "" if it may: 20 levels and 200 tasks under one root (docs/protocol.md "Chains")."""
    root, depth = root_of(bus, task)
    if depth + 1 > chain.DEPTH:
        return f"the chain of {root} is {depth + 1} levels deep, the limit is {chain.DEPTH}"
    key = f".bus/chains/{root}.count"
    for _ in range(20):
        doc = bus.store.get(key)
        count = (int(doc.value["count"]) if doc else 0) + more
        if count > chain.TASKS:
            return f"the chain of {root} has {count} tasks, the limit is {chain.TASKS}"
        try:
            if doc is None:
                bus.store.create(key, {"count": count})
            else:
                bus.store.replace(doc, {"count": count})
            return ""
        except (Exists, Stale):
            continue
    return "the chain's counter is busy"


def _fresh_id(bus: Bus, frozen: Doc, step: dict[str, Any]) -> str:
    """A new id for a step whose own was voided, agreed upon in the frozen document first."""
    for _ in range(20):
        now = bus.store.get(frozen.key) or frozen
        theirs = next(s for s in now.value["steps"] if s["path"] == step["path"])
        if theirs["task_id"] != step["task_id"]:
            return str(theirs["task_id"])
        fresh = ledger.reserve(bus, bus.now())
        steps = [{**s, "task_id": fresh} if s["path"] == step["path"] else s for s in now.value["steps"]]
        try:
            bus.store.replace(now, {**now.value, "steps": steps})
            return fresh
        except Stale:
            ledger.set_void(bus, fresh)
    raise BusError("busy", "the chain is being run by others.", "Try again in a moment.")


def _finish(bus: Bus, frozen: Doc, steps: list[dict[str, Any]]) -> None:
    now = bus.store.get(frozen.key)
    if now is not None and now.value.get("state") != DONE:
        try:
            bus.store.replace(now, {**now.value, "state": DONE, "steps": steps})
        except Stale:
            return  # another run of the same chain has finished it: the same tasks stand for it


def _key(task: Task) -> str:
    step = (task.verdict or {}).get("step", task.step)
    return f".bus/chains/{task.task_id}.{step}"


def _frozen(bus: Bus, task: Task) -> Doc | None:
    return bus.store.get(_key(task)) if task.verdict is not None else None


def _shared(bus: Bus, task_id: str) -> Any:
    try:
        doc = bus.store.get(f"shared_context/{chain.KEY_PREFIX}{task_id}")
    except Unreadable:
        return None
    if doc is None:
        return None
    data = doc.value.get("data", doc.value)
    return data if isinstance(data, dict) else None


def _note(bus: Bus, task: Task, event: str, why: str) -> None:
    bus.journal.write(
        bus.now(),
        {"at": bus.stamp(), "event": event, "agent": task.to, "task_id": task.task_id, "outcome": why[:300]},
    )
