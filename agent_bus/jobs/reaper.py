"""The reaper: finishes what was left half-done, takes back what dead holders hold, ends what has expired.
Idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import lease
from agent_bus.domain.report import end
from agent_bus.domain.task import CANCELLED, EXPIRED, IN_PROGRESS, Task, may, place
from agent_bus.errors import BusError
from agent_bus.operations import (
    chains,
    clocks,
    find,
    housekeeping,
    inbox,
    ledger,
    quarantine,
    recover,
    settle,
    stop,
    vanished,
    waiting,
)
from agent_bus.operations.find import Found
from agent_bus.operations.why import silent_s
from agent_bus.store.port import Stale
from agent_bus.times import parse_stamp

log = logging.getLogger(__name__)
EVERY_S = 30.0
_USED = "reaper: ids that are not reserved"
VOID_AFTER_S = 600
LATE_S = 600
TEMP_AFTER_S = 3600


class ReapReport(BaseModel):
    """What one pass did, by task id or file."""

    recovered: list[str] = []
    dead: list[str] = []
    expired: list[str] = []
    cancelled: list[str] = []
    moved_on: list[str] = []
    settled: list[str] = []
    quarantined: list[str] = []
    voided: list[str] = []
    vanished: list[str] = []
    grace: bool = False


def tick(bus: Bus, now: datetime) -> float:
    """One pass; seconds until the next."""
    sweep(bus, now)
    return EVERY_S


def sweep(bus: Bus, now: datetime) -> ReapReport:
    """One pass over everything that is open. While the bus is stopped nothing is taken back or moved on."""
    bus.check_writable()
    done = ReapReport(grace=clocks.note(bus))
    stopped = stop.is_stopped(bus)
    _adopt_spellings(bus, done)
    for folder in bus.store.folders("inbox"):
        _sweep_inbox(bus, folder, done, stopped)
    for folder in ("approvals", "waiting", "dead_letter"):
        _sweep_folder(bus, folder, done)
    if not stopped:
        done.moved_on += waiting.advance_due(bus, full=True)
    _sweep_reports(bus, done)
    if not stopped:
        _sweep_late_chains(bus, now, done)
    _judge_ids(bus, now, done)
    done.vanished += vanished.look(bus)
    stop.settle(bus)
    _clean(bus, now)
    return done


@contextmanager
def _unless_busy(what: str) -> Iterator[None]:
    """A lock that a stopped process holds costs one item its turn, not the others theirs."""
    try:
        yield
    except BusError as error:
        if error.code != "busy":
            raise
        log.warning("reaper: %s must wait for the next pass (%s)", what, error)


def _sweep_inbox(bus: Bus, folder: str, done: ReapReport, stopped: bool) -> None:
    index = inbox.index(bus, folder)
    index.update(full=True)
    for key in index.strays():
        with _unless_busy(key):
            _stray(bus, key, done)
    for row in index.held():
        with _unless_busy(row.key):
            _sweep_held(bus, row.key, done, stopped)
    for key in () if done.grace else index.expiring(bus.now()):
        with _unless_busy(key):
            _expire(bus, key, done)


def _sweep_held(bus: Bus, key: str, done: ReapReport, stopped: bool) -> None:
    found = find.read_quietly(bus, key)
    if found is None or found.task.status != IN_PROGRESS:
        return
    if _cancel_firm(bus, found.task) and not done.grace:
        _cancel(bus, found, done)
    elif not stopped:
        _take_back(bus, _cut_lease(bus, found), done)


def _adopt_spellings(bus: Bus, done: ReapReport) -> None:
    """Inbox folders in another spelling give their tasks to the agent's own; what is no task there is judged."""
    done.settled += find.adopt_spellings(bus)
    for folder in bus.store.folders("inbox"):
        if ids.folder_of(folder) != folder:
            done.quarantined += [k for k in bus.store.keys(f"inbox/{folder}") if quarantine.judge(bus, k)]


def _sweep_folder(bus: Bus, folder: str, done: ReapReport) -> None:
    for key in bus.store.keys(folder):
        with _unless_busy(key):
            found = find.read_quietly(bus, key)
            if found is None or found.doc.key != place(found.task):
                _stray(bus, key, done)
            elif not done.grace and _is_over(bus, found.task):
                _expire(bus, key, done)
            elif found.task.verdict is not None:
                settle.settle(bus, found)


def _stray(bus: Bus, key: str, done: ReapReport) -> None:
    found = find.read_quietly(bus, key)
    if found is None or not _unfinished(bus, found):
        if quarantine.judge(bus, key):
            done.quarantined.append(key)
        return
    settle.settle(bus, found)
    done.settled.append(found.task.task_id)


def _unfinished(bus: Bus, found: Found) -> bool:
    """A file in the wrong folder is an unfinished move, unless its place is taken: then it is a second copy."""
    return found.doc.key != place(found.task) and not bus.store.exists(place(found.task))


def _take_back(bus: Bus, found: Found, done: ReapReport) -> None:
    silent = bus.settings.silent_release_s
    if silent and found.task.lease and min(silent_s(bus, found.task), clocks.steady_s(bus)) > silent:
        taken = recover.take_back(bus, found, f"{found.task.lease.worker} was silent for {silent} s", counted=False)
    else:
        taken = recover.if_lost(bus, found)
    if taken is not None:
        (done.dead if taken.task.status == "dead_letter" else done.recovered).append(taken.task.task_id)


