"""The notes of months: a row for each task that ended and whose own note was put away."""

from __future__ import annotations

from collections.abc import Mapping

from agent_bus.domain.inert import flat
from agent_bus.domain.mirrors import Mirror, Say, head

PART_BYTES = 480 * 1024
"""A note must stay below 512 KiB, its properties and what a person writes below the table included."""


def row(task_id: str, worker: str, result: str, finished: str, title: str) -> str:
    """A task in one row; times as people here read them."""
    cells = (task_id, flat(worker), result, finished, flat(title))
    return f"| {' | '.join(cells)} |"


def rows(region: str) -> dict[str, str]:
    """The rows of a table by task."""
    found = (line.strip() for line in region.splitlines())
    return {line.split("|")[1].strip(): line for line in found if line.startswith("| t-")}


def part(month: str, number: int) -> str:
    """The name of a month's note: `2026-11`, `2026-11-2`, …"""
    return month if number == 1 else f"{month}-{number}"


def fits(known: Mapping[str, str]) -> bool:
    """Whether another row may be added to these."""
    return sum(len(line.encode()) + 1 for line in known.values()) < PART_BYTES


def archive_note(name: str, known: Mapping[str, str], say: Say) -> Mirror:
    """The note with these rows, in order of the tasks."""
    table = "".join(f"{known[task_id]}\n" for task_id in sorted(known))
    text = f"{say('mirror.archive_head')}\n|---|---|---|---|---|\n{table}"
    title = say("mirror.archive", month=name)
    own = (("ab_title", title),)
    return Mirror("archive", name, f"notes/archive/{name}", head("archive", name, title, *own),
                  {"archive": text}, f"\n{say('mirror.notes')}\n")  # fmt: skip
