"""What conversations by mention answer, in the words of turn-taking hubs: handles with their sign. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_bus.domain import turns
from agent_bus.domain.turns import Value


def message(row: dict[str, Any]) -> dict[str, Any]:
    """A message as clients of hubs know it."""
    cut: dict[str, Any] = {k: row[k] for k in ("cut", "offset") if k in row}
    return {
        "id": row["number"], "seq_id": row["number"], "sender": sign(row["from"]), "recipients": at(row["to"]),
        "content": row["content"], "is_private": row["private"], "timestamp": row["at"], **cut,
    }  # fmt: skip


def notice(told: dict[str, Any]) -> str:
    """What happened lately, in a sentence; "" if nothing did."""
    words = {
        "started": "The conversation has started.",
        "turn_skipped": "A turn was skipped.",
        "stalled": "Nobody has the floor.",
        "presence": "Somebody came or went.",
        "eliminated": "You were eliminated.",
        "vote_open": "A vote is open.",
        "vote_result": "Ballots are published.",
    }
    kinds = [n["type"] for n in told.get("notices", [])]
    return words.get(kinds[-1], "") if kinds else "The room is closed." if told["status"] == "closed" else ""


def turn(head: Value) -> dict[str, str]:
    """Who has the floor; "" = nobody."""
    floor = head["floor"]
    return {"active_turn": sign(head["members"][floor]["handle"]) if floor else ""}


def queue(head: Value) -> list[str]:
    """Who follows, in order."""
    return at([head["members"][key]["handle"] for key in turns.queue(head)])


def at(handles: Sequence[str]) -> list[str]:
    """Handles with their sign."""
    return [sign(handle) for handle in handles]


def sign(handle: str) -> str:
    """A handle with its sign."""
    return f"@{handle}" if handle else ""
