"""One note from what stands in the file and what shall stand there: every byte of the person stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from agent_bus.domain import notes
from agent_bus.domain.inert import Plain, Value, property_lines
from agent_bus.domain.mirrors import Mirror
from agent_bus.domain.notes import Parts

REV = "ab_rev"
_ONCE = frozenset({"aliases", "tags", "cssclasses", "publish", "ab_approve", "ab_decision"})
"""Set when they are missing, and the person's from then on."""


@dataclass(frozen=True)
class Edits:
    """What is changed in the person's part: only what a person has set for the bus, and the bus has used.

    Args:
        untick: block ids of boxes that become empty.
        clear: whether `ab_approve` and `ab_decision` are set back.
        remove: offsets in the body of a text that was delivered, (0, 0) for none.
    """

    untick: frozenset[str] = frozenset()
    clear: bool = False
    remove: tuple[int, int] = (0, 0)


_NOTHING = Edits()


def merged(
    text: str | None, values: Mapping[str, Any] | None, mirror: Mirror, last_rev: int, edits: Edits = _NOTHING
) -> str | None:
    """The note's next text; None if nothing of ours has changed.

    Args:
        text: the file as it is now; None if there is none.
        values: its properties as they were read; None if they cannot be read, then they stay as they are.
        mirror: the note as it shall be.
        last_rev: the number of our last write.
        edits: what is set back in the person's part.

    Raises:
        BrokenNote: its markers do not fit.
    """
    if text is None:
        return _fresh(mirror, next_rev(None, last_rev))
    parts = notes.split(text)
    rev = next_rev(values, last_rev)
    start, end = edits.remove
    body = f"{parts.body[:start]}\n{parts.body[end:]}" if end else parts.body
    body = notes.unticked(body, edits.untick) if edits.untick else body
    body = notes.with_regions(body, mirror.regions, rev)
    front = parts.front
    if front is not None and values is not None:
        back: list[tuple[str, Value]] = [("ab_approve", False), ("ab_decision", "")] if edits.clear else []
        front = _front(front, values, mirror.properties, _ONCE)
        front = _front(front, values, back)
    if (front, body) == (parts.front, parts.body):
        return None
    if front is not None and values is not None:
        front = _front(front, values, [(REV, rev)])
    return notes.dressed(notes.join(Parts(front, body)), text)


def next_rev(values: Mapping[str, Any] | None, last_rev: int) -> int:
    """The number of a note's next write: above that of our last one, and above what stands in the note."""
    known = (values or {}).get(REV)
    return max(last_rev, known if isinstance(known, int) and not isinstance(known, bool) else 0) + 1


def after(values: Mapping[str, Any], mirror: Mirror, edits: Edits) -> dict[str, Any]:
    """A note's properties as `merged` leaves them."""
    ours = {name: value for name, value in mirror.properties if not (name in _ONCE and name in values)}
    return {**values, **ours, **({"ab_approve": False, "ab_decision": ""} if edits.clear else {})}


def is_ours(values: Mapping[str, Any] | None, mirror: Mirror) -> bool:
    """Whether a file at the note's place is that note, as far as its properties can be read."""
    if values is None:
        return True
    return same(values.get("ab_kind"), Plain(mirror.kind)) and same(values.get("ab_id"), mirror.id)


def same(found: Any, wanted: Value) -> bool:
    """Whether a property that was read has the wanted value; times compare as text."""
    if isinstance(wanted, str):
        return text_of(found) == wanted
    if isinstance(wanted, bool | int):
        return type(found) is type(wanted) and found == wanted
    return isinstance(found, list) and [text_of(one) for one in found] == list(wanted)


def text_of(found: Any) -> str | None:
    """A property as text; times as they were written, None for what is no text."""
    if isinstance(found, datetime | date):
        return found.isoformat()
    if found is None:
        return ""
    return found if isinstance(found, str) else None if isinstance(found, bool | list | dict) else str(found)


def _fresh(mirror: Mirror, rev: int) -> str:
    front = ""
    for name, value in mirror.properties:
        front += property_lines(name, value)
        if name == "ab_id":
            front += property_lines(REV, rev)
    body = "".join(notes.region_text(name, rev, text) for name, text in mirror.regions.items())
    return notes.join(Parts(front, body + mirror.human))


def with_properties(front: str, values: Mapping[str, Any], wanted: Sequence[tuple[str, Value]]) -> str:
    """The properties' text with these set; those that have their value already stay as they stand."""
    return _front(front, values, wanted)


def _front(
    front: str, values: Mapping[str, Any], wanted: Sequence[tuple[str, Value]], once: frozenset[str] = frozenset()
) -> str:
    chunks = notes.fields(front)
    for name, value in wanted:
        if name in values and (name in once or same(values[name], value)):
            continue
        line = property_lines(name, value)
        places = [number for number, (known, _) in enumerate(chunks) if known == name]
        if places:
            chunks[places[0]] = (name, line)
        else:
            chunks.append((name, line))
    return "".join(text if text.endswith("\n") else f"{text}\n" for _, text in chunks)
