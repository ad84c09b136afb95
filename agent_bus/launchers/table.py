"""The process table at one moment: every living process but this one, with what tells whose it is."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from agent_bus.launchers.environment import RUN_ID
from agent_bus.times import parse_stamp

SAME_START_S = 1.0
"""Start times are written in milliseconds, and computed from a boot time that may be set meanwhile."""
NO_GROUP = -1
if sys.platform == "win32":
    TERM, KILL = signal.CTRL_BREAK_EVENT, signal.SIGTERM
else:
    TERM, KILL = signal.SIGTERM, signal.SIGKILL
_GONE = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
_HALTED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


@dataclass(frozen=True)
class Seen:
    """A process at one look."""

    process: psutil.Process
    parent: int
    group: int
    marker: str


def look() -> dict[int, Seen]:
    """Every living process but this one."""
    seen = {}
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):
            found = psutil.Process(pid)
            if pid not in (0, os.getpid()) and lives(found):
                seen[pid] = Seen(found, found.ppid(), _group(pid), marker(found))
    return seen


def marker(found: psutil.Process) -> str:
    """The run id in a process's environment, if it is this user's and can be read."""
    try:
        if sys.platform != "win32" and found.uids().real != os.getuid():
            return ""
        return found.environ().get(RUN_ID, "")
    except (psutil.Error, OSError):
        return ""


def _group(pid: int) -> int:
    """Its process group; 0 would be one whose leader lives in another PID namespace, and to killpg the caller's own."""
    return (os.getpgid(pid) or NO_GROUP) if sys.platform != "win32" else NO_GROUP


def started_then(found: psutil.Process, pid_started: str) -> bool:
    """Whether it started when a document says (± 1 s). Raises psutil.Error if it is gone."""
    try:
        started = datetime.fromtimestamp(found.create_time(), UTC)
        return abs((started - parse_stamp(pid_started)).total_seconds()) <= SAME_START_S
    except ValueError:
        return False


def lives(found: psutil.Process) -> bool:
    """Whether it is there, is not a zombie, and its pid has not been given anew."""
    try:
        return found.is_running() and found.status() not in _GONE
    except psutil.Error:
        return False


def descend(ours: set[int], seen: dict[int, Seen]) -> dict[int, int]:
    """The processes and their descendants, each with its depth below the first of ours."""
    children: dict[int, list[int]] = {}
    for pid, one in seen.items():
        children.setdefault(one.parent, []).append(pid)
    depths: dict[int, int] = {}
    row, depth = {pid for pid in ours if seen[pid].parent not in ours}, 0
    while row:
        depths |= dict.fromkeys(row, depth)
        row = {child for pid in row for child in children.get(pid, []) if child not in depths}
        depth += 1
    return depths


def send(member: psutil.Process, number: signal.Signals) -> str:
    """Sends a signal to exactly that process; "" or why not (psutil looks whether the pid was given anew)."""
    try:
        member.send_signal(number)
    except psutil.NoSuchProcess:
        return ""
    except (psutil.AccessDenied, OSError) as error:
        return f"may not be signalled: {error}"
    return ""


def is_halted(member: psutil.Process) -> bool:
    """Whether it is stopped."""
    with suppress(psutil.Error):
        return member.status() in _HALTED
    return False


def cpu_s(found: psutil.Process) -> float:
    """Its processor seconds so far, 0 if it is gone."""
    with suppress(psutil.Error):
        times = found.cpu_times()
        return float(times.user + times.system)
    return 0.0
