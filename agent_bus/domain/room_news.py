"""What a member must do now, and what a record tells whom. Pure.

Obligations come from the head alone and stay until they are done. Notices are made together with their record, from the
heads before and after it, and stand in it: nobody misses one by being away.
"""

from __future__ import annotations

from typing import Any

from agent_bus import ids
from agent_bus.domain import room, rounds
from agent_bus.domain.room_acts import Who
from agent_bus.domain.turns import Value

EVERYBODY = "*"
HOST = "host"


def obligations(setup: Value, head: Value, who: Who) -> list[dict[str, Any]]:
    """What somebody must do now, with what they need for it."""
    found: list[dict[str, Any]] = []
    if head["state"] != room.RUNNING:
        return found
    key = who.key
    if key and head["floor"] == key:
        found.append({"do": "speak", "number": head["floor_from"]})
    if head["phase"] == rounds.COLLECTING and key in _may_raise(setup, head):
        private = [head["members"][k]["handle"] for k in head["scope"] if k != key]
        scoped = {"private_with": [*private, setup["host"]]} if head["scope"] else {}
        found.append({"do": "raise", "round": head["round"], "required": key in head["required"], **scoped})
    if key and key in rounds.awaited(head):
        found.append({"do": "vote", "question": head["poll"]["question"]})
    if who.host and head["phase"] == rounds.ORDERING:
        said = rounds.weights(head, room.host_key(setup))
        rows: list[dict[str, Any]] = [{"name": head["members"][k]["handle"], "weight": w} for k, w in said.items()]
        rows.sort(key=lambda row: -row["weight"])
        hands = ", ".join(f"{row['name']} {row['weight']}" for row in rows)  # for people: tables show no nested rows
        found.append({"do": "order", "round": head["round"], "hands": hands, "weights": rows})
    if who.host and head["poll"] and not rounds.awaited(head):
        found.append({"do": "reveal", "question": head["poll"]["question"], "ballots": len(head["poll"]["ballots"])})
    return found


def _may_raise(setup: Value, head: Value) -> list[str]:
    return [k for k in rounds.participants(head, room.host_key(setup)) if k not in head["decided"]]


def notices(setup: Value, before: Value, after: Value, record: Value) -> list[dict[str, Any]]:
    """What a record tells: each with `to`, the keys of those it is for, * for everybody, host for the host."""
    kind, told = str(record["kind"]), []

    def tell(what: str, to: list[str], **facts: Any) -> None:
        told.append({"type": what, "to": to, **facts})

    if kind in ("join", "leave", "eliminate"):
        name = record["name"] if kind == "eliminate" else record["from"]
        tell("presence", [HOST], name=name, change={"join": "joined", "leave": "left"}.get(kind, "eliminated"))
    if kind == "eliminate":
        tell("eliminated", [str(record["who"])])
    if before["state"] == room.GATHERING and after["state"] == room.RUNNING:
        floor = after["floor"]
        tell("started", [EVERYBODY], floor=after["members"][floor]["handle"] if floor else "")
    if kind == "collect":
        tell("round_open", list(record["required"]), round=after["round"])
    if after["round"] > before["round"] > 0:
        tell("round_done", [HOST], round=before["round"], reason=_reason(record))
    if kind == "turn_skipped":
        tell(kind, [HOST, str(record["who"])], name=before["members"][record["who"]]["handle"])
    if kind == "poll":
        tell("vote_open", list(record["voters"]), question=record["question"])
    if kind == room.REVEAL:
        tell("vote_result", [EVERYBODY])
    if kind == "cancel":
        tell("cancelled", [EVERYBODY])
    if setup["mode"] == room.MENTION and before["floor"] and not after["floor"] and after["state"] == room.RUNNING:
        tell("stalled", [HOST])
    return told


def heard(notice: Value, who: Who) -> bool:
    """Whether a notice is for somebody."""
    to = notice["to"]
    return EVERYBODY in to or (who.host and HOST in to) or (bool(who.key) and who.key in to)


def addressed(record: Value, who: Who) -> bool:
    """Whether a message is for somebody in particular."""
    return bool(who.key) and who.key in [ids.fold(h) for h in record.get("to", [])]


def public(setup: Value, head: Value) -> dict[str, Any]:
    """A room's state as everybody may know it; a scoped round shows only that there is one."""
    rows = [
        {"name": m["handle"], "state": m["s"], "description": m["description"], "host": k == room.host_key(setup)}
        for k, m in head["members"].items()
    ]
    floor = head["members"][head["floor"]]["handle"] if head["floor"] else ""
    return {
        "room": setup["room"], "mode": setup["mode"], "host": setup["host"], "topic": setup["topic"],
        "state": head["state"], "phase": head["phase"], "round": head["round"], "floor": floor, "members": rows,
    }  # fmt: skip


def _reason(record: Value) -> str:
    if record["kind"] == "cancel":
        return "cancelled"
    if record["kind"] == "order":
        return "empty_order"
    return "done" if record["kind"] in (room.MESSAGE, "pass", "turn_skipped") else "no_participants"
