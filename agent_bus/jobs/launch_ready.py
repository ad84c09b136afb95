"""Everything a run's next process is started with: session, prompt, files, flags, environment."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import agent_bus
from agent_bus.bus import Bus
from agent_bus.domain import launch
from agent_bus.domain.run import Run
from agent_bus.domain.task import Task
from agent_bus.jobs import launch_prompt
from agent_bus.launchers import Command, Start, capabilities, environment, hook_settings, output, workfiles
from agent_bus.operations import launching, runs, sessions
from agent_bus.operations.launchable import Launchable
from agent_bus.operations.launching import View

_WINDOWS = sys.platform == "win32"
_CLI, _HOOK = "agent_bus.faces.cli", "agent_bus.faces.cli_hook"


@dataclass(frozen=True)
class Ready:
    """Everything a process is started with."""

    command: Command
    env: Mapping[str, str]
    work_dir: Path
    changes: Mapping[str, object]


def prepare(view: View, agent: Launchable, run: Run, task: Task) -> Ready:
    """Session, prompt, files, flags and environment of a run's next process.

    Raises:
        BusError: in words; LaunchError for a program that cannot be used.
    """
    bus = view.bus
    assert bus.layout is not None
    place = launching.place(bus, agent, task)
    env = _environment(bus, agent, run)
    known = capabilities.capabilities(bus.layout, agent.executable, agent.launcher, env)
    capabilities.check_required(known, agent.launcher, agent.executable)
    earlier = [r for r in runs.of_task(bus, task.task_id) if r.n < run.n]
    choice = _session(bus, agent, run, task, place, earlier)
    runtime = launch.runtime_s(_limit(task), agent.settings.runtime_s, *_runtimes(bus))
    launch_prompt.write(bus, agent, run, task, choice.resume, runtime, earlier)
    start = Start(
        agent=agent.name,
        run_id=run.run_id,
        executable=agent.executable,
        work_dir=Path(place.work_dir),
        permission=agent.settings.permission,
        session_id=choice.session_id,
        resume=choice.resume,
        prompt_file=runs.file(bus, run, "prompt"),
        run_folder=runs.folder(bus, run.task_id),
        model=agent.settings.model,
        args=tuple(agent.settings.args),
        allowed_tools=tuple(agent.settings.allowed_tools),
        server=_server(bus, agent),
        server_env=_server_environment(bus, run, env),
        settings_file=_hook(bus, agent, run),
        runtime_s=int(runtime),
        budget_usd=launch.left_usd(
            launching.caps(bus, agent, task), *launching.spent_on(view, agent.name, [*earlier, run])
        ),
        flags=known.flags & agent.launcher.optional_flags,
    )
    command = agent.launcher.command(start)
    workfiles.write(command.files)
    log = runs.file(bus, run, "log")
    output.append(log, output.header(bus.now(), run.run_id, agent.executable[0], known.version, command.argv))
    changes = {
        "executable": agent.executable[0],
        "version": known.version,
        "argv_sha256": hashlib.sha256("\0".join(command.argv).encode("utf-8", "replace")).hexdigest(),
        "work_dir": place.work_dir,
        "thread": place.thread,
        "session_id": choice.session_id,
        "session_mode": choice.mode,
        "resumed": choice.resume,
        "runtime_s": runtime,
        "log_from": os.stat(log).st_size,
    }
    return Ready(command, {**env, **command.env}, Path(place.work_dir), changes)


@functools.cache
def our_program(module: str) -> tuple[str, ...]:
    """argv that runs a program of ours from any folder: installed, or from a checkout that is not."""
    try:
        metadata.distribution("agent-bus")
    except metadata.PackageNotFoundError:
        place = str(Path(agent_bus.__file__).resolve().parents[1])
        code = f"import sys; sys.path.insert(0, {place!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"
        return (sys.executable, "-c", code)
    return (sys.executable, "-m", module)


def _session(
    bus: Bus, agent: Launchable, run: Run, task: Task, place: sessions.Place, earlier: list[Run]
) -> sessions.Choice:
    """The session of a run's next process; further processes of a run go on with its own."""
    mints = agent.launcher.mints_session
    mode = sessions.mode_of(task, agent.settings.session)
    if not run.restarts:
        return sessions.choose(bus, place, mode, mints, earlier)
    if run.why_again == "session_unknown":
        fresh = sessions.mint(bus, place, "the CLI did not know it any more") if mints else ""
        return sessions.Choice(fresh, False, mode)
    resume = bool(run.session_id) and (run.resumed or run.why_again in ("session_in_use", "no_report"))
    return sessions.Choice(run.session_id if mints or resume else "", resume, mode)


def _environment(bus: Bus, agent: Launchable, run: Run) -> dict[str, str]:
    assert bus.layout is not None
    ours = environment.run_variables(
        root=str(bus.layout.root),
        agent=run.agent,
        worker=run.worker,
        task_id=run.task_id,
        run_id=run.run_id,
        lease_id=run.lease_id,
    )
    if bus.settings.state_dir:
        ours["AGENT_BUS_STATE_DIR"] = bus.settings.state_dir
    if bus.settings.source:
        ours["AGENT_BUS_CONFIG"] = bus.settings.source
    return environment.child_environment(
        os.environ,
        prefixes=agent.launcher.env_prefixes,
        env_pass=agent.settings.env_pass,
        env=agent.settings.env,
        run=ours,
        windows=_WINDOWS,
    )


def _server(bus: Bus, agent: Launchable) -> tuple[str, ...]:
    if agent.settings.mcp == "client":
        return ()
    assert bus.layout is not None
    return (
        *our_program(_CLI),
        "mcp",
        "--root",
        str(bus.layout.root),
        "--agent",
        agent.name,
        "--role",
        agent.settings.role,
    )


def _server_environment(bus: Bus, run: Run, env: Mapping[str, str]) -> dict[str, str]:
    """What of the run's environment the server must have, for CLIs that strip it."""
    ours = {name: value for name, value in env.items() if name.startswith("AGENT_BUS_")}
    return {**ours, "PYTHONUTF8": "1"}


def _hook(bus: Bus, agent: Launchable, run: Run) -> str:
    """The settings file with our Stop hook, "" for a CLI that takes none."""
    if not bus.settings.launcher.hook or "--settings" not in agent.launcher.optional_flags:
        return ""
    path = runs.file(bus, run, "settings.json")
    workfiles.write({path: hook_settings.stop_hook((*our_program(_HOOK), "stop"), _WINDOWS)})
    return str(path)


def _limit(task: Task) -> float:
    value = task.limits.get("runtime_s", 0)
    return float(value) if isinstance(value, int | float) else 0.0


def _runtimes(bus: Bus) -> tuple[int, int]:
    return bus.settings.launcher.runtime_s, bus.settings.launcher.runtime_max_s
