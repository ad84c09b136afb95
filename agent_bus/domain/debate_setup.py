"""The setup of a debate from what a call gives: agents and rules, or a preset as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_bus import ids
from agent_bus.domain.place import check_short
from agent_bus.errors import invalid, too_large

AGENTS = 12
TEXT_BYTES = 256 * 1024
_GOOD = '{"agents": ["a", {"id": "b", "binding_slot": "strong"}], "debate": {"rounds": 2}}'
_LIMITS = {"rounds": (1, 20), "turn_timeout_s": (0, 86_400)}


def read(task_id: str, preset: str, agents: list[str], flat: Mapping[str, Any]) -> dict[str, Any]:
    """The setup without its time and maker.

    Args:
        task_id: the debate's id, checked.
        preset: JSON, or "".
        agents: ids, also as `id@slot`, or [].
        flat: rounds, turn_timeout_s, on_timeout as parameters; the preset's win.

    Raises:
        BusError: `invalid`, `too_large`.
    """
    if bool(preset) == bool(agents):
        raise invalid("agents", "or preset_config must be given, one of the two", 'For example agents=["a", "b"].')
    if not preset:
        return _setup(task_id, [_of_text(text) for text in agents], flat, {})
    if (size := len(preset.encode())) > TEXT_BYTES:
        raise too_large("preset_config", size, TEXT_BYTES, "bytes")
    try:
        found = json.loads(preset)
    except (ValueError, RecursionError):
        raise invalid("preset_config", "must be JSON", _GOOD) from None
    if not isinstance(found, dict) or not isinstance(found.get("agents"), list):
        raise invalid("preset_config", "must be an object with a list agents", _GOOD)
    rules = found.get("debate", {})
    if not isinstance(rules, dict):
        raise invalid("preset_config.debate", "must be an object", _GOOD)
    extras = {k: v for k, v in found.items() if k not in ("agents", "debate")}
    more = {k: v for k, v in rules.items() if k not in flat}
    merged = {**flat, **{k: v for k, v in rules.items() if k in flat}}
    return _setup(
        task_id, [_of_item(one) for one in found["agents"]], merged, extras | ({"debate": more} if more else {})
    )


def _setup(task_id: str, agents: list[dict[str, Any]], rules: Mapping[str, Any], extras: Any) -> dict[str, Any]:
    if not 1 <= len(agents) <= AGENTS:
        raise invalid("agents", f"must be 1 to {AGENTS}, got {len(agents)}", 'For example ["a", "b"].')
    names = [ids.fold(agent["id"]) for agent in agents]
    if twice := next((a["id"] for a in agents if names.count(ids.fold(a["id"])) > 1), ""):
        raise invalid("agents", f"must be different, got {twice!a} twice", "Equal means: also in other letters.")
    for key, (low, high) in _LIMITS.items():
        value = rules[key]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise invalid(key, f"must be a whole number from {low} to {high}, got {value!a}"[:200])
    if rules["on_timeout"] not in ("skip", "pause"):
        raise invalid("on_timeout", f"must be skip or pause, got {rules['on_timeout']!a}"[:200], 'Use "skip".')
    return {"schema": 1, "task_id": task_id, "agents": agents, **rules, "extras": extras}


def _of_text(text: str) -> dict[str, Any]:
    name, at, slot = text.partition("@")
    return _checked({"id": name} | ({"binding_slot": slot} if at else {}))


def _of_item(one: Any) -> dict[str, Any]:
    if isinstance(one, str):
        return _checked({"id": one})
    if not isinstance(one, dict) or not isinstance(one.get("id"), str):
        raise invalid("preset_config.agents", "must hold ids or objects with an id", _GOOD)
    return _checked(one)


def _checked(agent: dict[str, Any]) -> dict[str, Any]:
    made = {**agent, "id": _name(agent["id"], "agents")}
    if "binding_slot" in agent:
        if not isinstance(agent["binding_slot"], str):
            raise invalid("binding_slot", "must be a text", _GOOD)
        made["binding_slot"] = _name(agent["binding_slot"], "binding_slot")
    return made


def _name(text: str, what: str) -> str:
    return ids.check_key(check_short(text, what), what)
