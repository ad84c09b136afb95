"""The `options` of a dispatch: one flat tool parameter that holds JSON, checked key by key."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from agent_bus import ids
from agent_bus.domain import chain
from agent_bus.errors import invalid
from agent_bus.times import read_stamp, stamp

LABELS = 16
LIMITS = ("runtime_s", "cost_usd", "tokens")


def read_options(text: str, now: datetime) -> dict[str, Any]:
    """The checked options; {} for an empty text.

    Raises:
        BusError: `invalid` naming the key, its rule and a good value; `too_large` for a chain that is.
    """
    if not text:
        return {}
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise invalid("options", "must be a JSON object", 'For example {"max_attempts": 2}.')
    ready = {}
    for key, value in given.items():
        if key not in _CHECKS:
            raise invalid(f"options.{key[:40]}", "is unknown", f"Known are {', '.join(_CHECKS)}.")
        if value is not None:
            ready[key] = _CHECKS[key](f"options.{key}", value)
    if "expires_at" in ready and read_stamp(ready["expires_at"], "options.expires_at") <= now:
        raise invalid("options.expires_at", "must lie in the future")
    return ready


def _attempts(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 20:
        raise invalid(name, "must be a whole number from 1 to 20", "Use 3.")
    return value


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise invalid(name, "must be true or false")
    return value


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise invalid(name, "must be a text that is not empty")
    return value


def _time(name: str, value: Any) -> str:
    return stamp(read_stamp(_string(name, value), name))


def _task_id(name: str, value: Any) -> str:
    return ids.check_task_id(_string(name, value), name)


def _name(name: str, value: Any) -> str:
    return ids.check_key(_string(name, value), name)


def _labels(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > LABELS:
        raise invalid(name, f"must be an array of at most {LABELS} texts", 'For example ["docs"].')
    return [_name(name, item) for item in value]


def _limits(name: str, value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or not set(value) <= set(LIMITS):
        raise invalid(name, f"must be an object with {', '.join(LIMITS)}", 'For example {"runtime_s": 600}.')
    for key, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < 1e12:
            raise invalid(f"{name}.{key}", "must be a number above 0")
    return value


def _chain(name: str, value: Any) -> list[dict[str, Any]]:
    return chain.check_chain(value, name)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "max_attempts": _attempts,
    "retry_failed": _boolean,
    "expires_at": _time,
    "parent": _task_id,
    "thread": _name,
    "labels": _labels,
    "limits": _limits,
    "next_tasks": _chain,
}
