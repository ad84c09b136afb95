"""Whether time can be trusted: a record of the wall clock and the boot clock, kept by whoever takes tasks back by time.

After a sleep, a jump of the wall clock, a boot or a loss of the record every lease first gets one fresh term
(docs/protocol.md "Leases"): then no lease ends because a clock was moved.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pydantic_core import from_json, to_json

from agent_bus import host
from agent_bus.bus import Bus
from agent_bus.domain import lease
from agent_bus.operations import find, inbox, settle
from agent_bus.store import atomic
from agent_bus.store.port import Stale
from agent_bus.times import stamp

SLEPT_S = 60.0
LOOK_S = 30.0


def steady(bus: Bus) -> bool:
    """Whether the clocks have run together up to now; looks at the record when this process has not for 30 s."""
    last = bus.memo.get("clocks")
    if last is not None:
        wall, boot = bus.now().timestamp() - last[0], bus.clock.boot_s() - last[1]
        if 0 <= boot < LOOK_S and abs(wall - boot) <= SLEPT_S:
            return True
    return not note(bus)


def note(bus: Bus) -> bool:
    """Compares the clocks with the record and writes it anew.

    Returns:
        True if a time of grace begins: every lease has got a fresh term.
    """
    now = bus.now().timestamp()
    old = _read(bus)
    slept = not _agrees(bus, old, now)
    since = now if slept else old.get("since", now)
    bus.memo["clocks"] = now, bus.clock.boot_s()
    boot = host.boot_id()
    _write(bus, {"wall": now, "boot_s": bus.clock.boot_s(), "boot": boot, "since": since, "at": stamp(bus.now())})
    if slept:
        _renew_all(bus)
    return slept


def steady_s(bus: Bus) -> float:
    """For how many seconds the clocks have run together."""
    return max(0.0, bus.now().timestamp() - float(_read(bus).get("since", bus.now().timestamp())))


def _agrees(bus: Bus, old: dict[str, Any], now: float) -> bool:
    try:
        wall, boot = now - old["wall"], bus.clock.boot_s() - old["boot_s"]
        return bool(
            old["boot"] == host.boot_id() and abs(wall - boot) <= SLEPT_S and -1 <= wall <= bus.settings.lease_s
        )
    except (KeyError, TypeError):
        return False


def _read(bus: Bus) -> dict[str, Any]:
    if bus.layout is None:
        return bus.memo.get("clocks record") or {}
    with suppress(OSError, ValueError):
        found = from_json((bus.layout.state / "reaper.json").read_bytes())
        return found if isinstance(found, dict) else {}
    return {}


def _write(bus: Bus, record: dict[str, Any]) -> None:
    bus.memo["clocks record"] = record
    if bus.layout is None:
        return
    with suppress(OSError):  # then the next look begins a time of grace: late, never wrong
        state = bus.layout.state
        atomic.put_file(str(state / "tmp"), str(state / "reaper.json"), to_json(record) + b"\n", False)


def _renew_all(bus: Bus) -> None:
    """One fresh term for every lease."""
    for folder in bus.store.folders("inbox"):
        index = inbox.index(bus, folder)
        index.update(full=True)
        for row in index.held():
            found = find.read_quietly(bus, row.key)
            if found and found.task.lease and lease.left_s(found.task.lease, bus.now()) < bus.settings.lease_s:
                with suppress(Stale):
                    settle.write(bus, found, lease.renew(found.task, bus.now(), bus.settings.lease_s, called=False))
