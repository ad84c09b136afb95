"""A chain of tasks as a JSON Canvas 1.0: cards and arrows of ours, beside whatever a person puts there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_bus.domain.mirrors import Say

CARDS = 200
_WIDTH, _HEIGHT, _RIGHT, _DOWN = 400, 220, 500, 260
_COLOURS = {
    "pending_approval": "1", "blocked": "1", "dead_letter": "1", "in_progress": "5",
    "in_review": "3", "waiting": "3", "scheduled": "3", "completed": "4",
}  # fmt: skip
Canvas = dict[str, Any]


@dataclass(frozen=True)
class Card:
    """A task of a chain.

    Args:
        task_id, parent: the task, and the one it followed; "" for the first.
        status: its state.
        title, to: for a card without a note.
        branch: why it followed: completed, failed; "" for none.
        file: its note, as a path in the vault; "" if it has none.
    """

    task_id: str
    parent: str
    status: str
    title: str
    to: str
    branch: str
    file: str


def drawn(root: str, cards: Sequence[Card], say: Say) -> Canvas:
    """The canvas of a chain that nobody has touched: one column a generation."""
    shown = list(cards[:CARDS])
    depth = {root: 0}
    for card in shown:
        depth[card.task_id] = depth.get(card.parent, -1) + 1 if card.parent else 0
    rows: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    for card in shown:
        column = depth[card.task_id]
        row = rows[column] = rows.get(column, -1) + 1
        nodes.append(_node(card, say) | _place(_RIGHT * column, _DOWN * row, _WIDTH, _HEIGHT))
    columns, most = max(depth.values(), default=0), max(rows.values(), default=0)
    if len(cards) > CARDS:
        more: dict[str, Any] = {
            "id": _id("more", root),
            "type": "text",
            "text": say("mirror.and_more", n=len(cards) - CARDS),
        }
        nodes.append(more | _place(0, _DOWN * (most + 1), _WIDTH, 60))
    group: dict[str, Any] = {"id": _id("group", root), "type": "group", "label": root}
    group |= _place(-40, -60, _RIGHT * columns + _WIDTH + 80, _DOWN * most + _HEIGHT + 100)
    there = {card.task_id for card in shown}
    edges = [_edge(card) for card in shown if card.parent in there]
    return {"nodes": [group, *nodes], "edges": edges}


def merged(found: Canvas | None, ours: Canvas, last: Mapping[str, Any]) -> Canvas:
    """The canvas with our cards and arrows as they shall be, and everything of a person's as it is.

    Args:
        found: what stands in the file.
        ours: as `drawn`.
        last: by id what we last gave a card in colour and size; what differs from it a person has chosen.
    """
    if found is None:
        return ours
    fresh = {**found}
    for kind in ("nodes", "edges"):
        known = [dict(one) for one in found.get(kind) or [] if isinstance(one, dict)]
        places = {str(one.get("id")): one for one in known}
        for wanted in ours[kind]:
            there = places.get(wanted["id"])
            if there is None:
                known.append(wanted)
            else:
                _renew(there, wanted, last.get(wanted["id"]) or {})
        fresh[kind] = known
    return fresh


def remembered(ours: Canvas) -> dict[str, Any]:
    """What is kept of our cards for the next `merged`."""
    return {one["id"]: {key: one.get(key) for key in ("color", "width", "height")} for one in ours["nodes"]}


def faults(value: Any) -> str:
    """Why a value is no canvas, "" if it is one."""
    if not isinstance(value, dict):
        return "is no JSON object"
    wrong = next((key for key in ("nodes", "edges") if not isinstance(value.get(key, []), list)), "")
    return f"has {wrong} that are no list" if wrong else ""


def _renew(there: dict[str, Any], wanted: Mapping[str, Any], last: Mapping[str, Any]) -> None:
    for key in ("type", "file", "text", "label"):
        if key in wanted:
            there[key] = wanted[key]
        elif wanted.get("type") in ("file", "text"):
            there.pop(key, None)
    keys = ("color", "width", "height") if wanted.get("type") == "group" else ("color",)
    for key in keys:
        if there.get(key) == last.get(key):
            there.pop(key, None)
            if wanted.get(key) is not None:
                there[key] = wanted[key]


def _node(card: Card, say: Say) -> dict[str, Any]:
    colour = {"color": _COLOURS[card.status]} if card.status in _COLOURS else {}
    if card.file:
        return {"id": _id("node", card.task_id), "type": "file", "file": card.file, **colour}
    state = say(f"mirror.state.{card.status}")
    text = f"**{card.task_id}**\n{state} · {card.to}\n{card.title}"
    return {"id": _id("node", card.task_id), "type": "text", "text": text, **colour}


def _edge(card: Card) -> dict[str, Any]:
    ends = {"fromNode": _id("node", card.parent), "fromSide": "right", "toNode": _id("node", card.task_id)}
    label = {"label": card.branch} if card.branch else {}
    return {"id": _id("edge", f"{card.parent}>{card.task_id}"), **ends, "toSide": "left", **label}


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "width": width, "height": height}


def _id(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind}:{name}".encode()).hexdigest()[:16]
