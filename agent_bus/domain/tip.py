"""Tips: a project's memory cards. Pure.

    captured -> exploring -> planned -> implemented -> archived     the usual way
    deferred, discarded                                             side exits

Any change of status is allowed, also back from archived; each is noted in `history`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic_core import to_json

from agent_bus.domain.board import check_tags, next_ts
from agent_bus.errors import invalid, too_large
from agent_bus.times import parse_stamp

Status = Literal["captured", "exploring", "planned", "implemented", "deferred", "discarded", "archived"]
STATUSES: tuple[str, ...] = get_args(Status)
TITLE_CHARS = 200
SUMMARY_CHARS = 2000
CONTEXT_BYTES = 32_768
MODULE_CHARS = 80
NEXT_CHARS = 500
ITEMS = 64
ITEM_CHARS = 300
DOCUMENT_BYTES = 49_152
HISTORY = 50
LISTS = ("tags", "documentRefs", "sourceRefs", "relatedTipIds", "relatedProjects")
OPTIONAL = ("context", "module", "nextAction", "sourceSessionId", *LISTS)
"""The fields that a tip may lack, and that `clear` may name."""
_REF = {"path", "section", "note", "contentHash"}


def create(name: str, fields: Mapping[str, Any], status: str, author: str, at: str) -> dict[str, Any]:
    """A new tip.

    Args:
        name: its id.
        fields: `title`, `summary` and optional ones; empty = not given.

    Raises:
        BusError: `invalid` or `too_large`.
    """
    made = {"schema": 1, "id": name, "title": "", "summary": "", "status": status, "createdAt": at, "updatedAt": at}
    made |= {"author": author, "lastActor": author, **_checked(fields), "history": []}
    for key in ("title", "summary"):
        if not str(made[key]).strip():
            raise invalid(key, "must not be empty", "Give a title and a summary.")
    return _whole(made)


def update(
    old: Mapping[str, Any], fields: Mapping[str, Any], status: str, clear: list[str], actor: str, now: Any
) -> dict[str, Any]:
    """The tip after a change.

    Args:
        fields: what is given; empty = unchanged.
        status: "" = unchanged.
        clear: optional fields to take away.
        now: the time.

    Raises:
        BusError: `invalid` for nothing to change or a field that cannot be cleared, `too_large`.
    """
    given = _checked(fields)
    for key in clear:
        if key not in OPTIONAL:
            raise invalid("clear", f"must name optional fields, got {key[:40]!a}", f"Those are {', '.join(OPTIONAL)}.")
        if key in given:
            raise invalid(key, "is given and in clear", "Do one of the two.")
    if not (given or clear or status):
        raise invalid("moa_tip_update", "changes nothing: no field was given", "Give a field, a status, or clear.")
    at = next_ts(str(old.get("updatedAt", "")), now)
    made = {k: v for k, v in old.items() if k not in clear} | given | {"updatedAt": at, "lastActor": actor}
    if status and status != old.get("status"):
        line = {"at": at, "actor": actor, "from": old.get("status", ""), "to": status}
        known = old.get("history")
        made |= {"status": status, "history": [*(known if isinstance(known, list) else []), line][-HISTORY:]}
    return _whole(made)


def hidden(tip: Mapping[str, Any], status: str, archived: bool) -> bool:
    """Whether a list leaves a tip out because of its status."""
    if status:
        return tip.get("status") != status
    return tip.get("status") == "archived" and not archived


def is_tip(value: Mapping[str, Any]) -> bool:
    """Whether a document can be shown as a tip."""
    try:
        parse_stamp(str(value.get("updatedAt", "")))
    except ValueError:
        return False
    return all(isinstance(value.get(key), str) for key in ("id", "title", "summary", "status"))


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The given fields, checked; those that are empty are left out."""
    found = {key: value for key, value in fields.items() if value}
    if (size := len(str(found.get("context", "")).encode())) > CONTEXT_BYTES:
        raise too_large("context", size, CONTEXT_BYTES, "bytes")
    for key in LISTS:
        if key in found:
            found[key] = check_tags(found[key], key)
    if "documentRefs" in found:
        found["documentRefs"] = [_reference(text) for text in found["documentRefs"]]
    return found


def _reference(text: str) -> dict[str, Any]:
    """A document's reference from a path or the JSON text of `{path, section?, note?, contentHash?}`."""
    good = 'For example docs/auth.md, or {"path": "docs/auth.md", "section": "Tokens"}.'
    found: Any = {"path": text}
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            raise invalid("documentRefs", f"holds broken JSON, {text[:40]!a}", good) from None
    if (
        not isinstance(found.get("path"), str)
        or set(found) - _REF
        or not all(isinstance(v, str) for v in found.values())
    ):
        raise invalid("documentRefs", f"must be paths or {{path, section, note, contentHash}}, got {text[:60]!a}", good)
    path = found["path"].replace("\\", "/")
    if not path or path.startswith("/") or path[1:2] == ":" or ".." in path.split("/"):
        raise invalid("documentRefs", f"needs a path relative to the project, without .., got {text[:60]!a}", good)
    return {**found, "path": path}


def _whole(made: dict[str, Any]) -> dict[str, Any]:
    if (size := len(to_json(made))) > DOCUMENT_BYTES:
        raise too_large("the tip", size, DOCUMENT_BYTES, "bytes")
    return made
