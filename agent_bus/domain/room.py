"""Rooms: members who talk by mention, under a host, or freely. Pure.

    gathering -> running   so many have joined as the barrier asks for (moderated rooms run from the start)
    any       -> closed    the first closing record; nothing follows it

A record is made by the exclusive create of `messages/<head.number + 1>`, after its act was checked on that head; so
`apply` finds every record right, and whoever applies it gets the same head. Every time comes from the record.

Member states: not_joined, active, left, eliminated. Members are by key, `ids.fold` of their handle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from agent_bus import ids
from agent_bus.domain import rounds, turns
from agent_bus.domain.turns import ACTIVE, Head, Value
from agent_bus.times import parse_stamp, stamp

GATHERING, RUNNING, CLOSED = "gathering", "running", "closed"
NOT_JOINED, LEFT, ELIMINATED = "not_joined", "left", "eliminated"
MENTION, MODERATED, FREE = "mention", "moderated", "free"
MESSAGE, REVEAL = "message", "reveal"
RECENT = 4
"""So many of a member's last messages are known for repeats."""


def begin(setup: Value) -> Head:
    """The head of a room that was just opened; a moderated one has its host in it."""
    members = {ids.fold(handle): member(handle) for handle in setup["participants"]}
    moderated = setup["mode"] == MODERATED
    if setup["host"]:
        seat = {"s": ACTIVE, "joined_at": setup["opened_at"], "description": setup["description"]}
        members[ids.fold(setup["host"])] = member(setup["host"]) | seat | {"sha": setup["host_sha256"]}
    for handle, aliases in setup["aliases"].items():
        members[ids.fold(handle)] |= {"aliases": list(aliases)}
    return {
        "schema": 1, "number": 0, "state": RUNNING if moderated else GATHERING,
        "phase": rounds.IDLE if moderated else "talk", "round": 1 if moderated else 0, "floor": "", "floor_from": 0,
        "lease_until": "", "messages": 0, "public": 0, **rounds.NO_ROUND, "poll": {}, "members": members, "closed": {},
    }  # fmt: skip


def member(handle: str) -> dict[str, Any]:
    """A member who has not joined."""
    return {"handle": handle, "name": handle, "description": "", "s": NOT_JOINED, "joined_at": "", "sha": "",
            "owner": {}, "aliases": [], "score": 0, "first": 0, "place": 0, "visible": 0, "recent": []}  # fmt: skip


def host_key(setup: Value) -> str:
    """The key of the host, "" if it has no voice."""
    return ids.fold(setup["host"]) if setup["host"] else ""


def names(head: Value) -> dict[str, str]:
    """By key of a handle or an alias the handle that it means."""
    found: dict[str, str] = {}
    for one in head["members"].values():
        found |= {ids.fold(name): one["handle"] for name in (one["handle"], *one["aliases"])}
    return found


def apply(setup: Value, head: Value, record: Value) -> Head:
    """The head after the record of its next number."""
    made: Head = {**head, "number": head["number"] + 1}
    act = _ACTS.get(str(record.get("kind")))
    return made if act is None or head["state"] == CLOSED else act(setup, made, record)


def waiting_for(setup: Value, head: Value) -> list[str]:
    """Who could still fill the barrier, as handles; nobody once the room runs."""
    if head["state"] != GATHERING:
        return []
    return [m["handle"] for m in head["members"].values() if m["s"] == NOT_JOINED]


def due(setup: Value, head: Value, now: datetime) -> dict[str, Any] | None:
    """The record that time asks for: a turn skipped, hands or votes over; None if there is none."""
    if head["state"] != RUNNING:
        return None
    for until, kind in (
        (head["lease_until"], "turn_skipped"),
        (head["deadline"], "round_due"),
        ("" if not head["poll"] or head["poll"]["due"] else head["poll"]["deadline"], "poll_due"),
    ):
        if until and now >= parse_stamp(until):
            return {"kind": kind, "at": stamp(now), "who": head["floor"] if kind == "turn_skipped" else ""}
    return None


def is_public(record: Value) -> bool:
    """Whether a record is a message that everybody sees."""
    return record["kind"] in (MESSAGE, REVEAL) and "seen" not in record


def sees(record: Value, key: str) -> bool:
    """Whether a member sees a message."""
    seen: list[str] | None = record.get("seen")
    return seen is None or key in seen


def _joined(setup: Value, head: Head, record: Value) -> Head:
    key = ids.fold(str(record["from"]))
    old = head["members"].get(key) or {**member(str(record["from"])), "visible": head["public"]}
    new = {
        "s": old["s"] if old["s"] == ELIMINATED else ACTIVE, "sha": record["session_sha256"], "owner": record["owner"],
        "joined_at": old["joined_at"] or record["at"], "name": record["name"] or old["name"],
        "description": record["description"] or old["description"],
    }  # fmt: skip
    made = {**head, "members": {**head["members"], key: old | new}}
    return _started(setup, made, record) if head["state"] == GATHERING and _full(setup, made) else made


