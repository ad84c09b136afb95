"""Task ids, agent names, context keys and lease ids: made and checked here, and nowhere else.

Rules: docs/protocol.md "Names". Names become file names, so they must be legal on every system
(Windows reserves CON, NUL, COM1 … whatever their case and ending) and equal names must meet in one folder.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

from agent_bus.errors import BusError, invalid

AGENT_CHARS = 64
KEY_CHARS = 120
NAME_BYTES = 200
_TASK_ID = re.compile(r"t-(\d{4})(\d{2})(\d{2})-(\d{6})-(\d{3,9})", re.ASCII)
_RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{p}{n}" for p in ("com", "lpt") for n in "0123456789¹²³"
}
_WORKER = re.compile(r"(?P<name>.+?)(?:#(?P<slot>[1-9]\d{0,2}))?")


def format_task_id(now: datetime, number: int) -> str:
    """The task id for a UTC time and a number within its second (widens past 999)."""
    return f"t-{now:%Y%m%d-%H%M%S}-{number:03d}"


def is_task_id(text: str) -> bool:
    """Whether the text is a task id: `t-YYYYMMDD-HHMMSS-NNN`."""
    return _TASK_ID.fullmatch(text) is not None


def check_task_id(text: str, name: str = "task_id") -> str:
    """The id unchanged.

    Raises:
        BusError: `invalid` if it is not a task id.
    """
    if not is_task_id(text):
        raise invalid(name, f"must be a task id, got {_shown(text)}", "A task id looks like t-20260307-101500-001.")
    return text


def month_of(task_id: str) -> str:
    """The archive month `YYYY-MM` of a task id."""
    match = _TASK_ID.fullmatch(task_id)
    if match is None:
        raise invalid("task_id", f"must be a task id, got {_shown(task_id)}")
    return f"{match[1]}-{match[2]}"


def check_agent(text: str, name: str = "agent") -> str:
    """The agent's name in NFC.

    Raises:
        BusError: `invalid` with the rule that was broken.
    """
    return _check_name(text, name, AGENT_CHARS, extra="_-")


def check_key(text: str, name: str = "key") -> str:
    """The shared-context key in NFC; like an agent's name, with dots and up to 120 characters."""
    return _check_name(text, name, KEY_CHARS, extra="_-.")


def check_worker(text: str, name: str = "worker") -> str:
    """A worker label: an agent's name, or `NAME#2` … `NAME#999` for further slots of it."""
    match = _WORKER.fullmatch(text)
    base = check_agent(match["name"] if match else text, name)
    return f"{base}#{match['slot']}" if match and match["slot"] else base


def agent_of(worker: str) -> str:
    """The agent that a worker label belongs to (`codex#2` → `codex`)."""
    return worker.partition("#")[0]


def folder_of(name: str) -> str:
    """The folder or file stem of a name: NFC of its casefold."""
    return unicodedata.normalize("NFC", name.casefold())


def same_name(one: str, other: str) -> bool:
    """Whether two names mean the same: equal after NFKC and casefold."""
    return fold(one) == fold(other)


def fold(name: str) -> str:
    """The form in which names are compared."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _check_name(text: str, name: str, limit: int, extra: str) -> str:
    good = f"Use letters and digits of any script, {' '.join(extra)} , 1 to {limit} characters."
    value = unicodedata.normalize("NFC", text)
    if not value:
        raise invalid(name, "must not be empty", good)
    if len(value) > limit:
        raise invalid(name, f"must have at most {limit} characters, got {len(value)}", good)
    if len(value.encode("utf-8", "replace")) > NAME_BYTES:
        raise invalid(name, f"must have at most {NAME_BYTES} bytes in UTF-8", good)
    for char in value:
        if char not in extra and unicodedata.category(char)[0] not in "LMN":
            raise invalid(name, f"must not contain {_shown(char)}, got {_shown(value)}", good)
    _check_shape(value, name, good)
    return value


def _check_shape(value: str, name: str, good: str) -> None:
    if value[0] in ".-" or value[-1] == "." or unicodedata.category(value[0])[0] == "M":
        raise invalid(name, f"must not begin with . or - nor end with . , got {_shown(value)}", good)
    if fold(value).split(".")[0] in _RESERVED:
        raise invalid(name, f"must not be a reserved Windows name, got {_shown(value)}", good)


def _shown(text: str) -> str:
    """A text safe to show in an error: one line, escaped, at most 40 characters."""
    cut = text if len(text) <= 40 else text[:40] + "…"
    return ascii(cut) if not cut.isprintable() else f'"{cut}"'


__all__ = [
    "BusError",
    "agent_of",
    "check_agent",
    "check_key",
    "check_task_id",
    "check_worker",
    "fold",
    "folder_of",
    "format_task_id",
    "is_task_id",
    "month_of",
    "same_name",
]
