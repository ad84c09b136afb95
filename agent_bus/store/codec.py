"""Keys, and documents as bytes: what every engine accepts and refuses alike."""

from __future__ import annotations

import re
from typing import cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from agent_bus.errors import invalid, too_large
from agent_bus.store.port import Unreadable, Value

DOCUMENT_BYTES = 2 * 1024 * 1024
"""The limit of what is written (docs/protocol.md "Limits")."""
READ_BYTES = 4 * DOCUMENT_BYTES
"""The limit of what is read: a file of somebody else must not fill the memory."""
KEY_BYTES = 1000
NAME_BYTES = 240
"""File systems allow 255 bytes a name; `.json` and a sync tool's own ending must fit."""
# Temp files of editors and synchronisers (~$ of Office, ~syncthing~ of Syncthing) are nobody's documents.
_SEGMENT = r'(?![ .]|~\$|~syncthing~)[^/\\\x00-\x1f<>:"|?*\ud800-\udfff]+(?<![ .])'
_NAME = re.compile(_SEGMENT)
_PREFIX = re.compile(rf"(?:\.bus|{_SEGMENT})(?:/{_SEGMENT})*")
_ALWAYS_READABLE = 4300  # below this many bytes and half as deep as the parser goes, only NaN and infinity can go wrong
_DEPTH = 100


def is_name(text: str) -> bool:
    """Whether the text can be one segment of a key."""
    return _NAME.fullmatch(text) is not None and _fits(text, NAME_BYTES)


def check_prefix(prefix: str) -> None:
    """Raises BusError `invalid` unless the prefix is a relative path of safe names, or `.bus` and such a path."""
    if not (
        _PREFIX.fullmatch(prefix) and _fits(prefix, KEY_BYTES) and all(_fits(s, NAME_BYTES) for s in prefix.split("/"))
    ):
        raise bad_key(prefix)


def check_key(key: str) -> None:
    """Raises BusError `invalid` unless the key is a name, or a prefix and a name."""
    prefix, slash, name = key.rpartition("/")
    if not is_name(name):
        raise bad_key(key)
    if slash:
        check_prefix(prefix)


def bad_key(key: str) -> Exception:
    """The error for a key that is none."""
    return invalid("key", f"must be a relative path of safe names, got {key[:80]!a}")


def dump(key: str, value: Value) -> bytes:
    """A document as the bytes of its file; whatever is written can be read again.

    Raises:
        BusError: `invalid` for what JSON cannot hold (lone surrogates, NaN, more than 200 levels), `too_large`.
    """
    try:
        data = to_json(value, indent=2) + b"\n"
        if len(data) <= DOCUMENT_BYTES and _is_doubtful(data):
            parse(key, data)
    except (PydanticSerializationError, Unreadable) as error:
        rule = "must be JSON: valid Unicode without lone surrogates, finite numbers, at most 200 levels"
        raise invalid("text", f"{rule} ({error})"[:300]) from error
    if len(data) > DOCUMENT_BYTES:
        raise too_large(f"the document {key.rpartition('/')[2]}", len(data), DOCUMENT_BYTES, "bytes")
    return data


def parse(key: str, data: bytes) -> Value:
    """A document's bytes as an object; BOM and CRLF are fine.

    Raises:
        Unreadable: no JSON object.
    """
    text = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Unreadable(key, f"no JSON ({str(error)[:100]})" if text.strip() else "empty") from None
    if not isinstance(value, dict):
        raise Unreadable(key, "JSON, but no object")
    return cast(Value, value)


def _fits(text: str, limit: int) -> bool:
    return len(text) * 4 <= limit or len(text.encode("utf-8", "replace")) <= limit


def _is_doubtful(data: bytes) -> bool:
    if len(data) > _ALWAYS_READABLE or b"NaN" in data or b"Infinity" in data:
        return True
    return data.count(b"{") + data.count(b"[") > _DEPTH