def _full(setup: Value, head: Value) -> bool:
    declared = [ids.fold(p) for p in setup["participants"]]
    wanted = int(setup["barrier"]) or (1 if setup["mode"] == FREE else 2)
    among = declared or list(head["members"])
    here = [k for k in among if head["members"][k]["s"] == ACTIVE]
    return len(here) >= (min(wanted, len(declared)) or wanted)


def _started(setup: Value, head: Head, record: Value) -> Head:
    made = {**head, "state": RUNNING}
    if setup["mode"] != MENTION:
        return made
    first = [ids.fold(setup["first_speaker"])] if setup["first_speaker"] else []
    order = [*first, *(ids.fold(p) for p in setup["participants"]), *head["members"]]
    return turns.give(setup, made, next(k for k in order if head["members"][k]["s"] == ACTIVE), record)


def _gone(state: str) -> Callable[[Value, Head, Value], Head]:
    def act(setup: Value, head: Head, record: Value) -> Head:
        key = str(record["who"])
        dead = {"s": state, "score": 0} | ({"sha": "", "owner": {}} if state == LEFT else {})
        if head["members"][key]["s"] == ELIMINATED:
            dead |= {"s": ELIMINATED}
        made = {**head, "members": {**head["members"], key: head["members"][key] | dead}}
        if setup["mode"] == MODERATED:
            return rounds.settled(setup, made, host_key(setup), record)
        return turns.dropped(setup, made, key, record)

    return act


def _released(setup: Value, head: Head, record: Value) -> Head:
    key = str(record["who"])
    return {**head, "members": {**head["members"], key: head["members"][key] | {"sha": "", "owner": {}}}}


def _said(setup: Value, head: Head, record: Value) -> Head:
    sender, number = str(record["who"]), record["number"]
    members = {k: m | {"visible": m["visible"] + (k != sender and sees(record, k))} for k, m in head["members"].items()}
    if sender in members:
        recent = [*members[sender]["recent"], {"key": record["key"], "sha": record["sha"], "number": number}]
        members[sender] |= {"recent": recent[-RECENT:]}
    made: Head = {**head, "members": members, "messages": head["messages"] + 1}
    made["public"] += "seen" not in record
    if setup["mode"] == MENTION:
        return turns.spoken(setup, made, sender, [ids.fold(h) for h in record["to"]], record)
    if record.get("turn"):
        return rounds.advanced(setup, made, record)
    return made


def _skipped(setup: Value, head: Head, record: Value) -> Head:
    if setup["mode"] == MODERATED:
        return rounds.advanced(setup, head, record)
    return turns.dropped(setup, head, str(record["who"]), record)


def _raised(setup: Value, head: Head, record: Value) -> Head:
    made = {**head, "decided": {**head["decided"], str(record["who"]): int(record["weight"])}}
    return rounds.settled(setup, made, host_key(setup), record)


def _cancelled(setup: Value, head: Head, record: Value) -> Head:
    return {**head, "poll": {}} if head["poll"] else rounds.ended(head)


def _revealed(setup: Value, head: Head, record: Value) -> Head:
    members = {k: m | {"visible": m["visible"] + 1} for k, m in head["members"].items()}
    counts = {"messages": head["messages"] + 1, "public": head["public"] + 1}
    return {**head, "poll": {}, "members": members, **counts}


def _closed(setup: Value, head: Head, record: Value) -> Head:
    closed = {"at": record["at"], "by": record["from"]}
    return {**head, "state": CLOSED, "phase": "closed", "floor": "", "lease_until": "", "closed": closed}


_ACTS: Mapping[str, Callable[[Value, Head, Value], Head]] = {
    "join": _joined,
    "leave": _gone(LEFT),
    "eliminate": _gone(ELIMINATED),
    "release": _released,
    MESSAGE: _said,
    "pass": _skipped,
    "turn_skipped": _skipped,
    "collect": lambda setup, head, record: rounds.collected(head, record),
    "raise": _raised,
    "round_due": lambda setup, head, record: rounds.settled(setup, head, host_key(setup), record),
    "order": lambda setup, head, record: rounds.ordered(setup, head, record),
    "cancel": _cancelled,
    "poll": lambda setup, head, record: rounds.poll_opened(head, record),
    "vote": lambda setup, head, record: rounds.voted(head, record),
    "poll_due": lambda setup, head, record: {**head, "poll": {**head["poll"], "due": True}},
    REVEAL: _revealed,
    "close": _closed,
}
