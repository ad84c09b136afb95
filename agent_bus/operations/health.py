"""What is wrong with a bus, in sentences that say what to do; and rebuilding the ledger from the folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.domain.task import TERMINAL, Task
from agent_bus.errors import BusError
from agent_bus.operations import gate, inbox, launchable, ledger, outbox, parking, quarantine, recover, stop, vanished
from agent_bus.operations.find import read_quietly
from agent_bus.operations.why import silent_s
from agent_bus.store import records
from agent_bus.store.format import epoch_of
from agent_bus.store.layout import Layout
from agent_bus.store.paths import document_name

LOW_DISK = 256 * 1024 * 1024
_FOLDERS = ("approvals", "waiting", "dead_letter", "reports/pending", "shared_context", "status")


@dataclass
class Facts:
    """What an examination found."""

    problems: list[str] = field(default_factory=list)
    oldest_waiting_s: int = 0
    quarantine: int = 0
    foreign_files: int = 0


def examine(bus: Bus) -> Facts:
    """Looks at the whole bus; reads what is held, in question or in the way, not every queued task."""
    facts = Facts(quarantine=quarantine.count(bus))
    facts.problems += _about_stop(bus)
    facts.problems += about_tasks(bus, facts)
    facts.problems += outbox.problems(bus)
    facts.problems += launchable.problems(bus)
    facts.problems += parking.problems(bus)
    facts.problems += _about_machine(bus)
    return facts


def about_tasks(bus: Bus, facts: Facts) -> Iterator[str]:
    """What is wrong with tasks and files; counts go into `facts`, whose `quarantine` is known."""
    yield from _about_holders(bus, facts)
    yield from _about_people(bus)
    yield from vanished.problems(bus)
    yield from _about_files(bus, facts)


def jobs_alive(layout: Layout | None) -> list[dict[str, str]]:
    """The jobs of this host that live, each with its last tick and its last error."""
    found = [records.read(layout, name) for name in records.names(layout, "job-")] if layout is not None else []
    return [
        {key: str(record.get(key, ""))[:100] for key in ("job", "last_tick", "error")}
        for record in found
        if record and records.alive(record)
    ]


def identity(bus: Bus) -> tuple[str, str]:
    """The owner host's name and the bus id."""
    if bus.layout is None:
        return "", "memory"
    try:
        found = bus.layout.read_format()
    except BusError:
        return "?", "?"
    return str(found.get("owner", {}).get("name", "")), str(found.get("bus_id", ""))


def epoch(bus: Bus) -> int:
    """How often the bus folder has changed hands; 0 if that cannot be read."""
    try:
        return epoch_of(bus.layout.read_format()) if bus.layout is not None else 0
    except BusError:
        return 0


def after_loss(bus: Bus) -> bool:
    """For a folder whose machine's side was missing: one that the seed made is adopted as it is; one of ours has lost
    its `.bus`, so it starts stopped, with its ledger made anew. Whether it was lost.
    """
    if not _has_our_tasks(bus):
        return False
    reason = "the machine's side of the bus (.bus) was lost: check the open tasks, then resume"
    if not stop.is_stopped(bus):
        stop.begin(bus, {"epoch": bus.token(), "at": bus.stamp(), "by": "the bus", "reason": reason, "mode": "kill"})
    rebuild_ledger(bus)
    return True


def _has_our_tasks(bus: Bus) -> bool:
    """Whether there is a task in a folder that the seed does not know, or one with our schema."""
    archived = (f"archive/{n}" for n in bus.store.folders("archive"))
    if any(bus.store.keys(f) for f in ("waiting", "approvals", "dead_letter", *archived)):
        return True
    return any("schema" in d.value for n in bus.store.folders("inbox") for d in bus.store.list(f"inbox/{n}"))


def rebuild_ledger(bus: Bus) -> int:
    """Gives every task in any folder the ledger entry it lacks; how many it gave."""
    made = 0
    for month in bus.store.folders("archive"):
        for key in bus.store.keys(f"archive/{month}"):
            name = key.rpartition("/")[2]
            if ids.is_task_id(name) and not ledger.state(bus, name):
                ledger.set_done(bus, name, key)
                made += 1
    for folder in (
        "waiting",
        "approvals",
        "dead_letter",
        *(f"inbox/{n}" for n in bus.store.folders("inbox")),
    ):
        for key in bus.store.keys(folder):
            found = read_quietly(bus, key)
            if found and not ledger.state(bus, found.task.task_id):
                made += _give_entry(bus, key, found.task)
    return made


