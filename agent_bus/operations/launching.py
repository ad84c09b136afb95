"""Whether and when tasks are launched: the facts for the plan (domain/launch.py), read from documents and settings."""

from __future__ import annotations

import functools
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import launch, run
from agent_bus.domain.launch import Facts, Plan, Spent
from agent_bus.domain.run import Run
from agent_bus.domain.task import PENDING, Task
from agent_bus.errors import BusError
from agent_bus.operations import inbox, launchable, parking, runs, sessions, stop
from agent_bus.operations.launchable import Launchable
from agent_bus.store import records

JOB = "job-launcher"
"""The launcher's record in `.bus/run/`."""
ALIVE_S = 30.0
_DAY_S = 90_000


@dataclass
class View:
    """What all plans of one round share; read when it is first asked for.

    Args:
        fresh: runs made in this round.
    """

    bus: Bus
    fresh: list[Run] = field(default_factory=list)

    @functools.cached_property
    def live(self) -> list[Run]:
        """The runs that have not ended, of all hosts."""
        return [h.run for h in runs.live(self.bus) if h.run.live]

    @functools.cached_property
    def day(self) -> list[Run]:
        """The runs of the last day."""
        return runs.recent(self.bus, self.bus.now() - timedelta(seconds=_DAY_S))

    @functools.cached_property
    def minute(self) -> list[Run]:
        """The runs of the last minute."""
        return launch.recent(runs.recent(self.bus, self.bus.now() - timedelta(seconds=60)), self.bus.now())

    @functools.cached_property
    def today(self) -> list[Run]:
        """The runs of this local day."""
        return launch.of_day(self.day, self.bus.now(), zone(self.bus))


def zone(bus: Bus) -> tzinfo | None:
    """The time zone of the setting `timezone`, None = the machine's own."""
    name = getattr(bus.settings, "timezone", "")
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None


def plan(view: View, agent: Launchable, task: Task, ahead: int = 0) -> Plan:
    """Whether an agent's run for a task may start now."""
    return launch.plan(facts(view, agent, task, ahead))


def facts(view: View, agent: Launchable, task: Task, ahead: int = 0) -> Facts:
    """What is known about one start."""
    bus, settings = view.bus, view.bus.settings
    live = view.live + view.fresh
    mine = [r for r in live if ids.same_name(r.agent, agent.name)]
    own = runs.of_task(bus, task.task_id)
    minute = view.minute + view.fresh
    return Facts(
        stopped="the bus is stopped" if stop.is_stopped(bus) else "",
        off=off(bus, agent.name),
        other_host=_other_host(bus),
        not_ready=_not_ready(task, own),
        parked=parking.reason_for(bus, agent.name, agent.account, live),
        agent_runs=(len(mine), agent.settings.max_concurrent),
        host_runs=(sum(map(runs.is_here, live)), settings.launcher.max_runs),
        ahead=ahead,
        session=_session_in_use(bus, agent, task, mine),
        agent_rate=(_count(minute, agent.name), agent.settings.launches_per_minute),
        host_rate=(len(minute), settings.launcher.launches_per_minute),
        launches=(len(run.launches(own, task)), settings.launcher.max_launches),
        failed_starts=_failed_starts(own, task),
        back_off=_back_off(bus, own),
        budget=_budget(view, agent, task, own),
        free_bytes=bus.layout.free_bytes() if bus.layout else -1,
    )


def off(bus: Bus, name: str) -> str:
    """Why an agent is not launched by itself, in words."""
    if not bus.settings.launcher.enabled:
        return "launcher.enabled is false"
    return "" if bus.settings.agents[name].auto_launch else f"agents.{name}.auto_launch is false"


def for_task(bus: Bus, task: Task) -> Plan:
    """What becomes of a task by the launcher, for dispatch_task and get_task: the best plan of the agents it is for.

    The reason is empty where there is nothing to say: it starts, it is not pending, or its agent has no launcher.
    """
    if task.status != PENDING:
        return Plan("waiting")
    found = launchable.for_inbox(bus, task.to)
    if not found:
        return Plan("no_launcher")
    view = View(bus)
    if any(r.task_id == task.task_id for r in view.live):
        return Plan("started")  # a launcher was quicker than this answer
    plans = [_for_agent(view, name, task) for name in found]
    best = min(plans, key=lambda p: _ORDER.index(p.launch))
    if best.launch == "waiting" and any(r.live for r in runs.of_task(bus, task.task_id)):
        return Plan("started")  # the run was made while this was being looked at
    if best.start and not job_alive(bus):
        return Plan("off", "no launcher runs: agent-bus up starts it")
    return best


