"""Messages of a room: their limits, their recipients, and repeats of them. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_bus import ids
from agent_bus.domain import mentions, room, rounds
from agent_bus.domain.room_acts import (
    Record,
    Who,
    check_host,
    check_open,
    check_running,
    check_turn,
    host_only,
    known,
    members,
    wrong_phase,
)
from agent_bus.domain.turns import ACTIVE, Value
from agent_bus.errors import BusError, too_large

CONTENT_BYTES = 98_304
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Wish:
    """What somebody wants to say.

    Args:
        to: whom privately; else the mentions of the text, if `private`.
        mention: one member whom a public message of a moderated or free room is for.
        key: makes a repeat safe.
    """

    content: str
    to: Sequence[str] = ()
    private: bool = False
    mention: str = ""
    key: str = ""

    @property
    def is_private(self) -> bool:
        """Whether it is for some alone."""
        return self.private or bool(self.to)

    @property
    def sha(self) -> str:
        """What makes it the same as another."""
        parts = [self.content, self.is_private, [mentions.key(t) for t in self.to], ids.fold(self.mention)]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Said:
    """A message's record, and what its sender is told beside it."""

    record: Record
    unknown: tuple[tuple[str, str], ...] = ()
    ignored_all: bool = False


def clean(content: str) -> str:
    """The text as it is kept.

    Raises:
        BusError: `bad_content` for a blank one; `too_large`.
    """
    text = _CONTROL.sub("\ufffd", content.replace("\r\n", "\n"))
    text = text.encode("utf-8", "replace").decode("utf-8")
    if not text.strip():
        raise BusError("bad_content", "content must not be blank.", "Say something.")
    if (size := len(text.encode("utf-8"))) > CONTENT_BYTES:
        raise too_large("content", size, CONTENT_BYTES, "bytes")
    return text


def repeated(setup: Value, head: Value, who: Who, wish: Wish) -> int:
    """The number of the message that this wish repeats; 0 if it is a new one.

    Raises:
        BusError: `conflict` for a key that was used for another message.
    """
    recent = head["members"][who.key]["recent"] if who.key else []
    if wish.key:
        for old in (r for r in recent if r["key"] == wish.key):
            if old["sha"] != wish.sha:
                raise BusError("conflict", f"key {wish.key} was used for another message.", "Take a new key.")
            return int(old["number"])
        return 0
    same = bool(recent) and recent[-1]["sha"] == wish.sha and not recent[-1]["key"]
    return int(recent[-1]["number"]) if same and setup["mode"] != room.FREE and head["floor"] != who.key else 0


def message(setup: Value, head: Value, who: Who, wish: Wish) -> Said:
    """A message as its record.

    Raises:
        BusError: what forbids it, in the order: closed, limits, turn, recipients.
    """
    if wish.is_private and setup["mode"] == room.MODERATED:
        return whisper(setup, head, who, wish)
    check_open(head)
    text = clean(wish.content)
    _check_turn(setup, head, who)
    found = mentions.find(text, room.names(head), setup["scan_quotes"])
    if wish.is_private:
        to, ignored = _private(setup, head, who, wish, found), False
        seen: dict[str, Any] = {"seen": [who.key, *to]}
    else:
        to, ignored = _public(setup, head, who, wish, found)
        scope = head["scope"]
        seen = {"seen": list(dict.fromkeys([*scope, room.host_key(setup)]))} if scope else {}
    turn = {"turn": True} if head["phase"] == rounds.SPEAKING else {}
    return Said(_record(head, who, wish, text, to) | seen | turn, found.unknown, ignored)


def whisper(setup: Value, head: Value, who: Who, wish: Wish) -> Said:
    """A private remark in a moderated room, at any time: of the host to members, of a member to the host."""
    check_running(setup, head, who)
    text = clean(wish.content)
    host = room.host_key(setup)
    named = wish.to or ([] if who.host else [setup["host"]])
    to = [k for k in members(setup, head, named, "names", host=True) if k != who.key]
    if not who.host and to != [host]:
        raise host_only()
    if not to:
        raise BusError("no_recipient", "a whisper needs recipients.", "Name members.")
    to = list(dict.fromkeys(to))
    return Said(_record(head, who, wish, text, to) | {"seen": [who.key, *to], "whisper": True})


def _record(head: Value, who: Who, wish: Wish, text: str, to: Sequence[str]) -> Record:
    handles = [head["members"][key]["handle"] for key in to]
    return {"kind": room.MESSAGE, "from": who.handle, "who": who.key, "to": handles, "content": text,
            "key": wish.key, "sha": wish.sha}  # fmt: skip


def _check_turn(setup: Value, head: Value, who: Who) -> None:
    check_running(setup, head, who)
    if not who.key:
        raise BusError("refused", "the opener has no voice in the room.", "Join with a name.")
    if setup["mode"] == room.MENTION and head["floor"] and not who.host:
        check_turn(head, who)
    if setup["mode"] != room.MODERATED:
        return
    if head["phase"] == rounds.SPEAKING or not who.host:
        check_turn(head, who)
    elif head["phase"] != rounds.IDLE:
        check_host(setup, head, who)
        raise wrong_phase(head, "the host speaks between rounds or in its order")


def _public(setup: Value, head: Value, who: Who, wish: Wish, found: mentions.Found) -> tuple[list[str], bool]:
    named = [k for k in map(ids.fold, found.handles) if k != who.key]
    here = [k for k, m in head["members"].items() if m["s"] == ACTIVE and k != who.key]
    valid = [k for k in named if k in here]
    if setup["mode"] != room.MENTION:
        first = [known(head, wish.mention)] if wish.mention else []
        return list(dict.fromkeys([*first, *valid])), False
    if valid:
        return valid, found.everyone
    if found.everyone and here:
        return here, False
    if named:
        raise BusError("recipient_left", f"{', '.join(found.handles)} cannot be reached.", "Address somebody else.")
    names = ", ".join(head["members"][k]["handle"] for k in here)
    unknown = f" Unknown: {', '.join(u for u, _ in found.unknown)}." if found.unknown else ""
    raise BusError("no_recipient", f"the message addresses nobody.{unknown}", f"Mention one of: {names}, or @all.")


def _private(setup: Value, head: Value, who: Who, wish: Wish, found: mentions.Found) -> list[str]:
    if found.everyone:
        raise BusError("no_recipient", "a private message cannot be for @all.", "Name its recipients.")
    for one in wish.to:
        if mentions.key(one) == mentions.ALL:
            raise BusError("no_recipient", "a private message cannot be for @all.", "Name its recipients.")
    to = [k for k in members(setup, head, wish.to or found.handles, "to", host=True) if k != who.key]
    to = list(dict.fromkeys(to))
    if not to:
        raise BusError("no_recipient", "a private message needs recipients.", "Name them in `to`, or mention them.")
    outside = [h for h in found.handles if ids.fold(h) not in (*to, who.key)]
    if outside:
        raise BusError("outsider_mentioned", f"{outside[0]} would not see it.", "Do not mention others in it.")
    return to
