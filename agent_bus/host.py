"""This machine and its processes: who runs here, since when, and whether somebody is still alive.

A process is named by host id, boot id, PID namespace, pid and the kernel's own start stamp; only if all of them can be
compared exactly may a process be called dead (docs/protocol.md "Leases"). What cannot be read counts as alive.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import platformdirs

ALIVE, DEAD, UNKNOWN = "alive", "dead", "unknown"


@dataclass(frozen=True)
class ProcessId:
    """A process for as long as its host keeps its boot: compared field by field, never by pid alone."""

    host: str
    boot: str
    pid_ns: str
    pid: int
    pid_started: str


def state_folder() -> Path:
    """The user's state folder of agent-bus (AGENT_BUS_STATE_HOME moves it): host id, tokens; never in the vault."""
    override = os.environ.get("AGENT_BUS_STATE_HOME", "")
    return Path(override) if override else Path(platformdirs.user_state_dir("agent-bus", appauthor=False))


def host_id() -> str:
    """This host's random id, made once and kept in the user's state folder.

    Raises:
        OSError: if it is neither there nor can be written.
    """
    return _host_id(state_folder())


@cache
def _host_id(folder: Path) -> str:
    path = folder / "host-id"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return _make_host_id(path)


def _make_host_id(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"host-id.{os.getpid()}.{secrets.token_hex(4)}")
    fresh.write_text(f"h-{secrets.token_hex(8)}\n", encoding="ascii")
    try:
        os.link(fresh, path)  # two first starts at once: one wins, both read the winner
    except FileExistsError:
        pass
    except OSError:
        if not path.exists():
            os.replace(fresh, path)
    fresh.unlink(missing_ok=True)
    return path.read_text(encoding="ascii").strip()


@cache
def boot_id() -> str:
    """An id of this boot of the kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import psutil  # not on Linux: loaded where it is needed, as every CLI verb would pay for it

        return f"boot-{int(psutil.boot_time())}"


@cache
def pid_namespace() -> str:
    """The PID namespace of this process, "" where there are none."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def start_stamp(pid: int) -> str:
    """The kernel's own start stamp of a process: clock ticks since boot on Linux, seconds elsewhere.

    Raises:
        ProcessLookupError: there is no such process, or it is a zombie.
        PermissionError: it exists but cannot be read.
    """
    if sys.platform == "linux":
        return _linux_start(pid)
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise ProcessLookupError(pid)
        return repr(process.create_time())
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(pid) from error
    except psutil.AccessDenied as error:
        raise PermissionError(pid) from error


def _linux_start(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    fields = stat.rpartition(")")[2].split()  # the command name may hold spaces and brackets
    if fields[0] in "ZX":
        raise ProcessLookupError(pid)
    return fields[19]


def this_process() -> ProcessId:
    """The identity of the calling process."""
    return _identity(os.getpid())


@cache
def _identity(pid: int) -> ProcessId:
    return ProcessId(host_id(), boot_id(), pid_namespace(), pid, start_stamp(pid))


def liveness(process: ProcessId) -> str:
    """`alive`, `dead` or `unknown` (another host, boot record or namespace: only time can tell).

    A process of an earlier boot of this host is dead. pid 0 stands for a caller without a process.
    """
    here = this_process()
    if process.pid == 0:
        return UNKNOWN
    if process.boot != here.boot:
        return DEAD if process.host == here.host else UNKNOWN
    if process.pid_ns != here.pid_ns:
        return UNKNOWN
    try:
        return ALIVE if start_stamp(process.pid) == process.pid_started else DEAD
    except ProcessLookupError:
        return DEAD
    except OSError:
        return ALIVE


def set_above(variable: str) -> str:
    """An environment variable of the nearest process above this one that has it; "" if none has, or may be read."""
    import psutil

    for process in psutil.Process().parents():
        with suppress(psutil.Error, OSError):
            if found := process.environ().get(variable, ""):
                return found
    return ""


def as_record(process: ProcessId) -> dict[str, str | int]:
    """The identity as it stands in documents."""
    return asdict(process)