_ORDER = ("started", "queued", "waiting", "parked", "off", "no_launcher", "dead_letter")


def _for_agent(view: View, name: str, task: Task) -> Plan:
    bus = view.bus
    if reason := off(bus, name):
        return Plan("off", reason)
    try:
        agent = launchable.check(bus, name)
    except BusError as error:
        return Plan("no_launcher", f"{error.message} {error.hint}".strip())
    index = inbox.index(bus, task.to)
    index.update()
    return plan(view, agent, task, max(0, len(index) - 1))


def job_alive(bus: Bus) -> bool:
    """Whether a launcher looks after this bus: a living process that has ticked in the last 30 s."""
    if bus.layout is None:
        return False
    record = records.read(bus.layout, JOB)
    return records.alive(record) and run.seconds_since(str((record or {}).get("last_tick", "")), bus.now()) < ALIVE_S


def spent_on(view: View, agent: str, own: Sequence[Run]) -> tuple[Spent, Spent, Spent]:
    """The sums of a task, of its agent's day and of the host's day."""
    mine = [r for r in view.today if ids.same_name(r.agent, agent)]
    return launch.spent(own), launch.spent(mine), launch.spent(r for r in view.today if runs.is_here(r))


def caps(bus: Bus, agent: Launchable, task: Task) -> launch.Caps:
    """What may be spent on a task."""
    own = agent.settings
    usd, tokens, granted = launch.caps_of(task.limits, own.cost_usd, own.tokens)
    host_usd = bus.settings.launcher.day_cost_usd
    return launch.Caps(usd, tokens, own.day_cost_usd, own.day_runs, host_usd, granted)


def _budget(view: View, agent: Launchable, task: Task, own: Sequence[Run]) -> str:
    limits = caps(view.bus, agent, task)
    if limits == launch.Caps():
        return ""
    return launch.over_budget(agent.name, limits, *spent_on(view, agent.name, own))


def place(bus: Bus, agent: Launchable, task: Task) -> sessions.Place:
    """Where the session of a task's run belongs. Raises BusError `refused` for a work folder that is not allowed."""
    folder = str(launchable.work_dir(bus, agent.settings, task))
    config = launchable.config_folder(agent.settings)
    return sessions.Place(agent.name, folder, sessions.thread_of(bus, task), agent.settings.launcher, config)


def _session_in_use(bus: Bus, agent: Launchable, task: Task, mine: list[Run]) -> str:
    if not mine or sessions.mode_of(task, agent.settings.session) == "new":
        return ""
    try:
        here = place(bus, agent, task)
    except BusError:
        return ""  # it is refused at the start, in words
    return next((r.run_id for r in mine if (r.work_dir, r.thread) == (here.work_dir, here.thread)), "")


def _other_host(bus: Bus) -> str:
    try:
        bus.check_writable()
    except BusError as error:
        return f"other_host: {error.message}"
    return ""


def _not_ready(task: Task, own: list[Run]) -> str:
    if task.status != PENDING:
        return f"the task is {task.status}"
    waits = next((r.run_id for r in own if r.live), "")
    return f"its run {waits} has not ended" if waits else ""


def _failed_starts(own: list[Run], task: Task) -> str:
    failed = [r for r in run.launches(own, task) if r.outcome == "start_failed"]
    return f"start_failed: {len(failed)} starts gave no sign of life" if len(failed) >= run.START_FAILURES else ""


def _back_off(bus: Bus, own: list[Run]) -> str:
    last = own[-1] if own else None
    if last is None or not last.retry_at or run.seconds_since(last.retry_at, bus.now()) >= 0:
        return ""
    return f"it ended as {last.outcome}; it is started again at {last.retry_at}"


def _count(made: list[Run], agent: str) -> int:
    return sum(ids.same_name(r.agent, agent) for r in made)
