"""Reports as readers get them: pages in order, one task's whole history of reports, and what a chain has dispatched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.domain.lease import GIVING, held_leases
from agent_bus.domain.task import Task
from agent_bus.operations import find
from agent_bus.operations.settle import pending_report
from agent_bus.store.port import Unreadable

_SUMMARY_CHARS = 400
_FOR_THE_BUS = ("history", "history_cut", "lease", "approval", "report", "verdict", "next_tasks", "schema", "step")


def current_report(bus: Bus, task_id: str) -> dict[str, Any] | None:
    """The report that a task embeds now; None while it is awaited."""
    found = find.find(bus, task_id)
    return found.task.report if found else None


def reports_of(bus: Bus, task_id: str) -> list[dict[str, Any]]:
    """All reports of one task: the current one first, then those of former attempts and stale ones, newest first.

    Former files are found by name (task and step, task and lease), so that the number of other reports costs nothing.
    """
    found = find.find(bus, task_id)
    if found is None:
        return []
    task = found.task
    current = task.report or getattr(pending_report(bus, task_id), "value", None)
    former = [_read(bus, f"reports/processed/{task_id}.{step}") for step in range(1, task.step + 1)]
    stale = [_read(bus, f"reports/stale/{task_id}.{held}") for held in sorted(held_leases(task))]
    others = [f for f in former if f] + [{**s, "stale": True} for s in stale if s]
    others = [o for o in others if not current or o.get("lease_id") != current.get("lease_id")]
    return ([current] if current else []) + sorted(others, key=lambda r: -int(r.get("step") or 0))


def reports(bus: Bus, status: str, agent: str, processed: bool, cursor: str) -> Iterator[dict[str, Any]]:
    """Reports in order of their ids after a cursor; each with its own cursor under `_cursor`."""
    keys = list(bus.store.keys("reports/pending"))
    if processed:
        keys += bus.store.keys("reports/processed")
    for key in sorted(keys, key=lambda k: k.rpartition("/")[2]):
        name = key.rpartition("/")[2]
        if cursor and name <= cursor:
            continue
        value = _read(bus, key)
        if value and (not status or value.get("status") == status) and (not agent or _concerns(bus, value, agent)):
            yield {**value, "_cursor": name, "processed": key.startswith("reports/processed")}


def short_row(report: dict[str, Any]) -> dict[str, Any]:
    """A report for a list: the summary's beginning, five artifacts."""
    summary, artifacts = str(report.get("summary", "")), report.get("artifacts") or []
    row = {
        **report,
        "summary": paging.cut(summary, _SUMMARY_CHARS),
        "artifacts": [paging.brief(str(a), 240) for a in artifacts[:5]],
    }
    if len(summary) > _SUMMARY_CHARS:
        row["summary_chars"] = len(summary)
    if len(artifacts) > 5:
        row["artifacts_count"] = len(artifacts)
    return paging.slim(row, 2500)


def whole_row(report: dict[str, Any], cursor: str, room: int) -> tuple[dict[str, Any], str]:
    """A report in full, as far as the room goes, and the cursor to its rest: summary first, then artifacts."""
    text = str(report.get("summary", ""))
    artifacts = [str(a) for a in report.get("artifacts") or []]
    if not cursor and paging.size(report) <= max(room, 500):
        return report, ""
    whole = text + ("\n\n--- artifacts ---\n" + "\n".join(artifacts) if artifacts else "")
    row = paging.slim({k: v for k, v in report.items() if k not in ("summary", "artifacts")}, 300, 900)
    part, rest = paging.slice_text(whole, cursor, max(room - paging.size(row) - 150, 500))
    if cursor:
        return {"task_id": report.get("task_id"), "summary_part": part, "from_character": int(cursor)}, rest
    row |= {"summary": part + ("…" if rest else ""), "summary_chars": len(text), "artifacts": []}
    return row | ({"artifacts_count": len(artifacts)} if artifacts else {}), rest


def task_for_worker(task: Task, cursor: str) -> tuple[dict[str, Any], str]:
    """A task as its worker sees it, and the cursor to the rest: a long one comes in parts.

    Raises:
        BusError: `invalid` for a bad cursor.
    """
    value = {k: v for k, v in task.value().items() if k not in _FOR_THE_BUS}
    if not cursor and paging.size(value) <= paging.ROOM - 600:
        return value, ""
    whole = task.instruction + "".join(f"\n\n--- {name} ---\n{text}" for name, text in _further(task) if text)
    row = {k: v for k, v in value.items() if k not in ("instruction", "context", "comment")}
    row = paging.slim(row, 300, 2500) | {"instruction_chars": len(task.instruction), "context": None}
    part, rest = paging.slice_text(whole, cursor, paging.ROOM - paging.size(row) - 250)
    if cursor:
        return {"task_id": task.task_id, "instruction_part": part, "from_character": int(cursor)}, rest
    return row | {"instruction": part + ("…" if rest else "")}, rest


def without_leases(task: Task) -> dict[str, Any]:
    """The task's document without lease ids: who knows one may report in its holder's name."""
    value = task.value()
    value["history"] = [
        {k: v for k, v in h.items() if k != "note" or h.get("event") not in GIVING} for h in task.history
    ]
    return value if task.lease is None else value | {"lease": {k: v for k, v in value["lease"].items() if k != "id"}}


def task_document(task: Task) -> dict[str, Any]:
    """The task's document in one answer: long texts are cut, with their lengths, the history to its end."""
    value = without_leases(task)
    if paging.size(value) <= paging.ROOM - 600:
        return value
    value |= {"history": value["history"][-5:], "history_count": len(task.history)}
    for name in ("instruction", "context"):
        text = value[name] if isinstance(value[name], str) else json.dumps(value[name], ensure_ascii=False)
        if paging.size(text) > 1800:
            value |= {name: paging.brief(text, 1800), f"{name}_chars": len(text)}
    if value.get("report"):
        value["report"] = short_row(value["report"])
    return paging.slim(value, 2500, paging.ROOM - 600)


def _further(task: Task) -> Iterator[tuple[str, str]]:
    context, comment = task.context, str((task.comment or {}).get("text", ""))
    is_text = context is None or isinstance(context, str)
    yield "context", (context or "") if is_text else json.dumps(context, ensure_ascii=False)
    yield "comment", comment


def chain_ids(bus: Bus, task: Task) -> list[str]:
    """The ids of the tasks that a task's chain has dispatched."""
    if task.verdict is None:
        return []
    doc = bus.store.get(f".bus/chains/{task.task_id}.{task.verdict.get('step', task.step)}")
    return [str(s["task_id"]) for s in doc.value.get("steps", []) if s.get("state") == "done"] if doc else []


def _concerns(bus: Bus, report: dict[str, Any], agent: str) -> bool:
    if ids.same_name(ids.agent_of(str(report.get("worker", ""))), agent):
        return True
    found = find.find(bus, str(report.get("task_id", "")))
    return found is not None and ids.same_name(found.task.to, agent)


def _read(bus: Bus, key: str) -> dict[str, Any] | None:
    try:
        doc = bus.store.get(key)
    except Unreadable:
        return None
    return doc.value if doc else None
