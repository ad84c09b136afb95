"""Launchers: how each coding CLI is started for a task, and how its end is read. One file a CLI; this is their shape.

A launcher knows flags and output formats, and nothing of tasks, leases or documents: it turns a `Start` into a
`Command`, and the bytes of a finished run into `Evidence`. What the end means for the task is decided elsewhere
(domain/run.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from agent_bus.errors import BusError

Permission = Literal["read", "edit", "full"]
LaunchFault = Literal["not_found", "too_old", "config", "spawn"]
Failure = Literal[
    "", "login", "quota", "not_approved", "session_in_use", "session_unknown", "unknown_option", "config", "nested"
]


_CODES: dict[LaunchFault, str] = {
    "not_found": "not_found",
    "too_old": "refused",
    "config": "invalid",
    "spawn": "unavailable",
}


class LaunchError(BusError):
    """Why a run cannot be started at all (docs/launcher.md "Outcomes"); `kind` is the outcome's second word."""

    def __init__(self, kind: LaunchFault, message: str, hint: str = "") -> None:
        super().__init__(_CODES[kind], message, hint)
        self.kind: LaunchFault = kind


@dataclass(frozen=True)
class Start:
    """What a run is to be started with; every value is checked by us before it comes here.

    Args:
        agent, run_id: who runs, and the run's id (`r-<task_id>-<n>`).
        executable: absolute path, with fixed first arguments (`node script.js`).
        work_dir: the run's working folder.
        permission: what the run may do (docs/launcher.md "Permission").
        session_id: the session to use; "" = a CLI that names its own.
        resume: whether that session is to be gone on with.
        model, args, allowed_tools: from the agent's settings.
        prompt_file: the file that holds the prompt.
        server: argv of our MCP server for this run, [] if the user's own installation is used (`mcp = "client"`).
        server_env: environment for that server (CLIs that strip it get it in the entry).
        settings_file: a settings file of ours for the CLI (Claude Code's Stop hook), "" without one.
        runtime_s: the hard end of the run.
        budget_usd: what may still be spent, 0 = no limit.
        flags: optional flags that the executable is known to take.
    """

    agent: str
    run_id: str
    executable: tuple[str, ...]
    work_dir: Path
    permission: Permission
    session_id: str
    resume: bool
    prompt_file: Path
    run_folder: Path
    model: str = ""
    args: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    server_env: Mapping[str, str] = field(default_factory=dict)
    settings_file: str = ""
    runtime_s: int = 7200
    budget_usd: float = 0.0
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Command:
    """What is started.

    Args:
        argv: the executable and its arguments.
        stdin_prompt: whether standard input is the prompt file.
        files: to be written first (`workfiles.write`), path → text, mode 0600.
        env: variables of the CLI that are set besides the run's (never from a task's text).
    """

    argv: tuple[str, ...]
    stdin_prompt: bool = True
    files: Mapping[Path, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """What the output of a run says; hints only, a report on the bus outweighs all of it.

    Args:
        finished: the CLI said that its turn is over.
        until: when a quota ends, seconds since the epoch, 0 = not named.
        detail: at most 300 characters of the words that `failure` was read from.
        session_totals: which of `cost_usd` and `tokens` count the whole session, earlier runs of it included.
    """

    session_id: str = ""
    finished: bool = False
    failed: bool = False
    failure: Failure = ""
    until: float = 0.0
    detail: str = ""
    option: str = ""
    cost_usd: float | None = None
    tokens: int | None = None
    turns: int | None = None
    denials: tuple[str, ...] = ()
    session_totals: tuple[str, ...] = ()


class Launcher(Protocol):
    """One CLI. A module `launchers/x.py` (or an entry point of group `agent_bus.launchers`) offers `LAUNCHER`."""

    name: str
    executables: tuple[str, ...]
    """Names looked for, in order; also the npm package beside a Windows shim (`npm_package`)."""
    npm_package: str
    env_prefixes: tuple[str, ...]
    """Variables of the daemon's environment that are let through."""
    permissions: tuple[Permission, ...]
    """The levels that the CLI can keep."""
    mints_session: bool
    """Whether the CLI takes a session id of ours (else it names its own in its first events)."""
    optional_flags: frozenset[str]
    """Flags that are passed only if the probe has seen them."""
    required_flags: frozenset[str]
    help_words: tuple[str, ...]
    """Words before `--help` that make the CLI show the flags of the way we use it (`exec`)."""

    def command(self, start: Start) -> Command:
        """What to start. Raises BusError `refused` for a permission it cannot keep."""

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the (cut) output of a run says; never raises, whatever the bytes are.

        Args:
            exit_code: -1 = not known, or the run still lives.
            signal: what ended it, 0 = nothing.
            now: seconds since the epoch, for "resets 3pm"; 0 = the system's clock.
        """

    def session_in(self, output: bytes) -> str:
        """The session id in the first events of a running one, "" if none has come yet."""
