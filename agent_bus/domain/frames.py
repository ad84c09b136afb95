"""What goes over the hub's wire, as text. Pure. Source of the forms: docs/notifications.md."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agent_bus import ids

FRAME_BYTES = 4096
PUSH_BYTES = 8192
_OWN = ("id", "event", "at", "task_id", "agent")
_CUTS = (1000, 300, 100, 30)
_EVENT_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Filter:
    """Which events a client wants: by name (`task.*` is fine) and by agent; empty = all."""

    events: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    def lets(self, line: Mapping[str, Any]) -> bool:
        """Whether a journal line passes."""
        if self.events and not any(fnmatchcase(str(line.get("event", "")), e) for e in self.events):
            return False
        agent = str(line.get("agent", ""))
        return not self.agents or any(ids.same_name(agent, a) for a in self.agents)


def encode(frame: Mapping[str, Any]) -> str:
    """A frame as text."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"), default=str)


def event_frame(line: Mapping[str, Any]) -> str:
    """A journal line as an event frame of at most 4 KiB; longer texts are cut, what cannot be cut is left out."""
    head = {"type": "event", **{k: line[k] for k in _OWN if line.get(k)}}
    data = {k: v for k, v in line.items() if k not in _OWN}
    text = encode({**head, "data": data})
    for chars in _CUTS:
        if len(text.encode("utf-8", "replace")) <= FRAME_BYTES:
            return text
        text = encode({**{k: _cut(v, chars) for k, v in head.items()}, "data": _cut(data, chars)})
    if len(text.encode("utf-8", "replace")) <= FRAME_BYTES:
        return text
    return encode({**{k: _cut(v, 100) for k, v in head.items()}, "data": {"cut": True}})


def _cut(value: Any, chars: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[:chars]}…"
    if isinstance(value, dict):
        return {str(k)[:chars]: _cut(v, chars) for k, v in list(value.items())[:chars]}
    if isinstance(value, list):
        return [_cut(v, chars) for v in value[:chars]]
    return value


def read_frame(text: str | bytes) -> dict[str, Any]:
    """A client's frame.

    Raises:
        ValueError: it is no JSON object in text.
    """
    if isinstance(text, bytes):
        raise ValueError("a binary frame")
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def read_filter(frame: Mapping[str, Any]) -> Filter:
    """The filter of a subscribe frame.

    Raises:
        ValueError: events or agents are no lists of texts.
    """
    return Filter(_texts(frame, "events"), _texts(frame, "agents"))


def read_since(frame: Mapping[str, Any]) -> str:
    """The id from which a subscribe frame goes on, "" for none.

    Raises:
        ValueError: it is no text.
    """
    since = frame.get("since") or ""
    if not isinstance(since, str):
        raise ValueError("since must be a text")
    return since


def id_before(event_id: str) -> str:
    """The id that would stand just before this one; "" if this is no event id."""
    day, _, number = event_id.partition("-")
    if len(day) != 8 or not (day.isascii() and day.isdigit() and number.isascii() and number.isdigit()):
        return ""
    return f"{day}-{max(0, int(number[:12]) - 1):08d}"


def pushed_line(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The journal line of a push by another program (`{"event": …}`); its name gets `external.` in front.

    Raises:
        ValueError: the event has no name, or the frame is too big.
    """
    name = _EVENT_NAME.sub("_", str(frame.get("event", "")).removeprefix("external."))[:60]
    if not name or len(encode(frame).encode("utf-8", "replace")) > PUSH_BYTES:
        raise ValueError(f"a push needs an event name and at most {PUSH_BYTES} bytes")
    known = {k: str(frame[k])[:80] for k in ("task_id", "agent") if isinstance(frame.get(k), str)}
    return {
        "event": f"external.{name}",
        **known,
        "data": {k: v for k, v in frame.items() if k not in ("event", *known)},
    }


def _texts(frame: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found: Sequence[Any] = frame.get(name) or ()
    if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found) or len(found) > 100:
        raise ValueError(f"{name} must be a list of at most 100 texts")
    return tuple(found)
