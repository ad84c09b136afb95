"""A dispatch as it is asked for, made into an order: every parameter checked, every name resolved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import dependency
from agent_bus.domain.options import read_options
from agent_bus.errors import invalid, too_large
from agent_bus.operations import find, holders, listing
from agent_bus.operations.agents import known_agents
from agent_bus.operations.dispatch import Order
from agent_bus.times import read_stamp, stamp

CONTEXT_BYTES = 256 * 1024


def read_order(
    bus: Bus,
    *,
    target: str,
    instruction: str,
    priority: str,
    context: str,
    from_agent: str,
    depends_on: list[str],
    not_before: str,
    dedupe_key: str,
    options: str,
) -> tuple[Order, list[str]]:
    """The order, and notes for its sender (an agent that nobody has seen, JSON that is none).

    Raises:
        BusError: `invalid` or `too_large` naming the parameter; `not_yours` for another agent's name.
    """
    notes: list[str] = []
    order = Order(
        target=ids.check_agent(target, "target"),
        instruction=_instruction(instruction),
        sender=_sender(bus, from_agent),
        priority=priority,
        context=_context(context, notes),
        depends_on=tuple(_dependencies(bus, depends_on)),
        not_before=stamp(read_stamp(not_before, "not_before")) if not_before else "",
        dedupe_key=dedupe_key,
        extra=_options(bus, options),
    )
    return order, notes + _warn_unknown(bus, order.target)


def _instruction(text: str) -> str:
    if not text.strip():
        raise invalid("instruction", "must not be empty", "Say in words what is to be done.")
    return text


def _sender(bus: Bus, given: str) -> str:
    if not given and not bus.caller.agent:
        return ""
    return holders.agent_for(bus, given, "from_agent")


def _context(text: str, notes: list[str]) -> Any:
    if not text:
        return None
    if len(text.encode()) > CONTEXT_BYTES:
        raise too_large("context", len(text.encode()), CONTEXT_BYTES, "bytes")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if text.lstrip().startswith("{"):
            notes.append("context looks like JSON but is not; it was kept as text")
        return text
    return value if isinstance(value, dict) else text


def _dependencies(bus: Bus, texts: list[str]) -> Iterator[dict[str, str]]:
    for text in texts:
        needed = dependency.parse_dependency(text)
        if find.find(bus, needed["task"]) is None:
            raise invalid("depends_on", f"names an unknown task, {needed['task']}", "list_tasks shows the ids.")
        if cycle := listing.cycle_from(bus, needed["task"]):
            raise invalid("depends_on", f"would wait for a cycle: {' → '.join(cycle)}", "Cancel one of them first.")
        yield needed


def _options(bus: Bus, text: str) -> dict[str, Any]:
    ready = read_options(text, bus.now())
    parent = ready.get("parent", "")
    if parent and find.find(bus, parent) is None:
        raise invalid("options.parent", f"names an unknown task, {parent}", "list_tasks shows the ids.")
    return ready


def _warn_unknown(bus: Bus, target: str) -> list[str]:
    known = known_agents(bus)
    if any(ids.same_name(k, target) for k in known):
        return []
    close = get_close_matches(target, sorted(known), n=1)
    nearest = f"; did you mean {close[0]}?" if close else ""
    return [f"no agent named {target} has been seen on this bus yet{nearest}"]
