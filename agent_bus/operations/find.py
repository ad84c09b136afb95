"""Finding a task by its id, wherever its status has put it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import dependency
from agent_bus.domain.task import IN_PROGRESS, PENDING, SCHEDULED, WAITING, Task, place, read_task
from agent_bus.errors import BusError
from agent_bus.operations import ledger
from agent_bus.store.port import Doc, Exists, Stale, Unreadable


@dataclass(frozen=True)
class Found:
    """A task as it was read: its document (for compare-and-swap) and its content."""

    doc: Doc
    task: Task


def read(bus: Bus, key: str) -> Found | None:
    """The task under a key.

    Raises:
        Unreadable: it is no JSON, or no task.
    """
    doc = bus.store.get(key)
    return None if doc is None else from_doc(doc)


def read_quietly(bus: Bus, key: str) -> Found | None:
    """The task under a key; None if there is none or it cannot be read (a link that leaves the bus folder is none)."""
    try:
        return read(bus, key)
    except Unreadable:
        return None
    except BusError as error:
        if error.code != "refused":
            raise
        return None


def from_doc(doc: Doc) -> Found:
    """The task in a document.

    Raises:
        Unreadable: it is no task, or another task's file.
    """
    try:
        task = read_task(doc.value)
    except ValueError as error:
        raise Unreadable(doc.key, f"no task ({_first_line(error)})") from None
    if not ids.is_task_id(doc.name):
        raise Unreadable(doc.key, "the file's name is no task id")
    if task.task_id != doc.name:
        raise Unreadable(doc.key, f"the id inside is {task.task_id[:40]!a}, not the file's name")
    try:
        ids.check_agent(task.to, "to")
    except BusError as error:
        raise Unreadable(doc.key, error.message) from None
    return Found(doc, task)


def find(bus: Bus, task_id: str) -> Found | None:
    """The task of an id, or None; "nowhere" is concluded only under the id's lock, as a move may be under way."""
    for _ in range(2):
        if found := _look(bus, task_id):
            return found
    with bus.store.lock(task_id):
        return _look(bus, task_id)


def find_quietly(bus: Bus, task_id: str) -> Found | None:
    """As `find`; None also for a file that cannot be read."""
    try:
        return find(bus, task_id) if ids.is_task_id(task_id) else None
    except Unreadable:
        return None


def need(bus: Bus, task_id: str) -> Found:
    """The task of an id given by a caller.

    Raises:
        BusError: `invalid` for no id, `not_found`, `corrupt`.
    """
    ids.check_task_id(task_id)
    try:
        found = find(bus, task_id)
    except Unreadable as error:
        raise BusError(
            "corrupt",
            f"the file of {task_id} cannot be read: {error.reason}.",
            "Mend it by hand, or see system_health.",
        ) from error
    if found is None:
        raise BusError("not_found", f"there is no task {task_id}.", "list_tasks shows the ids of open tasks.")
    return found


def outcomes(bus: Bus, task: Task) -> dict[str, str]:
    """How each task that this one depends on has ended so far; one that is gone never will."""
    return {d["task"]: _outcome(bus, d["task"]) for d in task.depends_on}


def _outcome(bus: Bus, task_id: str) -> str:
    try:
        found = find(bus, task_id) if ids.is_task_id(task_id) else None
    except Unreadable:
        return ""  # somebody may mend it
    return dependency.outcome(found.task) if found else "failure"


def put_in_place(bus: Bus, found: Found) -> Found:
    """Finishes the rename to the folder of the task's status, if that is still to be done."""
    target = place(found.task)
    if found.doc.key == target:
        return found
    try:
        return Found(bus.store.move(found.doc, target, found.doc.value), found.task)
    except (Stale, Exists):
        return found  # somebody else has moved or changed it; a true second copy is judged by quarantine


def put_free_in_place(bus: Bus, found: Found) -> Found:
    """As `put_in_place`, but only for a task that is to run.

    The others have effects that come before the rename, as a file that lies where it belongs bears no mark of them any
    more: `settle` moves those.
    """
    task = found.task
    is_free = task.status == PENDING or (task.status in (IN_PROGRESS, SCHEDULED, WAITING) and task.report is None)
    return put_in_place(bus, found) if is_free else found


def anywhere(bus: Bus, task_id: str) -> bool:
    """Whether any folder holds a document of this id; ask under the id's lock."""
    return any(bus.store.exists(key) for key in _keys(bus, task_id, ""))


def elsewhere(bus: Bus, key: str) -> str:
    """The key of another document of the same id, "" if this is the only one; ask under the id's lock."""
    others = (k for k in _keys(bus, key.rpartition("/")[2], "") if k != key and bus.store.exists(k))
    return next((k for k in others if not _same_folder(bus, k, key)), "")


def adopt_spellings(bus: Bus, agent: str = "") -> list[str]:
    """Moves tasks from inbox folders in another spelling (`Claude-Code`) to where they belong; the ids that moved.

    Args:
        agent: only folders of this agent; "" = all.
    """
    moved = []
    for folder in bus.store.folders("inbox"):
        if ids.folder_of(folder) == folder or (agent and not ids.same_name(folder, agent)):
            continue
        for key in bus.store.keys(f"inbox/{folder}"):
            found = read_quietly(bus, key)
            if found is not None and put_free_in_place(bus, found).doc.key != key:
                moved.append(found.task.task_id)
    return moved


def _same_folder(bus: Bus, one: str, other: str) -> bool:
    """Whether two keys are one file because the file system takes their spellings for the same."""
    if ids.folder_of(one) != ids.folder_of(other):
        return False
    listed = set(bus.store.folders("inbox"))
    return not {one.split("/")[1], other.split("/")[1]} <= listed


def _look(bus: Bus, task_id: str) -> Found | None:
    entry = ledger.entry(bus, task_id)
    hint = str(entry.value.get("place", "")) if entry else ""
    for key in _keys(bus, task_id, hint):
        if found := read(bus, key):
            return found
    return None


def _keys(bus: Bus, task_id: str, hint: str) -> Iterator[str]:
    if hint and hint.rpartition("/")[2] == task_id:
        yield hint
    for folder in ("waiting", "approvals", f"archive/{ids.month_of(task_id)}", "dead_letter"):
        yield f"{folder}/{task_id}"
    for agent in bus.store.folders("inbox"):
        yield f"inbox/{agent}/{task_id}"


def _first_line(error: Any) -> str:
    faults = error.errors() if hasattr(error, "errors") else []
    return f"{'.'.join(map(str, faults[0]['loc']))}: {faults[0]['msg']}" if faults else str(error)
