"""Looks at a whole bus at rest: is every task exactly once where it belongs, and does all the rest agree with it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import dependency
from agent_bus.domain.task import IN_PROGRESS, PENDING, WAITING, Task, place, read_task
from agent_bus.operations import ledger
from agent_bus.store.port import Doc

Place = tuple[str, Task]


def tasks(bus: Bus) -> dict[str, list[Place]]:
    """Every document in a task folder, by id."""
    found: dict[str, list[Place]] = {}
    for folder in task_folders(bus):
        for key in bus.store.keys(folder):
            doc = bus.store.get(key)
            if doc is not None:
                found.setdefault(doc.name, []).append((key, read_task(doc.value)))
    return found


def task_folders(bus: Bus) -> list[str]:
    """The prefixes under which tasks lie."""
    nested = [f"{top}/{name}" for top in ("inbox", "archive") for name in bus.store.folders(top)]
    return [*nested, "approvals", "waiting", "dead_letter"]


def audit(bus: Bus, stopped: bool = False) -> list[str]:
    """What is wrong, in words; a chain may be unfinished while the bus is stopped."""
    found = tasks(bus)
    wrong = [f"{name} is in {[key for key, _ in places]}" for name, places in found.items() if len(places) != 1]
    known = {name: places[0] for name, places in found.items()}
    for key, task in known.values():
        wrong += _about_task(bus, key, task, stopped)
        if task.status == WAITING and all(dependency.outcome(known[d["task"]][1]) for d in task.depends_on):
            wrong.append(f"{task.task_id} waits for what has ended")
    wrong += _about_ledger(bus, known)
    wrong += [f"{key} is nobody's" for key in bus.store.keys("reports/pending") if key.rpartition("/")[2] not in known]
    return wrong + list(_about_chains(bus, known, stopped))


def _about_task(bus: Bus, key: str, task: Task, stopped: bool) -> Iterator[str]:
    name = task.task_id
    if key != place(task):
        yield f"{name} is {task.status} and lies in {key}"
    received = sum(line["event"] == "receive" for line in task.history)
    if not task.history_cut and task.attempt != received:
        yield f"{name} has attempt {task.attempt} after {received} leases"
    if (task.lease is not None) < (task.status == IN_PROGRESS):
        yield f"{name} is in progress without a lease"
    yield from _about_reports(bus, task, stopped)


def _about_reports(bus: Bus, task: Task, stopped: bool) -> Iterator[str]:
    name, report = task.task_id, task.report
    there = bus.store.get(f"reports/pending/{name}")
    if report is None or task.verdict is not None:
        if there is not None and not stopped:
            yield f"{name} is {task.status}, but a report of step {there.value.get('step')} is pending"
        kept = bus.store.exists(f"reports/processed/{name}.{report.get('step')}") if report else True
        if not kept and there is None:
            yield f"{name} has a verdict, but its report is not kept"
    elif task.status != PENDING and (there is None or there.value != report):
        yield f"{name} is {task.status}, but its report is not the pending one"


def _about_ledger(bus: Bus, known: dict[str, Place]) -> Iterator[str]:
    entries: dict[str, Doc] = {}
    for day in bus.store.folders(".bus/ledger"):
        entries |= {doc.name: doc for doc in bus.store.list(f".bus/ledger/{day}")}
    for name, (key, task) in known.items():
        state = entries[name].value["state"] if name in entries else "missing"
        if state != (ledger.DONE if task.ended else ledger.LIVE):
            yield f"{name} is {task.status} in {key} and {state} in the ledger"
    for name in entries.keys() - known.keys():
        if entries[name].value["state"] not in (ledger.VOID, ledger.RESERVED):
            yield f"{name} is {entries[name].value['state']} in the ledger and nowhere else"


def _about_chains(bus: Bus, known: dict[str, Place], stopped: bool) -> Iterator[str]:
    steps: dict[str, list[str]] = {}
    for doc in bus.store.list(".bus/chains"):
        if "steps" in doc.value:
            planned = [s["task_id"] for s in doc.value["steps"] if s["state"] != "refused"]
            steps.setdefault(doc.value["task_id"], []).extend(planned)
            if doc.value["state"] != "done" and not stopped:
                yield f"the chain {doc.key} is unfinished"
    children: dict[str, list[str]] = {}
    for name, (_, task) in known.items():
        if task.parent and _previous(task) == task.parent:  # a retry has a parent too, and is no step
            children.setdefault(task.parent, []).append(name)
    for parent in steps.keys() | children.keys():
        due, made = sorted(steps.get(parent, [])), sorted(children.get(parent, []))
        if due != made and not stopped:
            yield f"the chain of {parent} has planned {due} and dispatched {made}"


def _previous(task: Task) -> str:
    """The task whose result a step was given."""
    context = task.context if isinstance(task.context, dict) else {}
    return str(context.get("previous", {}).get("task_id", ""))


def reports(bus: Bus) -> list[dict[str, Any]]:
    """Every report that is kept anywhere."""
    return [doc.value for folder in ("pending", "processed", "stale") for doc in bus.store.list(f"reports/{folder}")]
