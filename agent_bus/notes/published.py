"""What a person can set in a note of ours: what of it we set back, and what we publish for them to change."""

from __future__ import annotations

from typing import Any

from agent_bus.domain import human, notes
from agent_bus.domain.human import Human
from agent_bus.domain.mirrors import Mirror
from agent_bus.domain.note_merge import Edits, same
from agent_bus.notes import ledger


def edits_of(value: dict[str, Any], values: dict[str, Any], body: str, mirror: Mirror) -> Edits:
    """What is set back in the person's part: everything when another request is published, and what was used."""
    wanted = dict(mirror.properties).get("ab_req")
    new = isinstance(wanted, str) and "ab_req" in values and not same(values["ab_req"], wanted)
    untick = frozenset(notes.controls(body)) if new else frozenset(str(one) for one in value.get("untick") or [])
    delivered, remove = str(value.get("delivered") or ""), (0, 0)
    if delivered:
        start, end = human.reply(body)
        remove = (start, end) if end and body[start:end].strip() == delivered else (0, 0)
        untick |= {human.SEND}
    return Edits(untick, new, remove)


def published(text: str, shown: dict[str, Any] | None, value: dict[str, Any], found: dict[str, Any]) -> Human:
    """What a person can set in a note as we write it: of what they have set themselves, what was dealt with.

    Args:
        text: the note.
        shown: its properties; None if they cannot be read.
        value: the ledger's document.
        found: the properties that stood there before.
    """
    base = ledger.base(value, found.get("ab_rev"))
    if shown is None:
        return base
    now = human.read(shown, notes.split(text).body)
    if not ledger.writes(value):
        return now
    kept = human.carried(base, now)
    return Human(kept.approve, kept.decision, now.priority, now.status, kept.ticks)
