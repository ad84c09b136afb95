"""Open tasks whose file somebody removed by hand: nothing is run or made up for them, but they are named.

`.bus/vanished/<task_id>` = {at}. The note goes when the file comes back (a sync service, an undo), for then it is a
task as before, and after a week.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.operations import find, ledger
from agent_bus.store.port import Exists, Stale
from agent_bus.times import parse_stamp

FOLDER = ".bus/vanished"
SHOWN = 20
KEPT = timedelta(days=7)
_SEEN = "vanished: ids that were open at the last look"


def look(bus: Bus) -> list[str]:
    """Notes the tasks that were open at this process's last look and lie in no folder now; their ids.

    Between two folders a task is for a moment in neither list, so each is asked about once more under its lock.
    """
    now = frozenset(_open(bus))
    before: frozenset[str] = bus.memo.get(_SEEN, frozenset())
    bus.memo[_SEEN] = now
    for doc in bus.store.list(FOLDER):
        if find.anywhere(bus, doc.name) or _is_old(bus, str(doc.value.get("at", ""))):
            with suppress(Stale):
                bus.store.delete(doc)
    return [task_id for task_id in sorted(before - now) if _is_gone(bus, task_id) and _note(bus, task_id)]


def problems(bus: Bus) -> Iterator[str]:
    """Each of them in a sentence."""
    for key in bus.store.keys(FOLDER)[:SHOWN]:
        name = key.rpartition("/")[2]
        yield f"{name} was removed by hand and will not run: dispatch it anew if it is still wanted."


def _open(bus: Bus) -> Iterator[str]:
    folders = ("waiting", "approvals", "dead_letter", *(f"inbox/{name}" for name in bus.store.folders("inbox")))
    for folder in folders:
        yield from (name for key in bus.store.keys(folder) if ids.is_task_id(name := key.rpartition("/")[2]))


def _is_gone(bus: Bus, task_id: str) -> bool:
    with bus.store.lock(task_id):
        return ledger.state(bus, task_id) == ledger.LIVE and not find.anywhere(bus, task_id)


def _is_old(bus: Bus, at: str) -> bool:
    try:
        return parse_stamp(at) < bus.now() - KEPT
    except ValueError:
        return True


def _note(bus: Bus, task_id: str) -> bool:
    try:
        bus.store.create(f"{FOLDER}/{task_id}", {"at": bus.stamp()}, durable=False)
    except Exists:
        return False
    bus.journal.write(bus.now(), {"at": bus.stamp(), "event": "task.vanished", "task_id": task_id})
    return True
