"""Hand-offs: addressed work that one reader takes. Pure.

pending   -> consumed, archived      one winner
consumed  -> nothing
archived  -> nothing
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from agent_bus.domain.board import next_ts
from agent_bus.errors import BusError, invalid, too_large

PENDING, CONSUMED, ARCHIVED = "pending", "consumed", "archived"
TRANSITIONS = {PENDING: (CONSUMED, ARCHIVED), CONSUMED: (), ARCHIVED: ()}
USER_GLOBAL = "user-global"
TITLE_CHARS = 200
SUMMARY_CHARS = 4000
DOCUMENT_BYTES = 98_304
_ADDRESS = re.compile(r"[a-z0-9-]{1,40}(?::[^:\s]{1,80}){2}")
_ID = re.compile(r"ho_[0-9a-f]{12}", re.ASCII)


def check_address(text: str, name: str) -> str:
    """An agent's address `label:session:agent`, or "".

    Raises:
        BusError: `invalid`.
    """
    if text and not _ADDRESS.fullmatch(text):
        rule = f"must be label:session:agent (label a-z 0-9 -, the others without : and spaces), got {text[:60]!a}"
        raise invalid(name, rule, "For example codex:s2:main.")
    return text


def check_id(text: str) -> str:
    """Raises BusError `invalid` unless the text is `ho_` and 12 hex characters."""
    if not _ID.fullmatch(text):
        raise invalid("id", f"must be a hand-off's id, got {text[:40]!a}", "moa_handoff_inbox shows them.")
    return text


def create(name: str, fields: Mapping[str, str], at: str) -> dict[str, Any]:
    """A new hand-off.

    Args:
        name: its id.
        fields: title, summary, context, fromProject, toProject, fromAgent, toAgent, author.

    Raises:
        BusError: `invalid` for an empty title or summary or a bad address, `too_large`.
    """
    for key in ("title", "summary"):
        if not fields[key].strip():
            raise invalid(key, "must not be empty", "Say what is handed over.")
    for key in ("fromAgent", "toAgent"):
        check_address(fields[key], key)
    addressed = bool(fields["fromAgent"] or fields["toAgent"])
    times = {"createdAt": at, "updatedAt": at, "consumedAt": ""}
    made = {"v": 2 if addressed else 1, "id": name, **fields, "state": PENDING, **times}
    if (size := len(to_json(made))) > DOCUMENT_BYTES:
        raise too_large("the hand-off", size, DOCUMENT_BYTES, "bytes")
    return made


def move(old: Mapping[str, Any], to: str, actor: str, now: datetime) -> dict[str, Any]:
    """The hand-off in another state.

    Raises:
        BusError: `conflict` naming both states.
    """
    state = str(old.get("state", ""))
    if to not in TRANSITIONS.get(state, ()):
        hint = "Somebody has taken it already; moa_handoff_inbox shows what is pending."
        raise BusError("conflict", f"the hand-off is {state} and cannot become {to}.", hint)
    at = next_ts(str(old.get("updatedAt", "")), now)
    made = {**old, "state": to, "updatedAt": at}
    return made | ({"consumedAt": at, "consumedBy": actor} if to == CONSUMED else {"archivedBy": actor})


def closed_folder(value: Mapping[str, Any]) -> str:
    """The month of creation, in which an ended hand-off lies."""
    found = str(value.get("createdAt", ""))[:7]
    return found if re.fullmatch(r"\d{4}-\d{2}", found) else "0000-00"


def is_handoff(value: Mapping[str, Any]) -> bool:
    """Whether a document can be shown as a hand-off."""
    return all(isinstance(value.get(key), str) for key in ("id", "title", "summary", "state", "updatedAt"))


def fits(value: Mapping[str, Any], state: str, agent: str) -> bool:
    """Whether a list of a state ("" = all) and an addressed agent ("" = all) shows a hand-off."""
    return (not state or value.get("state") == state) and (not agent or value.get("toAgent") == agent)
