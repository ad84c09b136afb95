"""The launcher: starts agents for their tasks, looks after the runs, ends them (docs/launcher.md).

Each run has one owner, the job that started or adopted it. Another job on the same bus leaves it alone while its owner
lives; every start and every end is one compare-and-swap, so two jobs are harmless.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import datetime

from agent_bus import host
from agent_bus.bus import Bus
from agent_bus.domain import run as machine
from agent_bus.domain.run import RUNNING, Run, seconds_since
from agent_bus.errors import BusError
from agent_bus.jobs import launch_logs, launch_start, launch_watch
from agent_bus.jobs.launch_watch import LINGER_S, Watch
from agent_bus.launchers import capabilities, trees
from agent_bus.operations import endings, find, halting, inbox, launchable, launching, outcomes, runs, stop, waiting
from agent_bus.operations.launchable import Launchable
from agent_bus.operations.launching import View
from agent_bus.operations.runs import Held
from agent_bus.store.port import Stale

IDLE_S, POLL_S, OTHER_HOST_S = 2.0, 0.1, 30.0
FULL_S = 30.0
SLEPT_S = 60.0
_CANDIDATES = 50
"""Tasks looked at in one tick that cannot start for reasons of their own."""


class LauncherJob:
    """Keeps the runs it looks after between ticks.

    Args:
        linger_s: how long the processes of a run that has reported may go on.
    """

    def __init__(self, linger_s: float = LINGER_S) -> None:
        self._linger_s = linger_s
        self._id = secrets.token_hex(8)
        self._watches: dict[str, Watch] = {}
        self._clocks: tuple[float, float] | None = None
        self._full_at = float("-inf")

    def tick(self, bus: Bus, now: datetime) -> float:
        """See `jobs.loop`: looks after every run, starts what may start; seconds until the next look."""
        if bus.layout is None:
            return OTHER_HOST_S
        try:
            bus.check_writable()
        except BusError:
            return OTHER_HOST_S
        self._after_sleep(bus, now)
        self._take_up(bus)
        if stop.is_stopped(bus):
            mode = str((stop.read(bus) or {}).get("mode", "kill"))
            halting.halt(bus, mode, lambda r: r.run_id in self._watches)
        elif any(w.run.frozen_at for w in self._watches.values()):
            halting.thaw(bus)  # a resume that was cut short
        for watch in list(self._watches.values()):
            self._look_after(bus, watch)
        if not stop.is_stopped(bus):
            self._start_due(bus)
        return POLL_S if self._watches else IDLE_S

    def _after_sleep(self, bus: Bus, now: datetime) -> None:
        """A machine that slept has run no process: all timers get a fresh start."""
        wall, boot = now.timestamp(), bus.clock.boot_s()
        if self._clocks and abs((wall - self._clocks[0]) - (boot - self._clocks[1])) >= SLEPT_S:
            for watch in self._watches.values():
                watch.shift(boot)
        self._clocks = wall, boot

    def _take_up(self, bus: Bus) -> None:
        """Runs that nobody looks after are adopted or ended; ends that were not applied are."""
        for held in runs.live(bus):
            run = held.run
            if not run.live:
                endings.apply(bus, run)
            elif run.run_id not in self._watches and self._is_abandoned(run):
                with suppress(Stale, machine.NotAllowed):
                    self._adopt(bus, held)
        if bus.clock.boot_s() - self._full_at >= FULL_S:
            runs.sweep_marks(bus)
            launch_logs.sweep(bus)

    def _is_abandoned(self, run: Run) -> bool:
        """Whether nobody looks after a run: its launcher is dead, or it is one of ours that a fault made us lose."""
        return runs.is_here(run) and (run.job == self._id or runs.owner_liveness(run) == host.DEAD)

    def _adopt(self, bus: Bus, held: Held) -> None:
        mine = {"owner": launch_start.owner(), "job": self._id}
        if held.run.state != RUNNING:
            found = trees.roots(held.run.run_id)
            if len(found) != 1:
                trees.Tree(held.run.run_id).end(bus.settings.launcher.grace_s)
                ended = runs.void(bus, held, "its launcher died before it ran")
                endings.apply(bus, ended.run)
                return
            root = {"pid": found[0].pid, "pid_started": found[0].pid_started}
            held = runs.write(bus, held, machine.follow(held.run, "adopt", RUNNING, **mine, **root))
            outcomes.name_process(bus, held.run, launch_start.process_fields(found[0].pid))
        else:
            held = runs.write(bus, held, machine.follow(held.run, "adopt", RUNNING, **mine))
        age = max(0.0, seconds_since(held.run.started_at or held.run.made_at, bus.now()) - held.run.frozen_s)
        self._watches[held.run.run_id] = Watch(held, bus.clock.boot_s() - age, self._linger_s)

    def _look_after(self, bus: Bus, watch: Watch) -> None:
        held = runs.read(bus, watch.run.run_id)
        if held is None or not held.run.live:
            self._watches.pop(watch.run.run_id)
            if held is not None:
                endings.apply(bus, held.run)
            return
        thawed = watch.run.frozen_at and not held.run.frozen_at
        watch.held = held
        if thawed:
            watch.shift(bus.clock.boot_s())
        if held.run.frozen_at or not watch.step(bus):
            return
        del self._watches[watch.run.run_id]
        if launch_watch.conclude(bus, watch) is not None:
            self._go_again(bus, watch.held)

    def _go_again(self, bus: Bus, held: Held) -> None:
        """A further process of a run that still holds its task."""
        found = outcomes.held_by(bus, held.run)
        try:
            agent = launchable.check(bus, held.run.agent)
        except (BusError, KeyError) as error:
            endings.unlaunched(bus, held, "config", str(error))
            return
        if found is None:
            endings.apply(bus, runs.void(bus, held, "its task was taken from it").run)
            return
        if held.run.option and bus.layout is not None:
            capabilities.drop(bus.layout, agent.executable, held.run.option)
        self._watch(bus, launch_start.spawn(View(bus), agent, held, found.task))

    def _start_due(self, bus: Bus) -> None:
        full = bus.clock.boot_s() - self._full_at >= FULL_S
        if full:
            self._full_at = bus.clock.boot_s()
        names = launchable.names(bus)
        if not names:
            return
        waiting.advance_due(bus, full)
        view = View(bus)
        for name in names:
            with suppress(BusError):  # system_health says why
                self._start_for(view, launchable.check(bus, name), full)

    def _start_for(self, view: View, agent: Launchable, full: bool) -> None:
        if launching.off(view.bus, agent.name):
            return
        for box in agent.inboxes:
            index = inbox.index(view.bus, box)
            index.update(full)
            skip: set[str] = set()
            while len(skip) < _CANDIDATES and (key := index.next(view.bus.now(), skip)) is not None:
                skip.add(key)
                found = find.read_quietly(view.bus, key)
                if found is None:
                    continue
                plan = launching.plan(view, agent, found.task)
                if plan.start:
                    self._watch(view.bus, launch_start.begin(view, agent, found, self._id))
                elif plan.launch == "dead_letter":
                    outcomes.give_up(view.bus, found, plan.reason)
                elif plan.whole:
                    return

    def _watch(self, bus: Bus, held: Held | None) -> None:
        if held is not None:
            self._watches[held.run.run_id] = Watch(held, bus.clock.boot_s(), self._linger_s)
