"""Reading what a CLI wrote: JSON events, one a line, and notes between them. Nothing in the bytes raises.

Standard output and standard error share one log, so they are told apart by shape: an event is a JSON object with a text
`type` (or `role`), everything else is a note. With their JSON formats the CLIs write what the agent says into events
only; what stands outside is their own standard error.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_bus.launchers.output import OURS, displayable

LINE_BYTES = 1024 * 1024
"""A longer line is given up; reading goes on behind it."""
NOTES = 20
"""How many of the last notes are looked at for the words of a failure (docs/launcher.md "Outcomes")."""
NOTE_SHOWN = 2000
Event = dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """The events of the types asked for, in order, and the last notes."""

    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def last(self, kind: str) -> Event:
        """The last event of a type, {} if there is none."""
        return next((event for event in reversed(self.events) if event.get("type") == kind), {})

    def first_text(self, *path: str) -> str:
        """The first text that stands under a path of keys in an event, "" if none does."""
        found = (text(inside(event, *path)) for event in self.events)
        return next((value for value in found if value), "")


def read(output: bytes, kinds: frozenset[str]) -> Reading:
    """All of an output in one pass.

    Args:
        output: any bytes; what is no UTF-8 is replaced.
        kinds: the types of the events to keep.
    """
    events: list[Event] = []
    notes: deque[str] = deque(maxlen=NOTES)
    for line in lines(output):
        found = parse(line)
        if found is None:
            notes.append(displayable(line)[:NOTE_SHOWN])
        else:
            events += [event for event in found if event.get("type", event.get("role")) in kinds]
    return Reading(events, list(notes))


def lines(output: bytes) -> Iterator[str]:
    """The lines that are neither empty, nor ours, nor too long."""
    start = 0
    while start < len(output):
        end = output.find(b"\n", start)
        end = len(output) if end < 0 else end
        if 0 < end - start <= LINE_BYTES:
            line = output[start:end].decode("utf-8", "replace").strip()
            if line and not line.startswith(OURS):
                yield line
        start = end + 1


def parse(line: str) -> list[Event] | None:
    """The events of a line: one, or those of a JSON array; None if it holds none."""
    value = load(line)
    found = value if isinstance(value, list) else [value]
    events = [one for one in found if isinstance(one, dict) and isinstance(one.get("type", one.get("role")), str)]
    return events or None


def load(line: str) -> Any:
    """The JSON object or array that a line is, None for anything else."""
    if not line.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def inside(value: Any, *path: str) -> Any:
    """What stands under a path of keys, None if the path breaks off."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any) -> str:
    """A text that can be stored: "" for anything else; half characters are replaced."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    """A number that is finite and not negative, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        ready = float(value)
    except OverflowError:
        return None
    return ready if math.isfinite(ready) and ready >= 0 else None


def whole(value: Any) -> int | None:
    """`number` as a whole one."""
    found = number(value)
    return None if found is None else int(found)


def total(value: Any, *keys: str) -> int | None:
    """The sum of the numbers under some keys of an object, None if there is none."""
    found = [n for key in keys if (n := whole(inside(value, key))) is not None]
    return sum(found) if found else None