def _cut_lease(bus: Bus, found: Found) -> Found:
    """A lease that ends later than one TTL from now (a clock was set back) is cut to it."""
    held = found.task.lease
    if held is None or lease.left_s(held, bus.now()) <= bus.settings.lease_s + 1:
        return found
    try:
        return settle.write(bus, found, lease.renew(found.task, bus.now(), bus.settings.lease_s, called=False))
    except Stale:
        return find.read_quietly(bus, found.doc.key) or found


def _cancel_firm(bus: Bus, task: Task) -> bool:
    return task.cancel is not None and _passed(bus, str(task.cancel.get("firm_at", "")))


def _cancel(bus: Bus, found: Found, done: ReapReport) -> None:
    words = lease.cancel_words(found.task)
    with suppress(Stale):
        settle.commit(bus, found, end(found.task, "cancel", CANCELLED, "bus", bus.now(), words), "task.cancelled")
        done.cancelled.append(found.task.task_id)


def _is_over(bus: Bus, task: Task) -> bool:
    if not may(task, "expire"):
        return False
    if task.expires_at and _passed(bus, task.expires_at):
        return True
    if task.status != "pending_approval":
        return False
    asked = str((task.approval or {}).get("at") or task.created_at)
    try:
        return parse_stamp(asked) + timedelta(seconds=bus.settings.approval_expiry_s) <= bus.now()
    except ValueError:
        return False


def _expire(bus: Bus, key: str, done: ReapReport) -> None:
    found = find.read_quietly(bus, key)
    if found is None or not _is_over(bus, found.task):
        return
    words = (
        "nobody approved it in time"
        if found.task.status == "pending_approval"
        else f"it expired at {found.task.expires_at}"
    )
    with suppress(Stale):
        settle.commit(bus, found, end(found.task, "expire", EXPIRED, "bus", bus.now(), words), "task.expired")
        done.expired.append(found.task.task_id)


def _sweep_reports(bus: Bus, done: ReapReport) -> None:
    """Reports in pending whose task has a verdict or a newer state, or has ended unrecorded: acts that were
    cut short.
    """
    for key in bus.store.keys("reports/pending"):
        name = key.rpartition("/")[2]
        if not ids.is_task_id(name):
            continue
        with _unless_busy(key):
            found = find.find_quietly(bus, name)
            if found and _cut_short(bus, found.task):
                settle.settle(bus, found)
                if not bus.store.exists(key):
                    done.settled.append(name)


def _cut_short(bus: Bus, task: Task) -> bool:
    if task.verdict is not None or task.report is None:
        return True
    return task.ended and ledger.state(bus, task.task_id) != ledger.DONE


def _sweep_late_chains(bus: Bus, now: datetime, done: ReapReport) -> None:
    """A chain that was written after its task's verdict, by somebody who could not run it."""
    for doc in bus.store.list(chains.LATE):
        with _unless_busy(doc.name):
            found = find.find_quietly(bus, doc.name)
            if found and found.task.verdict is not None and chains.run(bus, found.task):
                done.settled.append(doc.name)
        if not _written_since(doc.value, now - timedelta(seconds=LATE_S)):
            with suppress(Stale):
                bus.store.delete(doc)


def _written_since(mark: dict[str, Any], moment: datetime) -> bool:
    try:
        return parse_stamp(str(mark.get("at", ""))) > moment
    except ValueError:
        return False


def _judge_ids(bus: Bus, now: datetime, done: ReapReport) -> None:
    """Ids of the last two days that are still reserved: the task is written, or after a while the id was given up."""
    days = [f".bus/ledger/{day:%Y%m%d}" for day in (now, now - timedelta(days=1))]
    names = {key.rpartition("/")[2] for day in days for key in bus.store.keys(day)}
    used = bus.memo.get(_USED, frozenset()) & names  # nothing becomes reserved again: each is read once
    still = {name for name in names - used if ledger.state(bus, name) == ledger.RESERVED}
    for name in sorted(still):
        with _unless_busy(name), bus.store.lock(name):
            if find.anywhere(bus, name):
                found = find.find_quietly(bus, name)
                ledger.set_live(bus, name, found.doc.key if found else "", "")
            elif _id_age_s(name, now) > VOID_AFTER_S and ledger.set_void(bus, name):
                done.voided.append(name)
    bus.memo[_USED] = names - still


def _id_age_s(task_id: str, now: datetime) -> float:
    made = datetime.strptime(task_id[2:17] + "+0000", "%Y%m%d-%H%M%S%z")
    return (now - made).total_seconds()


def _clean(bus: Bus, now: datetime) -> None:
    with _unless_busy("hand-offs and debates"):
        housekeeping.tidy(bus)
    try:
        bus.store.sweep(now.timestamp() - TEMP_AFTER_S)
        bus.journal.sweep(now, bus.settings.journal_days)
    except OSError as error:
        log.warning("reaper: cleaning up: %s", error)


def _passed(bus: Bus, text: str) -> bool:
    try:
        return parse_stamp(text) <= bus.now()
    except ValueError:
        return False
