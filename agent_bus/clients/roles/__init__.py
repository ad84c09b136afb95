"""Role files: what tells an agent how to behave on the bus, in the form and at the place that its client reads.

One neutral text each lies in `texts/`, in English and Japanese; `render` gives it a client's form, `places` says where
it goes, `block` puts one into a file of the user, `known` tells an edited text from one of ours. Nothing here writes.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_bus.clients import PARTS, PROJECT, SCOPES, USER, Client, Home, base_name
from agent_bus.clients.registry import load
from agent_bus.clients.roles import render
from agent_bus.clients.roles.places import PLACES, Place
from agent_bus.errors import invalid
from agent_bus.stop_hook import stop_group

FILE, BLOCK, HOOK = "file", "block", "hook"


@dataclass(frozen=True)
class RoleFile:
    """One text at its place.

    Args:
        path: the file, absolute.
        kind: FILE (a whole file of ours), BLOCK (our block in a file of the user) or HOOK (the Stop hook in settings).
        text: the whole file, or the block with both marks and no final newline; "" for a hook (see `hook_entry`).
    """

    path: Path
    kind: str
    text: str


def wanted(
    client: str, scope: str, home: Home, project: Path | None, parts: Collection[str], role: str, language: str
) -> list[RoleFile]:
    """What a client gets; nothing for a part that it has no place for in this scope.

    Args:
        client: its name on our command line.
        scope: `user` or `project`.
        home: whose files.
        project: the project's folder, for that scope.
        parts: some of `agent_bus.clients.PARTS`; those that are no files of ours give nothing.
        role: one of `render.ROLES`, or "" for all that fit.
        language: one of `render.LANGUAGES`.

    Raises:
        BusError: `invalid` for an unknown client, scope, part, role or language, or if the project is missing.
    """
    found = load(client)
    _check("--with", parts, PARTS)
    _check("--scope", [scope], SCOPES)
    _check("--role", [role] if role else [], render.ROLES)
    _check("--lang", [language], render.LANGUAGES)
    if scope == PROJECT and project is None:
        raise invalid("--project", "is needed for scope project", "Name the project's folder.")
    return [
        file
        for place in PLACES.get(client, ())
        if place.part in parts
        for file in _at(place, _base(found, scope, home, project, place), scope, role, language)
    ]


def _check(name: str, given: Collection[str], known: Collection[str]) -> None:
    strange = next((word for word in given if word not in known), None)
    if strange is not None:
        raise invalid(name, f"does not know {strange[:40]!a}", f"Known are {', '.join(known)}.")


def _base(client: Client, scope: str, home: Home, project: Path | None, place: Place) -> Path | None:
    """The folder that a place's path begins in; None if the client is not made for this system."""
    if scope == PROJECT:
        return project
    if place.below_home:
        return home.folder
    if client.name == "claude-code":  # its servers' file lies beside this folder, not in it
        return home.moved("CLAUDE_CONFIG_DIR", ".claude")
    servers = client.user_path(home)
    return servers.parent if servers else None


def _at(place: Place, base: Path | None, scope: str, role: str, language: str) -> Iterator[RoleFile]:
    path = place.user if scope == USER else place.project
    if path and base is not None:
        for name, text in render.texts(place.form, role, language):
            whole = path.format(name=name, short=name.removeprefix("bus-"))
            yield RoleFile(base.joinpath(*whole.split("/")), _KINDS.get(place.form, FILE), text)


_KINDS = {"block": BLOCK, "hook": HOOK}


def hook_entry(executable: str, windows: bool = sys.platform == "win32") -> dict[str, Any]:
    """The member that `hooks.Stop` of a Claude Code settings file gets.

    Args:
        executable: the absolute path of `agent-bus`.
        windows: whether Claude Code's shell is Git Bash.
    """
    return stop_group((executable, "hook", "stop"), windows)


def is_our_hook(member: Any) -> bool:
    """Whether a member of `hooks.Stop` is ours: one command, `agent-bus hook stop` of any installation."""
    hooks = member.get("hooks") if isinstance(member, dict) else None
    if not isinstance(hooks, list) or len(hooks) != 1 or not isinstance(hooks[0], dict):
        return False
    try:
        words = shlex.split(str(hooks[0].get("command", "")))
    except ValueError:
        return False
    return words[1:] == ["hook", "stop"] and base_name(words[0]) == "agent-bus"
