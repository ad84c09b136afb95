"""The emergency stop: its file, its refusal, its end (docs/protocol.md "Emergency stop")."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from agent_bus.bus import Bus
from agent_bus.domain import stop_names
from agent_bus.errors import BusError
from agent_bus.operations import agents
from agent_bus.store import atomic
from agent_bus.store.layout import Layout
from agent_bus.store.port import Exists

KEY = ".bus/stop"
VAULT_FILE = ("commands", "STOP.md")
"""A person's stop from the vault: a note in the bus folder; it counts while it is there."""


def read(bus: Bus) -> dict[str, Any] | None:
    """Who stopped the bus, when and why; None while it runs. An unreadable stop is a stop."""
    if bus.layout is None:
        doc = bus.store.get(KEY)
        return doc.value if doc else None
    try:
        found = from_json(bus.layout.stop_file.read_bytes().strip() or b"{}")
        return found if isinstance(found, dict) else {}
    except ValueError:
        return {}
    except FileNotFoundError:
        note = bus.layout.root.joinpath(*VAULT_FILE)
        return {"by": "a person", "reason": "commands/STOP.md is in the vault"} if note.exists() else None
    except OSError:
        return {}


def is_stopped(bus: Bus) -> bool:
    """Whether the bus is stopped; cheaper than `read`."""
    if bus.layout is None:
        return bus.store.exists(KEY)
    return os.path.lexists(bus.layout.stop_file) or bus.layout.root.joinpath(*VAULT_FILE).exists()


def refuse_if_stopped(bus: Bus) -> None:
    """For verbs that start work.

    Raises:
        BusError: `stopped` with who, when and why.
    """
    if not is_stopped(bus):
        return
    stop = read(bus) or {}
    who = f"by {stop.get('by') or 'somebody'}" + (f" at {stop['at']}" if stop.get("at") else "")
    why = f", because: {stop['reason']}" if stop.get("reason") else ""
    hint = "Only a person can go on: agent-bus resume. Reports and reading still work."
    raise BusError("stopped", f"the bus was stopped {who}{why}.", hint)


def begin(bus: Bus, record: dict[str, Any]) -> list[str]:
    """Stops the bus: the reserve file gets the stop's name (needs no free disk), then its content.

    Returns:
        What could not be written, in words; the stop stands all the same.
    """
    if bus.layout is None:
        with suppress(Exists):
            bus.store.create(KEY, record)
        return []
    problems = []
    try:
        _take_reserve(bus.layout)
    except OSError as error:
        problems.append(f"stop.json could not be made ({error.strerror})")
    try:
        _fill(bus.layout, record)
    except OSError as error:
        problems.append(f"stop.json could not be filled ({error.strerror}); it counts as it is")
    if not os.path.lexists(bus.layout.stop_file):
        raise BusError(
            "unavailable",
            f"the stop could not be written: {'; '.join(problems)}.",
            "Make the bus folder writable, or end the agents by hand.",
        )
    return problems


def end(bus: Bus, epoch: str) -> bool:
    """Ends the stop that the caller has seen; False if another one stands now."""
    if bus.layout is None:
        doc = bus.store.get(KEY)
        if doc is None or doc.value.get("epoch", "") != epoch:
            return False
        bus.store.delete(doc)
        return True
    with bus.store.lock("stop"):
        if str((read(bus) or {}).get("epoch", "")) != epoch:
            return False
        _put_away(bus, notes(bus))
        with suppress(FileNotFoundError):
            atomic.remove(str(bus.layout.stop_file))
        bus.layout.reserve_stop()
    return True


def notes(bus: Bus) -> list[Path]:
    """The notes in `commands/` that stop the bus, whatever the spelling (docs/vault-notes.md "Stopping")."""
    assert bus.layout is not None
    folder = bus.layout.root / VAULT_FILE[0]
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False))
    except OSError:
        return []
    return [folder / name for name in names if name.lower().endswith(".md") and stop_names.is_stop(name[:-3])]


def _put_away(bus: Bus, found: list[Path]) -> None:
    """Moves the notes of a stop to `commands/done/`, for the record.

    Raises:
        BusError: `unavailable` for one that cannot be moved: it would stop the bus again.
    """
    for note in found:
        done = note.parent / "done"
        try:
            done.mkdir(exist_ok=True)
            os.replace(note, done / f"STOP-{bus.now():%Y%m%d-%H%M%S}-{bus.token()[:4]}.md")
        except FileNotFoundError:
            continue
        except OSError as error:
            words = f"the note {note} stops the bus and cannot be moved ({error.strerror})."
            raise BusError("unavailable", words, "Take it away, then resume again.") from None


def _take_reserve(layout: Layout) -> None:
    reserve = layout.state / "stop.reserve"
    if os.path.lexists(layout.stop_file):
        return
    try:
        os.replace(reserve, layout.stop_file)
    except FileNotFoundError:
        layout.stop_file.touch()
    with suppress(OSError):
        atomic.sync_folder(str(layout.state))


def _fill(layout: Layout, record: dict[str, Any]) -> None:
    """Written in place over the reserved bytes: a full disk has room for it; half-written it still counts."""
    data = to_json(record) + b"\n"
    handle = os.open(layout.stop_file, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        os.write(handle, data.ljust(4096))
        os.fsync(handle)
    finally:
        os.close(handle)


def mark_agents(bus: Bus) -> tuple[list[str], list[str]]:
    """Sets every known agent to `stopped`, keeping what it was; names that are, and what failed, in words."""
    done, failed = [], []
    for name in agents.known_agents(bus):
        doc = agents.status(bus, name)
        before = str(doc.value.get("state", "idle")) if doc else "idle"
        try:
            if before != "stopped":
                agents.set_status(bus, name, {"state": "stopped", "state_before_stop": before})
            done.append(name)
        except BusError as error:
            failed.append(f"the status of {name} could not be written ({error.message})")
    return done, failed


def settle(bus: Bus) -> list[str]:
    """Makes what a stop or a resume that was cut short has left undone; the agents that have their state back."""
    if is_stopped(bus):
        mark_agents(bus)
        return []
    if bus.layout is not None:
        bus.layout.reserve_stop()
    return unmark_agents(bus)


def unmark_agents(bus: Bus) -> list[str]:
    """Gives every stopped agent the state back that it had before."""
    done = []
    for doc in bus.store.list("status"):
        before = doc.value.get("state_before_stop")
        if doc.value.get("state") == "stopped" and before:
            agents.set_status(
                bus, str(doc.value.get("agent") or doc.name), {"state": before, "state_before_stop": None}
            )
            done.append(str(doc.value.get("agent") or doc.name))
    return done