def _give_entry(bus: Bus, key: str, task: Task) -> int:
    if task.status in TERMINAL:
        ledger.set_done(bus, task.task_id, key)
    else:
        ledger.set_live(bus, task.task_id, key, "" if task.status == "pending" else gate.fingerprint(task))
    return 1


def _about_stop(bus: Bus) -> Iterator[str]:
    found = stop.read(bus)
    if found is not None:
        why = f" ({found['reason']})" if found.get("reason") else ""
        who = f"{found.get('by') or 'somebody'}{paging.brief(why, 600)}"
        yield f"The bus was stopped by {who}: when all is in order run agent-bus resume."


def _about_holders(bus: Bus, facts: Facts) -> Iterator[str]:
    now = bus.now()
    for folder in bus.store.folders("inbox"):
        index = inbox.index(bus, folder)
        index.update(full=True)
        facts.oldest_waiting_s = max(facts.oldest_waiting_s, index.oldest_s(now))
        for row in index.held():
            found = read_quietly(bus, row.key)
            if found is None or found.task.lease is None:
                continue
            task, worker = found.task, found.task.lease.worker
            if recover.is_lost(bus, task):
                gone = "which is gone: the next receive takes it back, or run agent-bus reap."
                yield f"{task.task_id} is held by {worker}, {gone}"
            elif (quiet := silent_s(bus, task)) > bus.settings.silent_after_s:
                way = f"agent-bus release {task.task_id} takes it back."
                yield f"{task.task_id} is held by {worker}, silent for {quiet // 60} min: {way}"
        for key in index.strays():
            yield f"{key}.json is no task of this inbox: agent-bus reap puts it aside or where it belongs."


def _about_people(bus: Bus) -> Iterator[str]:
    for key in bus.store.keys("approvals")[:20]:
        yield f"{key.rpartition('/')[2]} waits for a person: agent-bus approve or agent-bus reject it."
    for key in bus.store.keys("dead_letter")[:20]:
        found = read_quietly(bus, key)
        if found and found.task.verdict is None:
            reason = paging.brief(found.task.reason, 300)
            yield f"{found.task.task_id} is a dead letter ({reason}): agent-bus retry or agent-bus ack it."


def _about_files(bus: Bus, facts: Facts) -> Iterator[str]:
    if facts.quarantine:
        todo = "look with agent-bus quarantine list, then restore or drop them."
        yield f"{facts.quarantine} files lie in .bus/quarantine: {todo}"
        yield from (f"Put into quarantine: {paging.brief(line, 300)}." for line in quarantine.listed(bus))
    if bus.layout is None:
        return
    strange = list(_foreign(bus))
    facts.foreign_files = len(strange)
    for name in strange[:10]:
        yield f"{name} is no document of the bus and is left alone: move it elsewhere."
    if (bus.layout.root / "bus.toml").exists():
        why = "is ignored, as agents can write there: settings belong into your configuration folder."
        yield f"bus.toml in the bus folder {why}"


def _about_machine(bus: Bus) -> Iterator[str]:
    yield from bus.settings.problems
    if bus.layout is not None:
        if (free := bus.layout.free_bytes()) < LOW_DISK:
            yield f"Only {free // 1_048_576} MiB are free where the bus folder lies: make room."
        try:
            bus.layout.check_owner()
        except BusError as error:
            yield f"{error.message} {error.hint}"


def _foreign(bus: Bus) -> Iterator[str]:
    assert bus.layout is not None
    inboxes = bus.layout.root / "inbox"
    with suppress(OSError):
        yield from (f"inbox/{n}" for n in sorted(set(os.listdir(inboxes)) - set(bus.store.folders("inbox"))))
    for folder in (*_FOLDERS, *(f"inbox/{n}" for n in bus.store.folders("inbox"))):
        path = bus.layout.root.joinpath(*folder.split("/"))
        try:
            with os.scandir(path) as entries:
                yield from (f"{folder}/{e.name}" for e in entries if _is_foreign(e))
        except OSError:
            continue


def _is_foreign(entry: os.DirEntry[str]) -> bool:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) and document_name(entry.name))
