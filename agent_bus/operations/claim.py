"""Receiving: the next task of an inbox for one holder, by compare-and-swap. Of N callers one gets a task, the
others the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import to_json

from agent_bus import host, ids
from agent_bus.bus import Bus
from agent_bus.domain import approval, lease
from agent_bus.domain.approval import Hit
from agent_bus.domain.report import end
from agent_bus.domain.run import task_of
from agent_bus.domain.task import DEAD_LETTER, EXPIRED, PENDING, PENDING_APPROVAL, Holder, Task, follow, place
from agent_bus.errors import BusError
from agent_bus.operations import clocks, find, gate, holders, inbox, ledger, quarantine, recover, stop, waiting
from agent_bus.operations.find import Found
from agent_bus.operations.settle import commit, settle, write
from agent_bus.operations.witness import record
from agent_bus.store.port import Stale
from agent_bus.times import parse_stamp

_TRIES = 10_000


@dataclass(frozen=True)
class Claimed:
    """A task in the hands of the caller; `already_held`: it was before this call."""

    found: Found
    already_held: bool = False


def receive(bus: Bus, agent: str, worker: str, holding: bool = True) -> Claimed | None:
    """The task that the caller holds already, else the next one of the inbox; None if there is nothing.

    Args:
        holding: False in a wait that began empty-handed: it returns only a task that it claims itself, and claims none
            while its holder holds another.

    Raises:
        BusError: `stopped`.
    """
    stop.refuse_if_stopped(bus)
    holder = holders.holder_of(bus)
    if holder.run:
        return _of_run(bus, holder.run) if holding else None
    index = inbox.index(bus, agent)
    with bus.store.lock(_holder_name(agent, worker, holder), "holder"):
        for full in (False, True):  # "nothing" needs a listing made in this call
            index.update(full)
            if held := _held(bus, index, worker, holder):
                return Claimed(held, already_held=True) if holding else None
            if full or index.revival_is_due(bus.clock.boot_s()):
                _revive(bus, index)
            waiting.advance_due(bus, full)
            if full:
                _tidy(bus, agent, index)
                clocks.steady(bus)  # keeps the record fresh where no reaper runs
            index.update()
            claimed = _first(bus, index, worker, holder)
            if claimed is not None:
                return Claimed(_unless_stopped(bus, claimed))
    return None


def take(bus: Bus, key: str, worker: str, holder: Holder, lease_id: str) -> Found | None:
    """Claims one task for a launcher's run, as `receive` would; None if something stands in its way.

    Raises:
        BusError: `stopped`; the claim is undone.
        Stale: somebody else was first.
    """
    stop.refuse_if_stopped(bus)
    try:
        claimed = _try(bus, key, worker, holder, lease_id)
    except BusError as error:
        if error.code == "too_large":
            quarantine.put_aside(bus, key, error.message)  # it would stand in everybody's way
        raise
    return _unless_stopped(bus, claimed) if claimed else None


def _of_run(bus: Bus, run_id: str) -> Claimed | None:
    """The task of the caller's own run, as long as it holds it: a run works on one task."""
    found = find.find_quietly(bus, task_of(run_id)[0])
    if found is None or found.task.lease is None or found.task.lease.holder.run != run_id:
        return None
    again = renew(bus, found)
    return Claimed(again, already_held=True) if again.task.lease and again.task.lease.holder.run == run_id else None


def queue_length(bus: Bus, agent: str) -> int:
    """How many tasks are queued in an inbox, as far as this process knows."""
    return len(inbox.index(bus, agent))


def _holder_name(agent: str, worker: str, holder: Holder) -> str:
    who = holder.run or [ids.fold(worker), holder.model_dump()]
    return to_json([ids.folder_of(agent), who]).decode().replace(".", "_")


def held(bus: Bus, agent: str, worker: str) -> Claimed | None:
    """The task that the caller holds already, or None; takes nothing, so it answers while the bus is stopped too."""
    holder = holders.holder_of(bus)
    if holder.run:
        return _of_run(bus, holder.run)
    index = inbox.index(bus, agent)
    index.update(full=True)
    found = _held(bus, index, worker, holder)
    return Claimed(found, already_held=True) if found else None


def _held(bus: Bus, index: inbox.InboxIndex, worker: str, holder: Holder) -> Found | None:
    for row in index.held():
        if not holder.run and not ids.same_name(row.worker, worker):
            continue
        found = find.read_quietly(bus, row.key)
        if found and found.task.lease and lease.same_holder(found.task.lease, worker, holder):
            again = renew(bus, found)
            if again.task.lease and again.task.lease.id == found.task.lease.id:
                return again
    return None


def renew(bus: Bus, found: Found) -> Found:
    """A fresh time for the caller's lease, if it is worth a write; the task as it is then, whoever was first."""
    if not lease.needs_renewal(found.task, bus.now(), bus.settings.lease_s):
        return found
    try:
        return write(bus, found, lease.renew(found.task, bus.now(), bus.settings.lease_s))
    except Stale:
        return find.find_quietly(bus, found.task.task_id) or found


def _revive(bus: Bus, index: inbox.InboxIndex) -> None:
    """Takes back what dead holders of this inbox hold."""
    for row in index.held():
        if _plainly_alive(bus, row):
            continue
        found = find.read_quietly(bus, row.key)
        try:
            if found is not None and recover.if_lost(bus, found):
                index.update()
        except BusError as error:
            if error.code != "busy":
                raise
            continue  # somebody who is at it stands still: that keeps nobody from the other tasks


