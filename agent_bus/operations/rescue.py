"""What people do with files in quarantine: look, bring back, throw away (docs/vault-format.md "Quarantine")."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import from_json

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.operations import find, ledger
from agent_bus.store import codec
from agent_bus.store.port import Doc, Exists, Unreadable


@dataclass(frozen=True)
class Kept:
    """One file in quarantine.

    Args:
        id: its time and six random digits.
        key: the document's key, where it was taken from.
        reason, at: why and when.
        path: where it lies now.
    """

    id: str
    key: str
    reason: str
    at: str
    path: Path


def kept(bus: Bus) -> list[Kept]:
    """All files in quarantine, oldest first; one whose reason is lost has only its name."""
    if bus.layout is None:
        return []
    return [_kept(path) for path in sorted((bus.layout.state / "quarantine").glob("*.json"))]


def need(bus: Bus, id: str) -> Kept:
    """The file of an id, or of its beginning.

    Raises:
        BusError: `not_found` for none, `invalid` for several.
    """
    found = [one for one in kept(bus) if id and one.path.name.startswith(id)]
    if not found:
        raise BusError("not_found", f"there is no file {id[:80]!a} in quarantine.", "agent-bus quarantine list")
    if len(found) > 1:
        raise BusError("invalid", f"{len(found)} files begin with {id[:80]!a}.", "Give the whole id.")
    return found[0]


def restore(bus: Bus, one: Kept) -> None:
    """Puts a task back where it was taken from; then it runs like any other.

    Raises:
        BusError: `corrupt` if it still is no task, `refused` if its id is alive elsewhere or has ended.
    """
    try:
        value = codec.parse(one.key, one.path.read_bytes())
        task = find.from_doc(Doc(one.key, value, "")).task
    except Unreadable as error:
        fix = f"Mend {one.path} in an editor first."
        raise BusError("corrupt", f"the file still is no task: {error.reason}.", fix) from None
    except OSError as error:
        raise BusError("unavailable", f"{one.path} cannot be read ({error.strerror}).", "Look at it.") from None
    anew = f"Compare the two (agent-bus get {task.task_id}), send what is still wanted as a new task, drop this one."
    with bus.store.lock(task.task_id):  # between the look and the create the task must not move or come back
        if ledger.state(bus, task.task_id) == ledger.DONE:
            raise BusError("refused", f"{task.task_id} has ended before and never runs twice.", anew)
        if there := find.find_quietly(bus, task.task_id):
            raise BusError("refused", f"{task.task_id} is there already: {there.doc.key}.", anew)
        try:
            bus.store.create(one.key, value)
        except Exists:
            raise BusError("refused", f"a file is there already: {one.key}.json.", anew) from None
        _remove(one)  # a kill before this leaves a copy here, which cannot come back any more
    _note(bus, "file.restored", one)


def drop(bus: Bus, one: Kept) -> None:
    """Throws a file in quarantine away."""
    _remove(one)
    _note(bus, "file.dropped", one)


def _kept(path: Path) -> Kept:
    note: dict[str, str] = {}
    with suppress(OSError, ValueError):
        found = from_json(path.with_suffix(".reason").read_bytes())
        note = found if isinstance(found, dict) else {}
    id = "-".join(path.stem.split("-")[:3])
    return Kept(id, str(note.get("from", path.stem)), str(note.get("reason", "?")), str(note.get("at", "")), path)


def _remove(one: Kept) -> None:
    one.path.unlink(missing_ok=True)
    one.path.with_suffix(".reason").unlink(missing_ok=True)


def _note(bus: Bus, event: str, one: Kept) -> None:
    bus.journal.write(bus.now(), {"at": bus.stamp(), "event": event, "file": one.key, "agent": bus.caller.agent})
