"""The notes of a room as they shall be: the note of the room, and the parts of its transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_bus.domain import room_note
from agent_bus.domain.inert import Plain, Value, one_line
from agent_bus.domain.mirrors import Local, Mirror, head
from agent_bus.texts import Texts

PART_BYTES = 64 * 1024
"""A part is written whole at each change, so it is kept small."""


def room_mirror(
    texts: Texts, setup: Mapping[str, Any], state: Mapping[str, Any], last: Mapping[str, Any] | None, stem: str,
    parts: int, zone: str, local: Local,
) -> Mirror:  # fmt: skip
    """The note of a room.

    Args:
        state: its head.
        last: the last public message, None before the first.
        stem: its file name without `.md`; `parts`: how many parts its transcript has.
        zone, local: for times.
    """
    links = [f"[[{part_name(stem, number)}]]" for number in range(1, parts + 1)]
    shown = "".join(f"- {link}\n" for link in links) + (f"\n!{links[-1]}\n" if links else "")
    body = room_note.room_note(texts, setup, state, last, zone)
    text = f"{body}\n{texts.say('mirror.transcript')}\n\n{shown}"
    members = [str(one["handle"]) for one in state["members"].values()]
    own: list[tuple[str, Value]] = [
        ("ab_room", str(setup["room"])),
        ("ab_part", parts),
        ("ab_messages", int(state["messages"])),
        ("ab_members", members),
        ("ab_created", Plain(local(str(setup["opened_at"])))),
        *([("ab_last", Plain(local(str(last["at"]))))] if last else []),
    ]
    name = str(setup["room"])
    title = one_line(setup["topic"] or name)
    return Mirror("room", name, f"rooms/{stem}", head("room", name, title, *own), {"body": text},
                  f"\n{texts.say('mirror.notes')}\n")  # fmt: skip


def part_mirror(texts: Texts, setup: Mapping[str, Any], stem: str, number: int, text: str, local: Local) -> Mirror:
    """A part of a transcript."""
    name, room = part_name(stem, number), str(setup["room"])
    own: list[tuple[str, Value]] = [
        ("ab_room", room),
        ("ab_part", number),
        ("ab_created", Plain(local(str(setup["opened_at"])))),
    ]
    properties = head("room-transcript", name, name, *own)
    return Mirror("room-transcript", name, f"rooms/{name}", properties, {"transcript": text},
                  f"\n{texts.say('mirror.notes')}\n")  # fmt: skip


def part_name(stem: str, number: int) -> str:
    """The file name of a part."""
    return f"{stem}-Transcript-{number:03d}"
