"""Presence: what a heartbeat says of its agent. Pure.

busy    a call within 60 s, or `busy_until` is ahead
idle    its process lives, no recent call
stale   no sign for 60 s, and the process cannot be proven alive
gone    its process is dead, or 24 h of silence
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agent_bus.times import parse_stamp

BUSY, IDLE, STALE, GONE = "busy", "idle", "stale", "gone"
RECENT = timedelta(seconds=60)
SILENT = timedelta(hours=24)
NAME_CHARS = 80
_NOT_LABEL = re.compile(r"[^a-z0-9]+")


def state(value: Mapping[str, Any], life: str, now: datetime) -> str:
    """The state to show.

    Args:
        value: a heartbeat.
        life: `alive`, `dead` or `unknown`, as its host knows of its process.
    """
    seen, busy = time_of(value, "last_seen"), time_of(value, "busy_until")
    if life == "dead" or seen is None or (now - seen >= SILENT and life != "alive"):
        return GONE
    if now - seen < RECENT or (busy is not None and busy > now):
        return BUSY
    return IDLE if life == "alive" else STALE


def time_of(value: Mapping[str, Any], key: str) -> datetime | None:
    """A time that stands in a heartbeat, None if there is none."""
    try:
        return parse_stamp(str(value.get(key) or ""))
    except ValueError:
        return None


def label_of(client: str) -> str:
    """A client's name, which may have a version behind it, as the first part of an address: `claude-code`."""
    name = client.rpartition(" ")[0] or client
    return _NOT_LABEL.sub("-", name.casefold()).strip("-")[:40].strip("-") or "agent"


def address(value: Mapping[str, Any]) -> str:
    """The address of an agent: `label:session:agent`."""
    return f"{value.get('label', '')}:{value.get('session', '')}:{value.get('agent', '')}"


def safe(text: str) -> str:
    """A session's or agent's name as a part of an address and the name of a file."""
    kept = "".join(c if c in "_-." or unicodedata.category(c)[0] in "LN" else "-" for c in text)
    return kept.strip(".-")[:NAME_CHARS] or "agent"
