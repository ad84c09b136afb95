"""What a person has set in a note of ours: boxes, properties that are theirs to change, the text under Reply."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_bus.domain import notes
from agent_bus.domain.note_merge import text_of

SEND = "send"


@dataclass(frozen=True)
class Human:
    """What stands in a note for a person to set.

    Args:
        approve: the property `ab_approve`; `decision`, `priority`, `status`: those of that name, as typed.
        ticks: the block ids of ticked boxes.
    """

    approve: bool = False
    decision: str = ""
    priority: str = ""
    status: str = ""
    ticks: frozenset[str] = frozenset()

    def value(self) -> dict[str, Any]:
        """As it is kept in the ledger."""
        return {"approve": self.approve, "decision": self.decision, "priority": self.priority,
                "status": self.status, "ticks": sorted(self.ticks)}  # fmt: skip


def stored(value: Any) -> Human:
    """What the ledger has kept; nothing set if it is no such record."""
    if not isinstance(value, dict):
        return Human()
    ticks = value.get("ticks")
    return Human(
        value.get("approve") is True,
        str(value.get("decision", "")),
        str(value.get("priority", "")),
        str(value.get("status", "")),
        frozenset(str(one) for one in ticks) if isinstance(ticks, list) else frozenset(),
    )


def read(values: Mapping[str, Any], body: str) -> Human:
    """What is set in a note.

    Raises:
        BrokenNote: its markers do not fit.
    """
    ticks = frozenset(name for name, mark in notes.controls(body).items() if mark == "x")
    words = {name: (text_of(values.get(f"ab_{name}")) or "").strip() for name in ("decision", "priority", "status")}
    return Human(values.get("ab_approve") is True, ticks=ticks, **words)


def carried(base: Human, now: Human) -> Human:
    """The base of later comparisons after `now` was read and nothing of it was taken: what was set back counts anew."""
    return replace(
        base,
        approve=base.approve and now.approve,
        decision=base.decision if now.decision else "",
        ticks=base.ticks & now.ticks,
    )


def reply(body: str) -> tuple[int, int]:
    """Where the text under Reply stands: from behind the first heading after the other boxes to the box `^send`;
    (0, 0) if there is no such box or heading.

    Raises:
        BrokenNote: as `read`.
    """
    ours = [(region.start, region.end) for region in notes.regions(body).values()]
    boxes = notes.controls(body)
    start = 0
    for line in notes.lines(body):
        name = notes.block_id(line.text)
        inside = any(a <= line.start < b for a, b in ours)
        if name == SEND and name in boxes and not inside:
            return (start, line.start) if start else (0, 0)
        if inside or name in boxes:
            start = 0
        elif not start and line.text.startswith("#"):
            start = line.start + len(line.text) + 1
    return (0, 0)


def word(text: str) -> str:
    """A keyword as it is compared: forms of the same letters are one, case and spaces around count for nothing."""
    return unicodedata.normalize("NFKC", text).casefold().strip()
