"""Looking after one run: its timers, its lease, and its end (docs/launcher.md "Supervision")."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import outcome
from agent_bus.domain import run as machine
from agent_bus.domain.run import ENDED, RUNNING, STARTING, Run, seconds_since
from agent_bus.domain.task import CANCELLED, Task
from agent_bus.launchers import output, process, registry
from agent_bus.launchers.trees import Survivor, Tree
from agent_bus.operations import endings, find, outcomes, runs, sessions, stop
from agent_bus.operations.endings import Seen
from agent_bus.operations.runs import Held
from agent_bus.operations.witness import record
from agent_bus.store.port import Stale

LINGER_S = 30.0
"""How long the tree of a run that has reported may go on."""
IDLE_AGAIN_S = 3600.0
_CPU_EVERY_S = 15.0
_SESSION_BYTES = 1024 * 1024


class _Ending(threading.Thread):
    """Ends a tree beside the job, which has others to look after."""

    def __init__(self, tree: Tree, grace_s: float) -> None:
        super().__init__(name=f"ending-{tree.run_id}", daemon=True)
        self._tree = tree
        self._grace_s = grace_s
        self.survivors: list[Survivor] = []

    def run(self) -> None:
        self.survivors = self._tree.end(self._grace_s)


@dataclass
class Watch:
    """A run that this job looks after. Times in seconds of the boot clock, which does not jump.

    Args:
        held: its document as last read or written.
        began: when its present process was started.
    """

    held: Held
    began: float
    linger_s: float = LINGER_S
    tree: Tree = field(init=False)
    ending: _Ending | None = None
    ended_by: str = ""
    called: bool = False
    reported_at: float = 0.0
    exit: tuple[int, int] | None = None
    _size: int = 0
    _cpu: float = 0.0
    _cpu_at: float = 0.0
    _sign_at: float = 0.0

    def __post_init__(self) -> None:
        self.tree = runs.tree(self.held.run)
        self._sign_at = self.began

    @property
    def run(self) -> Run:
        """The run's content."""
        return self.held.run

    def shift(self, now: float) -> None:
        """All timers get a fresh start: the machine slept, or the run was frozen."""
        self.began = self._sign_at = now
        self.reported_at = now if self.reported_at else 0.0

    def step(self, bus: Bus) -> bool:
        """One look; True once the run's processes are gone."""
        if self.ending is not None:
            return not self.ending.is_alive()
        if not self._running():
            self._end(bus, "")
            return False
        found = find.find_quietly(bus, self.run.task_id)
        task = found.task if found else None
        self._look(bus, task)
        cause = self._cause(bus, task)
        if cause:
            self._end(bus, "" if cause in ("cancelled", "released", "reported") else cause)
        else:
            outcomes.renew(bus, self.run)
            self._warn_if_idle(bus, task)
        return False

    def survivors(self) -> str:
        """Who could not be ended, in words."""
        left = self.ending.survivors if self.ending else []
        return "; ".join(f"process {s.pid} is still there: {s.why}" for s in left[:10])

    def seen(self) -> Seen:
        """What is known of the end."""
        code = self.tree.poll() or self.exit
        return Seen(code, self.ended_by, called=self.called, survivors=self.survivors())

    def _running(self) -> bool:
        if not self.tree.root_alive():
            self.exit = self.tree.poll()
            return False
        return True

    def _end(self, bus: Bus, cause: str) -> None:
        self.ended_by = cause
        self.ending = _Ending(self.tree, bus.settings.launcher.grace_s)
        self.ending.start()

    def _look(self, bus: Bus, task: Task | None) -> None:
        """Notes the first byte, the first call and the session, each once."""
        now = bus.clock.boot_s()
        size = _size(bus, self.run)
        changes: dict[str, Any] = {}
        if size > self._size:
            self._size, self._sign_at = size, now
        if size > self.run.log_from and not self.run.first_byte_at:
            changes["first_byte_at"] = bus.stamp()
        called = bool(task and task.lease and task.lease.id == self.run.lease_id and task.lease.called_at)
        self.called = self.called or called or bool(task and machine.is_reported(task, self.run.lease_id))
        if self.called and not self.run.first_call_at:
            changes["first_call_at"] = bus.stamp()
        if not self.run.session_id and size > self.run.log_from and (found := _session(bus, self.run)):
            changes["session_id"] = found
        if changes:
            with suppress(Stale):
                self.held = runs.note(bus, self.held, **changes)
            if "session_id" in changes:
                sessions.remember(bus, endings.place(bus, self.run), self.run.session_id, self.run.run_id)

    def _cause(self, bus: Bus, task: Task | None) -> str:
        """Why the tree is to be ended now, "" = it is not."""
        launcher, now = bus.settings.launcher, bus.clock.boot_s()
        held = task is not None and task.lease is not None and task.lease.id == self.run.lease_id
        if task is not None and machine.is_reported(task, self.run.lease_id):
            self.reported_at = self.reported_at or now
            return "reported" if now - self.reported_at >= self.linger_s else ""
        if task is None or task.status == CANCELLED or not held:
            return "released"
        if task.cancel is not None and seconds_since(str(task.cancel.get("firm_at", "")), bus.now()) >= 0:
            return "cancelled"
        if now - self.began >= (self.run.runtime_s or launcher.runtime_s):
            return "timed_out"
        if self._size > launcher.log_max_bytes:
            return "output_limit"
        silent = not self.called and self._size <= self.run.log_from
        return "start_failed" if silent and now - self.began >= launcher.start_s else ""

    def _warn_if_idle(self, bus: Bus, task: Task | None) -> None:
        now = bus.clock.boot_s()
        if now - self._cpu_at >= _CPU_EVERY_S:
            used = self.tree.cpu_s()
            if used > self._cpu + 0.05:
                self._cpu, self._sign_at = used, now
            self._cpu_at = now
        called = seconds_since(task.lease.called_at, bus.now()) if task and task.lease and task.lease.called_at else now
        quiet = min(now - self._sign_at, called)
        if quiet < bus.settings.launcher.idle_warn_s or task is None:
            return
        if self.run.warned_at and seconds_since(self.run.warned_at, bus.now()) < IDLE_AGAIN_S:
            return
        last = [
            output.redact(t, endings.secrets(bus, self.run)) for t in output.tail(runs.file(bus, self.run, "log"), 3)
        ]
        record(bus, "run.idle", task, run_id=self.run.run_id, quiet_s=int(quiet), last=last)
        with suppress(Stale):
            self.held = runs.note(bus, self.held, warned_at=bus.stamp())


