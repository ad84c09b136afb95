"""What was said in a debate, in parts that fit an answer: first the references, then the turns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.operations import debates
from agent_bus.operations.debates import Debate

_CURSOR = re.compile(r"(?:r(?P<refs>\d{1,9})|t(?P<turn>\d{1,6})\.(?P<offset>\d{1,9}))", re.ASCII)
_LEAST = 300
"""Less room than this is not worth a part of a turn."""


@dataclass(frozen=True)
class Start:
    """Where a page begins: in the references, or in a turn.

    Args:
        references: how much of the references is known; None = they are not wanted.
        turn: the first turn to show.
        offset: how much of that turn is known.
    """

    references: int | None
    turn: int
    offset: int = 0


def read(cursor: str, since: int) -> Start:
    """The start that a cursor stands for, or without one the last turn that is known.

    Raises:
        BusError: `invalid` for a cursor that is none of ours.
    """
    if not cursor:
        return Start(None if since else 0, since + 1)
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise paging.strange_cursor(cursor)
    if match["refs"] is not None:
        return Start(int(match["refs"]), 1)
    return Start(None, int(match["turn"]), int(match["offset"]))


def page(bus: Bus, found: Debate, start: Start, room: int) -> dict[str, Any]:
    """The references as far as they are wanted and fit, the turns that fit behind them, and the cursor."""
    made: dict[str, Any] = {"transcript": [], "cursor": ""}
    if start.references is not None and (text := debates.references(bus, found)):
        part = paging.fit(text[start.references :], room - 100)
        made["reference_results"] = part
        room -= paging.size(part) + 30
        end = start.references + len(part)
        if end < len(text):
            return {**made, "cursor": f"r{end}"}
    for turn in debates.turns(bus, found, start.turn - 1):
        offset = start.offset if turn["turn"] == start.turn else 0
        row = {k: turn[k] for k in ("turn", "round", "speaker", "kind", "signoff")} | {"timestamp": turn["at"]}
        text = str(turn["content"])[offset:]
        left = room - paging.size(row) - 40
        if paging.size(text) > left and (left < _LEAST or (made["transcript"] and len(text) <= left // 2)):
            return {**made, "cursor": f"t{turn['turn']}.{offset}"}
        part = paging.fit(text, left)
        cut = len(part) < len(text)
        made["transcript"].append({**row, "content": part} | ({"cut": True} if cut else {}))
        if cut:
            return {**made, "cursor": f"t{turn['turn']}.{offset + len(part)}"}
        room -= paging.size(made["transcript"][-1]) + 1
    return made
