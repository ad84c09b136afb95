"""A closed room as one JSON array of messages, the oldest first: the file of a chat room's record. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from agent_bus.domain import room
from agent_bus.domain.turns import Value
from agent_bus.times import parse_stamp


def rows(
    setup: Value, handles: Mapping[str, str], records: Iterable[tuple[Value, str]], private: bool = False
) -> list[dict[str, Any]]:
    """The messages as they are exported.

    Args:
        handles: the members' handles by key.
        records: each with its text.
        private: whether those for some alone are there as well, with `visibleTo`.
    """
    return [
        _row(setup, handles, record, text)
        for record, text in records
        if record["kind"] in (room.MESSAGE, room.REVEAL) and (private or "seen" not in record)
    ]


def _row(setup: Value, handles: Mapping[str, str], record: Value, text: str) -> dict[str, Any]:
    number = hashlib.sha256(f"{setup['room']}:{record['number']}".encode()).hexdigest()[:8]
    at = int(parse_stamp(str(record["at"])).timestamp() * 1000)
    kind = "system" if record["kind"] == room.REVEAL else "message"
    row = {"id": number, "speaker": record["from"], "content": text, "timestamp": at, "type": kind}
    to = list(record.get("to", []))
    if "seen" in record:
        return row | {"visibleTo": [handles.get(k, "host") for k in dict.fromkeys(record["seen"])]}
    return row | ({"mention": to[0]} if to else {})