def conclude(bus: Bus, watch: Watch) -> outcome.Verdict | None:
    """Ends a run whose processes are gone; the verdict if a further process of it is to be started instead.

    A run that goes again is `starting` from then on.
    """
    held = runs.read(bus, watch.run.run_id)
    if held is None or held.run.state == ENDED:
        _forget(watch)
        return None
    seen = watch.seen()
    seen = Seen(seen.exit, seen.ended_by, stop.is_stopped(bus), seen.called, seen.survivors)
    end, evidence = endings.examine(bus, held.run, seen)
    verdict = outcome.classify(end)
    if verdict.task != "again" or held.run.state != RUNNING:
        endings.finish(bus, held, seen, endings.again(verdict) if verdict.task == "again" else verdict, evidence)
        _forget(watch)
        return None
    changes = {
        **endings.spent(bus, held.run, evidence),
        "restarts": held.run.restarts + 1,
        "why_again": end.failure or verdict.outcome,
        "option": end.option if end.failure == "unknown_option" else "",
        "nudges": held.run.nudges + (verdict.outcome == "no_report"),
        "healed": held.run.healed + (verdict.outcome == "session_error"),
        "pid": 0,
        "pid_started": "",
        "first_byte_at": "",
    }
    _forget(watch)
    try:
        watch.held = runs.write(bus, held, machine.follow(held.run, "again", STARTING, **changes))
    except Stale:
        return None
    endings.note_session(bus, watch.run, evidence)
    record_again(bus, watch.run, end.option)
    return verdict


def record_again(bus: Bus, run: Run, option: str) -> None:
    """One line of the journal for a further process."""
    line = {"at": bus.stamp(), "event": "run.again", "agent": run.agent, "task_id": run.task_id, "run_id": run.run_id}
    bus.journal.write(bus.now(), {**line, "outcome": run.why_again, **({"option": option} if option else {})})


def _forget(watch: Watch) -> None:
    process.forget(watch.run.pid, watch.run.pid_started)


def _size(bus: Bus, run: Run) -> int:
    try:
        return os.stat(runs.file(bus, run, "log")).st_size
    except OSError:
        return 0


def _session(bus: Bus, run: Run) -> str:
    with suppress(OSError), open(runs.file(bus, run, "log"), "rb") as file:
        file.seek(run.log_from)
        return registry.load(run.launcher).session_in(file.read(_SESSION_BYTES))
    return ""
