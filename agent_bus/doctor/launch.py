"""Agents that the bus starts: their settings, their programs, their logins. No model is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from agent_bus.bus import Bus
from agent_bus.doctor import Finding, fail, good, warn
from agent_bus.doctor.ground import Ground
from agent_bus.errors import BusError
from agent_bus.launchers import capabilities
from agent_bus.launchers.environment import child_environment
from agent_bus.operations import launchable, parking
from agent_bus.operations.launchable import Launchable

_LOGIN = {"codex": ("login", "status")}
"""What tells of a login by its exit code, without a model and without a question to a person."""


def look(ground: Ground, name: str) -> Iterator[Finding]:
    """All checks of one agent."""
    bus = ground.bus
    assert bus is not None
    yield _parked(bus, name)
    try:
        agent = launchable.check(bus, name)
    except BusError as error:
        yield fail("launch.settings", "wrong", agent=name, reason=error.message, fix=error.hint)
        return
    yield good("launch.settings", f"{name}: {agent.settings.work_dir}")
    yield from _program(ground, agent)


def _parked(bus: Bus, name: str) -> Finding:
    found = parking.of_agent(bus, name)
    if not found:
        return good("launch.parked", name)
    why = f"{found.get('reason')}: {found.get('evidence')}".rstrip(": ")
    return warn("launch.parked", "parked", agent=name, until=found.get("until") or "–", reason=why)


def _program(ground: Ground, agent: Launchable) -> Iterator[Finding]:
    env = child_environment(
        os.environ, prefixes=agent.launcher.env_prefixes, env_pass=agent.settings.env_pass, env=agent.settings.env,
        windows=sys.platform == "win32",
    )  # fmt: skip
    left = ground.deadline.left(ground.patience_s) / 3
    try:
        found, _ = capabilities.ask(agent.executable, agent.launcher, env, left)
        capabilities.check_required(found, agent.launcher, agent.executable)
    except BusError as error:
        yield fail("launch.program", "unusable", agent=agent.name, reason=error.message, fix=error.hint)
        return
    yield good("launch.program", f"{agent.name}: {agent.executable[0]} {found.version}".rstrip())
    if words := _LOGIN.get(agent.launcher.name):
        code, _ = capabilities.run_briefly((*agent.executable, *words), env=env, timeout_s=left)
        told = {"agent": agent.name, "command": " ".join((agent.executable[0], words[0]))}
        yield good("launch.login", agent.name) if code == 0 else warn("launch.login", "out", **told)