def _plainly_alive(bus: Bus, row: inbox.Held) -> bool:
    """Spares a read for the holder that is this very process."""
    mine = host.as_record(host.this_process()) if bus.caller.process else {}
    return bool(mine) and all(row.holder.get(k) == v for k, v in mine.items())


def _tidy(bus: Bus, agent: str, index: inbox.InboxIndex) -> None:
    """Finishes moves and judges files that are in the way; only when nothing else is to be had."""
    find.adopt_spellings(bus, agent)
    for key in index.strays():
        found = find.read_quietly(bus, key)
        if found is None:
            quarantine.judge(bus, key)
        else:
            _finish(bus, found)
    for doc in bus.store.list("approvals"):
        if doc.value.get("status") != PENDING_APPROVAL and (found := find.read_quietly(bus, doc.key)):
            _finish(bus, found)


def _finish(bus: Bus, found: Found) -> None:
    """Makes what a killed process left undone of a task; leaves one whose lock is held by somebody who stands still."""
    try:
        settle(bus, found)
    except BusError as error:
        if error.code != "busy":
            raise


def _first(bus: Bus, index: inbox.InboxIndex, worker: str, holder: Holder) -> Found | None:
    busy: dict[str, BusError] = {}  # tasks whose lock somebody holds who stands still
    for _ in range(_TRIES):
        key = index.next(bus.now(), set(busy))
        if key is None:
            break
        try:
            claimed = _try(bus, key, worker, holder)
        except Stale:
            claimed = None
        except BusError as error:
            if error.code == "busy":
                busy[key] = error
                continue
            if error.code != "too_large":
                raise
            quarantine.put_aside(bus, key, error.message)  # it would stand in everybody's way
            claimed = None
        if claimed is not None:
            index.update()
            return claimed
        index.forget(key)
        index.update()
    if busy:
        raise next(iter(busy.values()))
    return None


def _try(bus: Bus, key: str, worker: str, holder: Holder, lease_id: str = "") -> Found | None:
    """Claims one candidate, or does what stands in its way. Raises Stale if somebody else was first."""
    found = find.read_quietly(bus, key)
    if found is None:
        quarantine.judge(bus, key)
        return None
    if found.doc.key != place(found.task):
        settle(bus, found)
        return None
    if found.task.status != PENDING:
        return None
    entry = ledger.entry(bus, found.task.task_id)
    if _is_finished(bus, found, str(entry.value.get("state", "")) if entry else ""):
        return None
    if stand := _obstacle(bus, found.task, str(entry.value.get("sha256", "")) if entry else ""):
        commit(bus, found, *stand)
        return None
    if entry is None or entry.value.get("state") != ledger.LIVE:
        ledger.set_live(bus, found.task.task_id, key, gate.fingerprint(found.task))
    task = lease.claim(found.task, lease_id or bus.token(), worker, holder, bus.now(), bus.settings.lease_s)
    claimed = write(bus, found, task)
    record(bus, "task.started", task, worker=worker, attempt=task.attempt)
    return claimed


def _is_finished(bus: Bus, found: Found, state: str) -> bool:
    """Whether this id has ended before or lies elsewhere too: then the file is put aside, judged under the
    id's lock.
    """
    task_id = found.task.task_id
    archive = f"archive/{ids.month_of(task_id)}/{task_id}"
    others = (archive, f"waiting/{task_id}", f"approvals/{task_id}", f"dead_letter/{task_id}")
    if state not in (ledger.DONE, ledger.VOID) and not any(bus.store.exists(k) for k in others):
        return state == "" and bool(quarantine.judge(bus, found.doc.key))
    with bus.store.lock(task_id):
        again = find.read_quietly(bus, found.doc.key)
        if again is None or again.task.status != PENDING:
            return True
        if ledger.state(bus, task_id) in (ledger.DONE, ledger.VOID) or bus.store.exists(archive):
            quarantine.put_aside(bus, found.doc.key, "already done")
            return True  # what cannot be put aside, such as a link, is not run either
        return bool(quarantine.judge(bus, found.doc.key))


def _obstacle(bus: Bus, task: Task, known: str) -> tuple[Task, str] | None:
    """Why a pending task may not start now, as the transition it takes instead, and the event."""
    now = bus.now()
    if task.expires_at and _past(bus, task.expires_at):
        return end(task, "expire", EXPIRED, "bus", now, f"it expired at {task.expires_at}"), "task.expired"
    if task.attempt >= lease.attempt_cap(task):
        return end(
            task, "give_up", DEAD_LETTER, "bus", now, f"{task.attempt} attempts without a report"
        ), "task.dead_letter"
    hits = gate.check_again(bus, task, known)
    if hits:
        return close_gate(bus, task, hits), "task.approval_needed"
    return None


def close_gate(bus: Bus, task: Task, hits: tuple[Hit, ...]) -> Task:
    """pending → pending_approval, with what was found."""
    words = ", ".join(h.term for h in hits)
    asked = approval.requested(hits, bus.stamp())
    return follow(task, "close_gate", PENDING_APPROVAL, "bus", bus.now(), words, approval=asked)


def _past(bus: Bus, text: str) -> bool:
    try:
        return parse_stamp(text) <= bus.now()
    except ValueError:
        return False


def _unless_stopped(bus: Bus, found: Found) -> Found:
    """A stop that came during the claim wins: the claim is undone by its lease."""
    if stop.is_stopped(bus):
        recover.undo_claim(bus, found, "the bus was stopped")
        stop.refuse_if_stopped(bus)
    return found
