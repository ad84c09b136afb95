"""The floor of a room by mention: who is addressed most, and first, speaks next. Pure.

A member's `score` is how often it was addressed since it last spoke, `first` the number of the message that made it
more than nought, `place` its place in that text. The next one is the active member with the highest score, then the
lowest first, then the lowest place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from agent_bus.times import parse_stamp, stamp

ACTIVE = "active"
Head = dict[str, Any]
Value = Mapping[str, Any]


def ranked(head: Value) -> list[str]:
    """The keys of all who are addressed and there, the next one first."""
    rows = [(-m["score"], m["first"], m["place"], k) for k, m in head["members"].items() if m["s"] == ACTIVE]
    return [row[3] for row in sorted(rows) if row[0] < 0]


def queue(head: Value) -> list[str]:
    """Who follows the present speaker, in order."""
    if head["phase"] == "speaking":
        return [k for k in head["order"] if head["members"][k]["s"] == ACTIVE]
    return [key for key in ranked(head) if key != head["floor"]]


def spoken(setup: Value, head: Head, sender: str, recipients: Sequence[str], record: Value) -> Head:
    """After a message: its recipients are addressed once more, and the floor moves on if it was the sender's or free.

    Args:
        sender: a key; "" for a host without a voice.
        recipients: keys in the order of the text.
    """
    members = {k: dict(m) for k, m in head["members"].items()}
    moves = head["floor"] in ("", sender)
    if sender and moves:
        members[sender] |= {"score": 0}
    for place, key in enumerate(recipients):
        one = members[key]
        if one["s"] == ACTIVE and key != sender:
            new = {"first": record["number"], "place": place} if not one["score"] else {}
            members[key] = {**one, "score": one["score"] + 1, **new}
    made = {**head, "members": members}
    return pass_on(setup, made, record) if moves else made


def dropped(setup: Value, head: Head, key: str, record: Value) -> Head:
    """After a member's turn is over without a word (pass, skip, leave): its score is nought, the floor moves on."""
    one = {**head["members"][key], "score": 0}
    made = {**head, "members": {**head["members"], key: one}}
    return pass_on(setup, made, record) if head["floor"] == key else made


def pass_on(setup: Value, head: Head, record: Value) -> Head:
    """The floor goes to the next one, or is free."""
    return give(setup, head, next(iter(ranked(head)), ""), record)


def give(setup: Value, head: Head, key: str, record: Value) -> Head:
    """The floor is a member's ("": free) from the time of a record on, with its lease if the room has one."""
    term = int(setup["turn_timeout_s"])
    until = stamp(parse_stamp(str(record["at"])) + timedelta(seconds=term)) if term and key else ""
    return {**head, "floor": key, "floor_from": record["number"], "lease_until": until}
