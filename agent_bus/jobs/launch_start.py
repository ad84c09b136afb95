"""Starting a run: what is written before its process, the process, and what is written after it."""

from __future__ import annotations

from agent_bus import host
from agent_bus.bus import Bus
from agent_bus.domain import outcome
from agent_bus.domain import run as machine
from agent_bus.domain.run import RUNNING, STARTING, Run
from agent_bus.domain.task import Holder, Task
from agent_bus.errors import BusError
from agent_bus.jobs import launch_ready
from agent_bus.launchers import (
    LaunchError,
    process,
)
from agent_bus.launchers.trees import Tree
from agent_bus.operations import claim, endings, launching, outcomes, runs, sessions, stop
from agent_bus.operations.find import Found
from agent_bus.operations.launchable import Launchable
from agent_bus.operations.launching import View
from agent_bus.operations.runs import Held
from agent_bus.operations.witness import record
from agent_bus.store.port import Stale


def begin(view: View, agent: Launchable, found: Found, job: str) -> Held | None:
    """Run document, claim, process: the running run, or None if somebody was first or it could not be started."""
    bus = view.bus
    earlier = runs.of_task(bus, found.task.task_id)
    if earlier and earlier[-1].live:
        return None
    held = runs.make(bus, _new_run(view, agent, found.task, earlier[-1].n + 1 if earlier else 1, job))
    if held is None:
        return None
    view.fresh.append(held.run)
    try:
        claimed = claim.take(bus, found.doc.key, held.run.worker, _holder(held.run), held.run.lease_id)
    except (Stale, BusError):
        claimed = None
    if claimed is None:
        view.fresh.remove(held.run)
        ended = runs.void(bus, held, "somebody else has its task, or something stands in its way")
        endings.apply(bus, ended.run)
        return None
    held = runs.note(bus, held, attempt=claimed.task.attempt)
    record(bus, "run.starting", claimed.task, run_id=held.run.run_id)
    return spawn(view, agent, held, claimed.task)


def spawn(view: View, agent: Launchable, held: Held, task: Task) -> Held | None:
    """Starts the process of a run that holds its task; None if it could not be (the run has ended then)."""
    bus = view.bus
    try:
        ready = launch_ready.prepare(view, agent, held.run, task)
        held = runs.note(bus, held, **ready.changes)
        if stop.is_stopped(bus):
            _end_for_stop(bus, held)
            return None
        stdin = runs.file(bus, held.run, "prompt") if ready.command.stdin_prompt else None
        log = runs.file(bus, held.run, "log")
        child = process.spawn(ready.command.argv, cwd=ready.work_dir, env=ready.env, stdin=stdin, log=log)
    except LaunchError as error:
        endings.unlaunched(bus, held, error.kind, f"{error.message} {error.hint}")
        return None
    except BusError as error:
        endings.unlaunched(bus, held, "config" if error.code in ("refused", "invalid") else "spawn", str(error))
        return None
    except Stale:
        return None  # an emergency stop has ended it meanwhile
    started = {"pid": child.pid, "pid_started": child.pid_started, "started_at": bus.stamp()}
    try:
        held = runs.write(bus, held, machine.follow(held.run, "spawn", RUNNING, **started))
    except Stale:
        Tree(held.run.run_id, child.pid, child.pid_started).end(bus.settings.launcher.grace_s)
        return None
    outcomes.name_process(bus, held.run, process_fields(child.pid))
    if stop.is_stopped(bus):
        _end_for_stop(bus, held)
        return None
    return held


def process_fields(pid: int) -> dict[str, object]:
    """A process of this host as it stands in a lease's holder; nothing if it has gone already."""
    here = host.this_process()
    try:
        started = host.start_stamp(pid)
    except OSError:
        return {"pid": pid, "pid_started": "gone"}
    return {"host": here.host, "boot": here.boot, "pid_ns": here.pid_ns, "pid": pid, "pid_started": started}


def owner() -> dict[str, str | int]:
    """This process, as the owner of the runs that it looks after."""
    return host.as_record(host.this_process())


def _new_run(view: View, agent: Launchable, task: Task, n: int, job: str) -> Run:
    bus = view.bus
    place = _place(bus, agent, task)
    return Run(
        run_id=machine.run_id(task.task_id, n, bus.token()[:8]),
        task_id=task.task_id,
        n=n,
        lease_id=bus.token(),
        agent=agent.name,
        worker=_slot(view, agent.name),
        launcher=agent.settings.launcher,
        host=host.host_id(),
        owner=owner(),
        job=job,
        account=agent.account,
        work_dir=place.work_dir if place else "",
        thread=place.thread if place else "",
        made_at=bus.stamp(),
        log=f"runs/{task.task_id}/{n}.log",
    )


def _place(bus: Bus, agent: Launchable, task: Task) -> sessions.Place | None:
    """Where its session belongs, so that no other run of it starts beside it; None if the folder will be refused."""
    try:
        return launching.place(bus, agent, task)
    except BusError:
        return None


def _slot(view: View, name: str) -> str:
    """The first free worker label: `NAME`, `NAME#2` …"""
    taken = {r.worker for r in view.live + view.fresh if r.agent == name}
    labels = [name, *(f"{name}#{n}" for n in range(2, len(taken) + 2))]
    return next(label for label in labels if label not in taken)


def _holder(run: Run) -> Holder:
    return Holder.model_validate({**owner(), "run": run.run_id})


def _end_for_stop(bus: Bus, held: Held) -> None:
    """A process that was born during a stop is ended at once; one that was not is not made."""
    if held.run.state != STARTING:
        runs.tree(held.run).end(bus.settings.launcher.grace_s)
    seen = endings.Seen(stopped=True)
    end, evidence = endings.examine(bus, held.run, seen)
    endings.finish(bus, held, seen, endings.again(outcome.classify(end)), evidence)
