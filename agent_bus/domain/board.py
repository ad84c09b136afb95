"""The board: one value a key, every version kept. Pure.

an entry   `{schema, key, value, author, ts, tags, version, deleted}`; order is the version, never the clock
a delete   a version with `deleted: true` and no value, kept for ever: a later write goes on counting
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from datetime import datetime, timedelta
from typing import Any

from agent_bus.errors import BusError, invalid, too_large
from agent_bus.times import parse_stamp, stamp

SCHEMA = 1
KEY_BYTES = 512
VALUE_BYTES = 98_304
TAGS = 32
TAG_CHARS = 64
AHEAD = timedelta(seconds=1)
"""A stored time that is further ahead of now is a wrong clock's or a hand's, and must not push time forward for all."""
ANONYMOUS = "anonymous"
RESERVED = {
    "tips/": "moa_tip_create",
    "handoff/": "moa_handoff_send",
    "tower/": "the tools of the tower",
    "debate/": "moa_submit_turn",
    "@": "the tool of its kind; the bus keeps @ for itself",
}
"""Beginnings of keys that stand for typed records, and what writes those."""
_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 48


def check_key(key: str) -> str:
    """The key in NFC; case counts.

    Raises:
        BusError: `invalid` or `too_large`, naming 512 bytes.
    """
    value = unicodedata.normalize("NFC", key)
    if not value or any(unicodedata.category(c) == "Cc" for c in value):
        rule = f"must have 1 to {KEY_BYTES} bytes in UTF-8 and no control characters"
        raise invalid("key", rule, "For example auth/contract.")
    if (size := len(value.encode())) > KEY_BYTES:
        raise too_large("key", size, KEY_BYTES, "bytes")
    return value


def check_free(key: str) -> None:
    """Raises BusError `refused` for the key of a typed record, naming the tool that writes those."""
    for beginning, tool in RESERVED.items():
        if key.startswith(beginning):
            raise BusError("refused", f"keys that begin with {beginning} are no board entries.", f"Use {tool}.")


def check_value(value: str) -> None:
    """Raises BusError `too_large` above 98,304 bytes."""
    if (size := len(value.encode())) > VALUE_BYTES:
        raise too_large("value", size, VALUE_BYTES, "bytes")


def check_tags(tags: list[str], name: str = "tags") -> list[str]:
    """The tags without doubles, the first of equal ones kept.

    Raises:
        BusError: `invalid` for an empty one.
    """
    if any(not tag.strip() for tag in tags):
        raise invalid(name, f"must be of 1 to {TAG_CHARS} characters each", 'For example ["auth"].')
    return list(dict.fromkeys(tags))


def file_name(key: str) -> str:
    """The name of an entry's document: a label for people and a hash that tells keys apart; never parsed."""
    label = _SLUG.sub("-", key.casefold()).strip("-")[:_SLUG_CHARS].strip("-") or "key"
    return f"{label}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def is_live(entry: dict[str, Any] | None) -> bool:
    """Whether there is something to read."""
    return entry is not None and not entry.get("deleted")


def version_of(entry: dict[str, Any] | None) -> int:
    """The version of an entry, 0 for none; what a hand spoiled counts as 1."""
    found = entry.get("version") if entry else 0
    return found if isinstance(found, int) and found >= 0 else 1


def next_version(
    old: dict[str, Any] | None,
    key: str,
    now: datetime,
    author: str,
    value: str | None,
    tags: list[str],
    after: int = 0,
) -> dict[str, Any]:
    """The entry that follows another.

    Args:
        old: the present one; None = there is none.
        value: None = it is deleted.
        after: the last version that history knows, where there is no entry (its file was damaged or taken away).
    """
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "key": key,
        "value": "" if value is None else value,
        "author": author,
        "ts": next_ts(str(old.get("ts", "")) if old else "", now),
        "tags": tags,
        "version": (version_of(old) if old else after) + 1,
        "deleted": value is None,
    }
    return {**(old or {}), **made}


def next_ts(before: str, now: datetime) -> str:
    """Now, or a millisecond after the time before; one that is more than a second ahead is no time at all."""
    try:
        earlier = parse_stamp(before)
    except ValueError:
        return stamp(now)
    if earlier > now + AHEAD:
        return stamp(now)
    return max(stamp(now), stamp(earlier + timedelta(milliseconds=1)))


def check_expected(entry: dict[str, Any] | None, key: str, expected: int, only_if_new: bool) -> None:
    """Raises BusError `conflict` with the present version, unless a write may go ahead."""
    version = version_of(entry)
    if only_if_new and is_live(entry):
        raise BusError(
            "conflict", f"the key {key[:80]!r} exists, at version {version}.", "Read it before you write it."
        )
    if expected and expected != version:
        rule = f"is at version {version}, not {expected}" if version else "does not exist"
        raise BusError("conflict", f"the key {key[:80]!r} {rule}.", "Read it again, then write with its version.")
