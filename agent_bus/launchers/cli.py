"""What most CLIs have in common: the defaults of `Launcher`, and small pieces of argv."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_bus.errors import BusError
from agent_bus.launchers import Permission, Start, events

SERVER = "bus"
"""The name under which a run knows our MCP server."""
CALL_MS = 120_000
FIRST_BYTES = 1024 * 1024
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Cli:
    """The defaults; a launcher overrides what its CLI does otherwise, and adds `command` and `read`."""

    name: str = ""
    executables: tuple[str, ...] = ()
    npm_package: str = ""
    env_prefixes: tuple[str, ...] = ()
    permissions: tuple[Permission, ...] = ("read", "edit", "full")
    mints_session: bool = False
    optional_flags: frozenset[str] = frozenset()
    required_flags: frozenset[str] = frozenset()
    help_words: tuple[str, ...] = ()
    session_keys: tuple[str, ...] = ("session_id",)
    """The keys of an event under which a session id stands."""

    def session_in(self, output: bytes) -> str:
        """The session id in the first events of a running CLI, "" if none has come yet."""
        for line in events.lines(output[:FIRST_BYTES]):
            for event in events.parse(line) or ():
                found = next((s for key in self.session_keys if (s := session_id(event.get(key)))), "")
                if found:
                    return found
        return ""

    def keep_level(self, start: Start) -> None:
        """Raises BusError `refused` if the CLI cannot keep the permission level that is asked for."""
        if start.permission not in self.permissions:
            good = " or ".join(self.permissions)
            only = f"only {good} is possible" if len(self.permissions) == 1 else f"use {good}"
            raise BusError(
                "refused",
                f"{self.name} has no {start.permission} level; {only}.",
                f'Write permission = "{self.permissions[0]}" under [agents.{start.agent}] in bus.toml.',
            )


def session_id(value: Any) -> str:
    """A session id that may stand in argv and in documents, "" for anything else."""
    return value if isinstance(value, str) and _SESSION.fullmatch(value) else ""


def known(start: Start, flag: str, *values: str) -> tuple[str, ...]:
    """An optional flag with its values, if the executable takes it."""
    return (flag, *values) if flag in start.flags else ()


def model(start: Start, flag: str = "--model") -> tuple[str, ...]:
    """The flag of the agent's model, if the settings name one."""
    return (flag, start.model) if start.model else ()


def beside_prompt(start: Start, suffix: str) -> Path:
    """A file of this run: `.bus/runs/<task_id>/<n><suffix>`."""
    return start.prompt_file.with_suffix(suffix)


def server_file(start: Start, **more: Any) -> dict[Path, str]:
    """Our MCP server as a file of the form `mcpServers`, {} if the user's own installation is used."""
    if not start.server:
        return {}
    entry: dict[str, Any] = {"type": "stdio", "command": start.server[0], "args": list(start.server[1:])}
    entry |= {"env": dict(start.server_env), "timeout": CALL_MS, **more}
    text = json.dumps({"mcpServers": {SERVER: entry}}, indent=2, ensure_ascii=False)
    return {beside_prompt(start, ".mcp.json"): f"{text}\n"}


def texts(value: Any) -> Sequence[str]:
    """The texts of an error as CLIs write it: a text, an object with `message`, or a list of these."""
    if isinstance(value, list):
        return [text for one in value[:20] for text in texts(one)]
    if isinstance(value, dict):
        inner = next((value[key] for key in ("message", "data", "error") if value.get(key)), "")
        name = events.text(value.get("name")) or events.text(value.get("type"))
        return [f"{name}: {text}" if name else text for text in texts(inner)]
    found = events.text(value)
    return [found] if found else []
