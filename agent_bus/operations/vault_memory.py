"""What the vault's side remembers, and for how long (docs/vault-notes.md "Once")."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from agent_bus.bus import Bus
from agent_bus.operations import decisions, find
from agent_bus.store.port import Doc, Stale
from agent_bus.times import parse_stamp

LINES, STOPS, REQUESTS = ".bus/vault/lines", ".bus/vault/stops", ".bus/vault/requests"
LINES_KEPT, KEPT = timedelta(days=30), timedelta(days=90)


def forget(bus: Bus) -> None:
    """Drops what is over and older than its time; what is still open stays."""
    for folder, kept in ((LINES, LINES_KEPT), (STOPS, KEPT), (decisions.FOLDER, KEPT), (REQUESTS, KEPT)):
        for doc in bus.store.list(folder):
            if _is_old(bus, doc, kept) and _is_over(bus, folder, doc):
                with suppress(Stale):
                    bus.store.delete(doc)


def _is_old(bus: Bus, doc: Doc, kept: timedelta) -> bool:
    try:
        return bus.now() - parse_stamp(str(doc.value.get("at") or doc.value.get("opened_at"))) > kept
    except ValueError:
        return False


def _is_over(bus: Bus, folder: str, doc: Doc) -> bool:
    if folder == decisions.FOLDER:
        return doc.value.get("state") != decisions.TAKEN
    if folder == LINES:
        return bool(doc.value.get("acked"))
    found = find.find_quietly(bus, doc.name) if folder == REQUESTS and doc.name != "stop" else None
    return found is None or found.task.ended
