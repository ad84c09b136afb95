"""Files that must never run: put aside with their bytes and a reason (docs/vault-format.md "Quarantine")."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from pydantic_core import from_json, to_json

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.operations import find
from agent_bus.store import atomic
from agent_bus.store.port import Unreadable

READS = 3


def judge(bus: Bus, key: str) -> str:
    """Looks at a file that could not be taken for a task, under its id's lock; quarantines it if it stays so.

    Returns:
        The reason, or "" if the file is fine, is gone, or is none that we may touch.
    """
    name = key.rpartition("/")[2]
    with bus.store.lock(name):
        reason = ""
        for _ in range(READS):  # a writer that is no program of ours may be half-way
            reason = _fault(bus, key)
            if not reason:
                return ""
        return reason if put_aside(bus, key, reason) else ""


def put_aside(bus: Bus, key: str, reason: str) -> bool:
    """Moves a document's file into quarantine with a note; False if it is no regular file of the bus folder."""
    if bus.layout is None:
        return _forget(bus, key)
    top, _, rest = key.partition("/")
    path = bus.layout.state / f"{rest}.json" if top == ".bus" else bus.layout.root / f"{key}.json"
    if not path.is_file() or path.is_symlink():
        return False
    target = bus.layout.state / "quarantine" / f"{bus.now():%Y%m%d-%H%M%S}-{bus.token()[:6]}-{path.name}"
    try:
        os.replace(path, target)
    except OSError:
        shutil.copyfile(path, target)
        path.unlink()
    note = {"from": key, "reason": reason, "at": bus.stamp()}
    words = to_json(note, indent=2) + b"\n"
    atomic.put_file(str(bus.layout.state / "tmp"), str(target.with_suffix(".reason")), words, False)
    bus.journal.write(bus.now(), {"at": bus.stamp(), "event": "file.quarantined", "file": key, "outcome": reason})
    return True


def count(bus: Bus) -> int:
    """How many files lie in quarantine."""
    if bus.layout is None:
        return 0
    with suppress(OSError):
        return sum(n.endswith(".json") for n in os.listdir(bus.layout.state / "quarantine"))
    return 0


def listed(bus: Bus, most: int = 10) -> list[str]:
    """The newest files in quarantine, as `place (reason)`."""
    if bus.layout is None:
        return []
    found = []
    for path in sorted((bus.layout.state / "quarantine").glob("*.reason"), reverse=True)[:most]:
        with suppress(OSError, ValueError):
            note = from_json(path.read_bytes())
            found.append(f"{note.get('from', path.stem)}.json ({note.get('reason', '?')})")
    return found


def _fault(bus: Bus, key: str) -> str:
    """Why the file under a key is no task of this place, "" if it is one (or gone)."""
    try:
        found = find.read(bus, key)
    except BusError:
        return ""  # a link that leaves the bus folder is left alone
    except Unreadable as error:
        return "" if error.reason.startswith(("not a regular", "no permission")) else error.reason
    if found is None:
        return ""
    other = find.elsewhere(bus, key)
    return f"a second file of this id; the first is {other}" if other else ""


def _forget(bus: Bus, key: str) -> bool:
    doc = bus.store.get(key)
    if doc is not None:
        bus.store.delete(doc)
    return doc is not None
