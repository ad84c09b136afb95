"""A room in words: the body of its note, and the entries of its transcript. Pure; the same room gives the same bytes.

A text by a member stands in a fence longer than any run of backticks in it, and names are escaped, so that no message
can forge an entry, a heading or a link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_bus.domain import inert, room, rounds, turns
from agent_bus.domain.turns import Value
from agent_bus.texts import Texts
from agent_bus.times import local_text

LAST_LINES, LAST_CHARS = 4, 1000
_MODES = {room.MENTION: "room.mode.mention", room.MODERATED: "room.mode.moderated", room.FREE: "room.mode.free"}
_PHASES = {
    rounds.IDLE: "room.phase.idle",
    rounds.COLLECTING: "room.phase.collecting",
    rounds.ORDERING: "room.phase.ordering",
    rounds.SPEAKING: "room.phase.speaking",
}
_ROWS = {
    turns.ACTIVE: "room.row.active",
    room.NOT_JOINED: "room.row.not_joined",
    room.LEFT: "room.row.left",
    room.ELIMINATED: "room.row.eliminated",
}


def room_note(texts: Texts, setup: Value, head: Value, last: Value | None, zone: str = "") -> str:
    """The body of a room's note.

    Args:
        last: the last public message, None before the first.
        zone: an IANA time zone; "" = this host's.
    """
    say = texts.say
    opened = local_text(str(setup["opened_at"]), zone).replace("T", " ")
    lines = [
        *([f"- **{say('room.topic')}:** {inert.flat(setup['topic'])}"] if setup["topic"] else []),
        f"- **{say('room.mode')}:** {say(_MODES[setup['mode']])}",
        f"- **{say('room.state')}:** {state_line(texts, setup, head)}",
        f"- **{say('room.opened')}:** {opened}",
        "",
    ]
    if last is not None:
        clock = local_text(str(last["at"]), zone)[11:]
        lines += [f"**{say('room.last')}:** {_way(last)} ({clock})", inert.fence(_short(str(last["content"])))]
    lines += [f"## {say('room.queue')}", "", f"| {say('room.member')} | {say('room.state')} |", "|---|---|"]
    lines += [f"| **{inert.flat(m['handle'])}** | {_row(texts, head, key)} |" for key, m in _ranked(head)]
    return "\n".join(lines) + "\n"


def state_line(texts: Texts, setup: Value, head: Value) -> str:
    """A room's state in a line."""
    if head["state"] == room.GATHERING:
        return texts.say("room.gathering", names=inert.flat(", ".join(room.waiting_for(setup, head)) or "…"))
    if head["state"] == room.CLOSED:
        return texts.say("room.closed")
    line = texts.say("room.running")
    if setup["mode"] == room.MODERATED:
        phase = texts.say(_PHASES[head["phase"]])
        line += texts.say("room.round", n=head["round"], phase=phase)
    if head["floor"]:
        return line + texts.say("room.has_floor", name=inert.flat(head["members"][head["floor"]]["handle"]))
    return line + (texts.say("room.no_floor") if setup["mode"] == room.MENTION else "")


def transcript_entry(texts: Texts, record: Value, zone: str = "") -> str:
    """A record's entry in the transcript, with its blank line; "" for records that give none."""
    at, number = local_text(str(record["at"]), zone).replace("T", " "), record["number"]
    if record["kind"] in (room.MESSAGE, room.REVEAL):
        if "seen" in record:
            return f"> 🔒 {number} · {texts.say('room.private')} · {at}\n\n"
        return f"#### {number} · {_way(record)} · {at}\n{inert.fence(str(record['content']))}\n"
    words = _NOTICES.get(str(record["kind"]))
    return f"> 🔔 {number} · {words(texts, record)} · {at}\n\n" if words else ""


def _named(key: str, field: str) -> Callable[[Texts, Value], str]:
    return lambda texts, record: texts.say(key, name=inert.flat(str(record[field])))


_NOTICES: dict[str, Callable[[Texts, Value], str]] = {
    "join": _named("room.joined", "from"),
    "leave": _named("room.left", "from"),
    "turn_skipped": _named("room.skipped", "who"),
    "eliminate": _named("room.eliminated", "name"),
    "close": lambda texts, record: texts.say("room.ended"),
    "collect": lambda texts, record: texts.say("room.round_opened"),
    "poll": lambda texts, record: texts.say("room.poll", question=inert.flat(str(record["question"]))),
}


def _way(record: Value) -> str:
    to = ", ".join(inert.flat(str(h)) for h in record.get("to", []))
    return inert.flat(str(record["from"])) + (f" → {to}" if to else "")


def _short(text: str) -> str:
    lines = text.split("\n")
    cut = "\n".join(lines[:LAST_LINES])[:LAST_CHARS]
    return cut if cut == text else f"{cut}\n(…)"


def _ranked(head: Value) -> list[tuple[str, dict[str, Any]]]:
    """The holder of the floor, then the queue, then the others by state, in the order in which they came."""
    line = [*([head["floor"]] if head["floor"] else []), *turns.queue(head)]
    states = (turns.ACTIVE, room.NOT_JOINED, room.LEFT, room.ELIMINATED)
    rest = [k for state in states for k, m in head["members"].items() if m["s"] == state and k not in line]
    return [(key, head["members"][key]) for key in dict.fromkeys([*line, *rest])]


def _row(texts: Texts, head: Value, key: str) -> str:
    one = head["members"][key]
    if key == head["floor"]:
        return texts.say("room.row.floor")
    if one["s"] == turns.ACTIVE and one["score"]:
        return texts.say("room.row.mention" if one["score"] == 1 else "room.row.mentions", n=one["score"])
    return texts.say(_ROWS[one["s"]])
