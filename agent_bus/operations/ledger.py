"""The ledger: every task id that was ever given, once. `.bus/ledger/<YYYYMMDD>/<task_id>` = {state, place, sha256}.

reserved → live (the task is written) → done (the task has ended and lies in the archive); reserved → void (never used).
The archive is the truth about done, the ledger its index: a missing entry is looked up there before a file runs.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.operations import quiet
from agent_bus.store.port import Doc, Exists, Stale

RESERVED, LIVE, DONE, VOID = "reserved", "live", "done", "void"
_TRIES = 2000


def key(task_id: str) -> str:
    """The key of an id's entry."""
    return f".bus/ledger/{task_id[2:10]}/{task_id}"


def entry(bus: Bus, task_id: str) -> Doc | None:
    """The entry of an id; an unreadable one counts as missing (the folders know)."""
    return quiet.get(bus, key(task_id))


def state(bus: Bus, task_id: str) -> str:
    """The state of an id, "" if the ledger does not know it."""
    found = entry(bus, task_id)
    return str(found.value.get("state", "")) if found else ""


def reserve(bus: Bus, now: datetime) -> str:
    """A new task id, taken by exclusive create; reserved until `set_live`."""
    second = now.strftime("%Y%m%d-%H%M%S")
    number = bus.memo.get(f"ledger {second}", 0) + 1
    for _ in range(_TRIES):
        task_id = ids.format_task_id(now, number)
        try:
            # Not durable: if a power cut loses the entry but not the task, the task is adopted.
            bus.store.create(key(task_id), {"state": RESERVED, "place": ""}, durable=False)
        except Exists:
            number += random.randint(1, 8)  # several processes in one second: spread out
            continue
        bus.memo[f"ledger {second}"] = number
        return task_id
    raise BusError("busy", "no free task id in this second.", "Try again in a moment.")


def set_live(bus: Bus, task_id: str, place: str, sha256: str) -> None:
    """reserved → live, or a new entry for an adopted task; done stays done."""
    value = {"state": LIVE, "place": place, "sha256": sha256}
    _set(bus, task_id, value, {"", RESERVED, LIVE})


def set_done(bus: Bus, task_id: str, place: str) -> None:
    """live → done."""
    _set(bus, task_id, {"state": DONE, "place": place}, {"", RESERVED, LIVE})


def set_void(bus: Bus, task_id: str) -> bool:
    """reserved → void; False if it is no longer reserved."""
    return _set(bus, task_id, {"state": VOID, "place": ""}, {RESERVED})


def _set(bus: Bus, task_id: str, value: dict[str, Any], from_states: set[str]) -> bool:
    for _ in range(20):
        found = entry(bus, task_id)
        if (str(found.value.get("state", "")) if found else "") not in from_states:
            return False
        try:
            if found is None:
                bus.store.create(key(task_id), value, durable=False)
            else:
                bus.store.replace(found, {**found.value, **value}, durable=False)
            return True
        except (Stale, Exists):
            continue
    return False
