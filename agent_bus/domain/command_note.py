"""A note in `commands/` that is an order (docs/vault-notes.md "Command notes")."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from agent_bus import ids
from agent_bus.domain.human import word
from agent_bus.domain.task import PRIORITIES

DISPATCH, PRIORITY, STOP, SAY = "dispatch", "priority", "stop", "say"
VERBS = (DISPATCH, "approve", "reject", "answer", "cancel", PRIORITY, STOP, SAY)
TEXT_CHARS = 200_000
_NO_COMMANDS = ("inbox", "_about")
_COPY = re.compile(r"conflicted copy|\.sync-conflict-|\.conflict|競合", re.IGNORECASE)
_LINK = re.compile(r"\[\[([^\]|#]+)(?:[|#][^\]]*)?\]\]")


class NoCommand(ValueError):
    """What is wrong with an order: the name of a text, and what it is about."""

    def __init__(self, name: str, about: str = "") -> None:
        super().__init__(name, about)
        self.name = name
        self.about = about


@dataclass(frozen=True)
class Command:
    """An order as it stands in a note.

    Args:
        verb: one of VERBS.
        text: the instruction or answer.
        fields: what else it says.
        made: the stamp of the template, "" for none.
    """

    verb: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""
    again: bool = False

    def content(self) -> str:
        """What makes two orders say the same."""
        said = json.dumps([self.verb, self.text, sorted(self.fields.items())], ensure_ascii=False)
        return hashlib.sha256(said.encode()).hexdigest()[:32]


def is_candidate(stem: str) -> bool:
    """Whether a note of this name may be an order; a copy by a synchroniser is none."""
    return word(stem) not in _NO_COMMANDS and not is_copy(stem)


def is_copy(stem: str) -> bool:
    """Whether a synchroniser has made this note as its copy of another one."""
    return _COPY.search(stem) is not None


def is_ready(values: Mapping[str, Any]) -> bool:
    """Whether a note says that it is an order, and finished."""
    return values.get("ab_kind") == "command" and values.get("ab_ready") is True


def read(values: Mapping[str, Any], body: str) -> Command:
    """The order in a note.

    Raises:
        NoCommand: what is wrong with it.
    """
    room = _text(values, "ab_room")
    verb = word(_text(values, "ab_command")) or (SAY if room else DISPATCH)
    if verb not in VERBS:
        raise NoCommand("verb", verb)
    made = _text(values, "ab_made")
    priority = word(_text(values, "ab_priority")) or "normal"
    if priority not in PRIORITIES:
        raise NoCommand("priority", priority)
    text, fields = body.strip(), dict[str, Any]()
    if verb == DISPATCH:
        fields = {
            "target": "".join(_ids(values.get("ab_to"))[:1]).removeprefix("@").removeprefix("＠"),
            "priority": priority,
            "after": _ids(values.get("ab_after")),
            "not_before": _text(values, "ab_not_before"),
        }
        if not fields["target"]:
            raise NoCommand("no_agent")
    elif verb == SAY:
        fields = {"room": _ids([room])[0] if room else ""}
        if not room:
            raise NoCommand("no_room")
    elif verb != STOP:
        task = "".join(_ids(values.get("ab_task")))
        if not ids.is_task_id(task):
            raise NoCommand("no_task")
        fields = {"task_id": task, "req": _text(values, "ab_req"), "priority": priority if verb == PRIORITY else ""}
    if verb in (DISPATCH, "answer", SAY) and not text:
        raise NoCommand("empty")
    if len(text) > TEXT_CHARS:
        raise NoCommand("too_long", f"{len(text):,} / {TEXT_CHARS:,}")
    return Command(verb, text, fields, "" if "{{" in made else made, values.get("ab_again") is True)


def _text(values: Mapping[str, Any], name: str) -> str:
    found = values.get(name)
    if isinstance(found, datetime | date):
        return found.isoformat()
    return str(found).strip() if isinstance(found, str | int) and not isinstance(found, bool) else ""


def _ids(found: Any) -> list[str]:
    items = found if isinstance(found, list) else [found] if found else []
    texts = [str(one).strip() for one in items]
    return [mark[1].strip() if (mark := _LINK.fullmatch(text)) else text for text in texts if text]
