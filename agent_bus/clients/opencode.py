"""opencode. Its entry has the program and the arguments in one array, and unknown keys are rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_bus.clients import JSONC, Client, Home, Limits, Server, Signs

_NEW = ("mcp", "servers")


@dataclass(frozen=True)
class OpenCode(Client):
    """Two layouts of the document, and two spellings of its name."""

    def user_path(self, home: Home) -> Path:
        """`opencode.json`, or `.jsonc` if only that is there, in XDG_CONFIG_HOME or `~/.config`."""
        return _either(home.moved("XDG_CONFIG_HOME", ".config") / "opencode" / "opencode.json")

    def project_path(self, project: Path) -> Path:
        """As the user's, in the project."""
        return _either(project / self.project_file)

    def place(self, document: Any) -> tuple[str, ...]:
        """`mcp.servers` in a document that has that, else `mcp`."""
        servers = document.get("mcp") if isinstance(document, dict) else None
        return _NEW if isinstance(servers, dict) and _is_map(servers.get("servers")) else self.servers

    def entry(self, server: Server, place: Sequence[str]) -> dict[str, Any]:
        """One array for the program; `disabled` and two time-outs in the new layout."""
        new = tuple(place) == _NEW
        kind: dict[str, Any] = {"type": "local", "command": [server.command, *server.args], "environment": {}}
        if server.url:
            kind = {"type": "remote", "url": server.url, **self.header(server)}
        if new:
            return {**kind, "disabled": False, "timeout": {"startup": 30_000, "request": 120_000}}
        return {**kind, "enabled": True, "timeout": 120_000}

    def started(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The array."""
        command = entry.get("command")
        return tuple(str(word) for word in command) if isinstance(command, list) else ()


def _is_map(found: Any) -> bool:
    """Whether `servers` is a map of servers, and not a server of that name."""
    return isinstance(found, dict) and not {"type", "command", "url"} & found.keys()


def _either(path: Path) -> Path:
    other = path.with_suffix(".jsonc")
    return other if other.is_file() and not path.is_file() else path


CLIENT = OpenCode(
    name="opencode",
    title="opencode",
    project_file="opencode.json",
    format=JSONC,
    servers=("mcp",),
    token_reference="{{env:{}}}",
    signs=Signs(("opencode",), (".config/opencode",)),
    limits=Limits(timeout_key="timeout", default_timeout_s=30, notes=("approve_advice",)),
)
