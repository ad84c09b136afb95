"""Whether what people write in the vault is taken: `.bus/vault/channel`."""

from __future__ import annotations

from contextlib import suppress

from agent_bus.bus import Bus
from agent_bus.store.port import Exists, Stale, Unreadable

KEY = ".bus/vault/channel"


def why(bus: Bus) -> str:
    """Why nothing is taken; "" if it is."""
    try:
        doc = bus.store.get(KEY)
    except Unreadable:
        return "its document cannot be read"
    return str(doc.value.get("why") or "paused") if doc and doc.value.get("state") == "paused" else ""


def is_paused(bus: Bus) -> bool:
    """Whether nothing but a stop is taken from the vault."""
    return bool(why(bus))


def pause(bus: Bus, reason: str) -> None:
    """Takes nothing more until a person opens the channel.

    Raises:
        BusError: the document cannot be written.
    """
    _set(bus, {"state": "paused", "since": bus.stamp(), "why": reason})
    bus.journal.write(bus.now(), {"at": bus.stamp(), "event": "vault.paused", "agent": "", "reason": reason})


def open_again(bus: Bus) -> bool:
    """Opens the channel; False if it was open.

    Raises:
        BusError: the document cannot be written.
    """
    if not is_paused(bus):
        return False
    _set(bus, {"state": "open", "since": bus.stamp(), "why": ""})
    bus.journal.write(bus.now(), {"at": bus.stamp(), "event": "vault.opened", "agent": bus.caller.agent})
    return True


def _set(bus: Bus, value: dict[str, str]) -> None:
    with suppress(Exists, Stale):  # somebody else has just said the same
        doc = bus.store.get(KEY)
        if doc is None:
            bus.store.create(KEY, value)
        else:
            bus.store.replace(doc, value)
