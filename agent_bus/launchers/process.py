"""Starting one process for a run: its own session, a log instead of pipes, the prompt file as its standard input.

Nothing here waits for the process. Its end is seen by `Child.poll`, and by `trees.Tree` for whatever it has started.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from agent_bus.launchers import LaunchError, windows
from agent_bus.launchers.environment import RUN_ID
from agent_bus.times import stamp

_CHILDREN: dict[tuple[int, str], subprocess.Popen[bytes]] = {}
"""By pid and start time. Held until they are reaped: a run outlives whoever looked at it last."""


@dataclass(frozen=True)
class Child:
    """A process that we started; `pid_started` as it stands in the run document (UTC, milliseconds)."""

    pid: int
    pid_started: str

    def poll(self) -> tuple[int, int] | None:
        """(exit code, signal) once it has ended, and reaps it; None while it runs.

        A process that a signal ended has the shell's exit code, 128 + signal. Asked again, the answer is the same.
        """
        return exit_status(self.pid, self.pid_started)


def spawn(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: Path | None, log: Path) -> Child:
    """Starts a process of its own session; standard output and error are appended to the log.

    Args:
        argv: the executable (absolute) and its arguments; never a shell string.
        cwd: the work folder.
        env: the whole environment; AGENT_BUS_RUN_ID in it is the marker by which the tree is found again.
        stdin: a file that is opened read-only, None = nothing to read.
        log: made with mode 0600 if it is not there.

    Raises:
        LaunchError: `spawn` in the system's words, if it cannot be started.
    """
    with suppress(FileExistsError):
        log.parent.mkdir(parents=True, mode=0o700)
    try:
        with open(stdin or os.devnull, "rb") as source, open(log, "ab", opener=_private) as sink:
            started = _start(argv, cwd, env, source.fileno(), sink.fileno())
    except (OSError, ValueError) as error:
        raise LaunchError("spawn", f"{argv[0]} could not be started: {error}.") from error
    child = Child(started.pid, started_at(started.pid))
    _CHILDREN[child.pid, child.pid_started] = started
    return child


def started_at(pid: int) -> str:
    """When a process started, as it stands in run documents; "" if there is none."""
    try:
        return stamp(datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC))
    except psutil.Error:
        return ""


def exit_status(pid: int, pid_started: str) -> tuple[int, int] | None:
    """`Child.poll` of a run document's process: None too for one that this process has not started."""
    child = _CHILDREN.get((pid, pid_started))
    code = child.poll() if child else None
    if code is None:
        return None
    return (128 - code, -code) if code < 0 else (code, 0)


def is_ours(pid: int, pid_started: str) -> bool:
    """Whether this process is its parent, so that `exit_status` will know its end."""
    return (pid, pid_started) in _CHILDREN


def forget(pid: int, pid_started: str) -> None:
    """Lets go of a child whose end has been recorded; one that still runs stays."""
    if exit_status(pid, pid_started) is not None:
        _CHILDREN.pop((pid, pid_started), None)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], source: int, sink: int) -> subprocess.Popen[bytes]:
    common: dict[str, Any] = {"cwd": cwd, "env": dict(env), "stdin": source, "stdout": sink, "stderr": sink}
    if sys.platform == "win32":
        return windows.start(windows.command_line(argv), env.get(RUN_ID, ""), **common)
    child: subprocess.Popen[bytes] = subprocess.Popen(list(argv), start_new_session=True, close_fds=True, **common)
    return child
