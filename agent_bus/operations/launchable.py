"""Which agents can be launched: their settings, their account, and in words why one cannot be."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain.task import Task
from agent_bus.errors import BusError
from agent_bus.settings_launch import AgentSettings, folder_fault

if TYPE_CHECKING:
    from agent_bus.launchers import Launcher

_CONFIG_FOLDERS = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "CURSOR_CONFIG_DIR",
    "KIMI_SHARE_DIR",
    "QWEN_HOME",
    "GEMINI_CLI_HOME",
)
"""Variables with which CLIs are told where their settings, logins and sessions lie."""


@dataclass(frozen=True)
class Launchable:
    """An agent that can be launched: its settings, its adapter and its executable with fixed first arguments."""

    name: str
    settings: AgentSettings
    launcher: Launcher
    executable: tuple[str, ...]

    @property
    def account(self) -> str:
        """Whose quota and login it uses."""
        return account_of(self.name, self.settings)

    @property
    def inboxes(self) -> list[str]:
        """Its own inbox first, then its pools."""
        return [self.name, *self.settings.pools]


def account_of(name: str, agent: AgentSettings) -> str:
    """The setting `account`, else the launcher and its configuration folder; a `command` has none but its own."""
    if agent.account or agent.launcher == "command":
        return agent.account or f"command {name}"
    return f"{agent.launcher} {config_folder(agent)}".strip()


def config_folder(agent: AgentSettings, environ: Mapping[str, str] | None = None) -> str:
    """The configuration folder that the agent's CLI is pointed to, "" = its usual one."""
    daemon = os.environ if environ is None else environ
    found = (agent.env.get(n) or daemon.get(n, "") for n in _CONFIG_FOLDERS if _is_for(n, agent.launcher))
    return next((f for f in found if f), "")


def _is_for(variable: str, launcher: str) -> bool:
    return variable.lower().startswith(launcher)


def names(bus: Bus) -> list[str]:
    """The agents with a launcher, in the order of the settings."""
    return [n for n, a in bus.settings.agents.items() if a.launcher]


def for_inbox(bus: Bus, inbox: str) -> list[str]:
    """The agents with a launcher that work for an inbox: its own first, then those that have it as a pool."""
    own = [n for n in names(bus) if ids.same_name(n, inbox)]
    return own + [n for n in names(bus) if n not in own and _pools(bus, n, inbox)]


def _pools(bus: Bus, name: str, inbox: str) -> bool:
    return any(ids.same_name(p, inbox) for p in bus.settings.agents[name].pools)


def check(bus: Bus, name: str) -> Launchable:
    """An agent that can be launched, as far as settings and files tell; no program is started.

    Raises:
        BusError: `refused`, `invalid` or `not_found`, naming the setting.
    """
    from agent_bus.launchers import executable, registry  # only where an agent has a launcher

    agent = bus.settings.agents[name]
    where = f"agents.{name}"
    for key, folder in [("work_dir", agent.work_dir), *(("work_dirs", d) for d in agent.work_dirs)]:
        if fault := folder_fault(key, folder, bus.settings.root):
            raise BusError("refused", f"{where}: {fault}.", f"Write it in {source(bus)}.")
    launcher = registry.load(agent.launcher)
    if agent.permission not in launcher.permissions:
        can = " or ".join(launcher.permissions)
        words = f"{where}: {agent.launcher} has no {agent.permission} level"
        line = f'Write permission = "{launcher.permissions[-1]}" in {source(bus)}.'
        only = f"only {can} is possible" if len(launcher.permissions) == 1 else f"use {can}"
        raise BusError("refused", f"{words}; {only}.", line)
    found = executable.resolve(launcher, agent.command, name)
    return Launchable(name, agent, launcher, found)


def source(bus: Bus) -> str:
    """The settings file, for hints."""
    return bus.settings.source or "bus.toml"


def problems(bus: Bus) -> Iterator[str]:
    """Why agents with a launcher cannot be launched, for system_health; work folders are named with the settings."""
    for name in names(bus):
        agent = bus.settings.agents[name]
        if folder_fault("work_dir", agent.work_dir, bus.settings.root):
            continue
        try:
            check(bus, name)
        except BusError as error:
            yield f"{error.message} {error.hint}"


def work_dir(bus: Bus, agent: AgentSettings, task: Task) -> Path:
    """The folder of a task's run: `context.work_dir` if the agent's `work_dirs` allow it, else the agent's own.

    Raises:
        BusError: `refused` for a folder that is not allowed.
    """
    context = task.context if isinstance(task.context, dict) else {}
    asked = context.get("work_dir")
    own = Path(agent.work_dir)
    if not isinstance(asked, str) or not asked:
        return own
    real = Path(asked).resolve() if Path(asked).is_absolute() else None
    allowed = [Path(d).resolve() for d in (agent.work_dir, *agent.work_dirs)]
    if real is None or not real.is_dir() or not any(real == a or a in real.parents for a in allowed):
        rule = f"context.work_dir {asked[:200]!r} is none of the folders that the agent may work in"
        raise BusError("refused", f"{rule}.", "A person adds it to work_dirs in the settings file.")
    return real
