"""Rounds of a moderated room, and votes. Pure.

idle       -> collecting   the host asks who wants to speak; each raises a weight, 0 = not this time
collecting -> ordering     all have decided who must, or the time is over
ordering   -> speaking     the host says who speaks, in which order
speaking   -> idle         the last one has spoken; the number of the round goes up
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from agent_bus.domain import turns
from agent_bus.domain.turns import ACTIVE, Head, Value
from agent_bus.times import parse_stamp, stamp

IDLE, COLLECTING, ORDERING, SPEAKING = "idle", "collecting", "ordering", "speaking"
NO_ROUND: dict[str, Any] = {"scope": [], "order": [], "required": [], "decided": {}, "deadline": ""}


def participants(head: Value, host: str) -> list[str]:
    """Who may raise a hand: the active ones of the scope, else all active but the host."""
    among = head["scope"] or list(head["members"])
    return [k for k in among if k != host and head["members"][k]["s"] == ACTIVE]


def undecided(head: Value) -> list[str]:
    """Who must still raise a hand."""
    return [k for k in head["required"] if head["members"][k]["s"] == ACTIVE and k not in head["decided"]]


def weights(head: Value, host: str) -> dict[str, int]:
    """By key what everybody has raised who may speak; 0 for those who did not in time."""
    return {k: int(head["decided"].get(k, 0)) for k in participants(head, host)
            if k in head["required"] or k in head["decided"]}  # fmt: skip


def collected(head: Head, record: Value) -> Head:
    """A round is open for hands."""
    scope = list(record["scope"])
    return {**head, **NO_ROUND, "phase": COLLECTING, "scope": scope, "required": list(record["required"]),
            "deadline": later(record, int(record.get("deadline_s", 0)))}  # fmt: skip


def settled(setup: Value, head: Head, host: str, record: Value) -> Head:
    """The head after whatever may have ended a phase: hands, leaving, elimination, the deadline."""
    if head["phase"] in (COLLECTING, ORDERING) and not participants(head, host):
        return ended(head)
    if head["phase"] == COLLECTING and (not undecided(head) or record["kind"] == "round_due"):
        return {**head, "phase": ORDERING, "deadline": ""}
    if head["phase"] == SPEAKING and (not head["floor"] or head["members"][head["floor"]]["s"] != ACTIVE):
        return advanced(setup, head, record)
    return head


def ordered(setup: Value, head: Head, record: Value) -> Head:
    """The host has said who speaks; nobody ends the round."""
    if not record["order"]:
        return ended(head)
    return advanced(setup, {**head, "phase": SPEAKING, "order": list(record["order"])}, record)


def advanced(setup: Value, head: Head, record: Value) -> Head:
    """The next one of the order who can speak, or the end of the round."""
    order = list(head["order"])
    while order:
        key = order.pop(0)
        if head["members"][key]["s"] == ACTIVE:
            return turns.give(setup, {**head, "order": order}, key, record)
    return ended(head)


def ended(head: Head) -> Head:
    """The round is over, the next one is being prepared."""
    return {**head, **NO_ROUND, "phase": IDLE, "floor": "", "lease_until": "", "round": head["round"] + 1}


def poll_opened(head: Head, record: Value) -> Head:
    """A vote is open."""
    poll = {"number": record["number"], "question": record["question"], "voters": list(record["voters"]),
            "ballots": {}, "due": False, "deadline": later(record, int(record.get("deadline_s", 0)))}  # fmt: skip
    return {**head, "poll": poll}


def voted(head: Head, record: Value) -> Head:
    """A ballot is in: the record names its document."""
    poll = head["poll"]
    return {**head, "poll": {**poll, "ballots": {**poll["ballots"], record["voter"]: record["ballot"]}}}


def awaited(head: Value) -> list[str]:
    """Whose ballots are still missing; nobody's once the time is over."""
    poll: Mapping[str, Any] = head["poll"]
    if not poll or poll["due"]:
        return []
    return [k for k in poll["voters"] if head["members"][k]["s"] == ACTIVE and k not in poll["ballots"]]


def later(record: Value, seconds: int) -> str:
    """The time so many seconds after a record, "" for 0."""
    return stamp(parse_stamp(str(record["at"])) + timedelta(seconds=seconds)) if seconds else ""
