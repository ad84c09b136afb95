"""What differs on Windows: command lines for `.cmd` shims, and job objects, which end a run's tree with its daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from agent_bus.launchers import LaunchError

FORBIDDEN = frozenset('&<>^%!"|\r\n')
"""What cmd.exe would read as its own (docs/launcher.md "Programs")."""
_SHELL = ("/d", "/s", "/c")


def shim_prefix(shell: str, shim: str) -> tuple[str, ...]:
    """The argv prefix that starts a `.cmd` file."""
    return (shell, *_SHELL, shim)


def command_line(argv: Sequence[str]) -> str:
    """The command line of a process on Windows.

    For `cmd.exe /d /s /c` the rest stands in one pair of quotes, which /s takes off again.

    Raises:
        LaunchError: `config` for a word that cmd.exe would not take as it is.
    """
    if tuple(argv[1:4]) != _SHELL or os.path.basename(argv[0].replace("\\", "/")).lower() != "cmd.exe":
        return subprocess.list2cmdline(argv)
    bad = next((word for word in argv[4:] if FORBIDDEN & set(word)), None)
    if bad is not None:
        raise LaunchError(
            "config",
            f"{bad[:60]!a} cannot be passed through a .cmd file safely.",
            'Name the program itself: command = ["C:/path/node.exe", "C:/path/cli.js"] in bus.toml.',
        )
    return f'{subprocess.list2cmdline(argv[:4])} "{subprocess.list2cmdline(argv[4:])}"'


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    import psutil

    CREATE_SUSPENDED = 0x4
    KILL_ON_JOB_CLOSE, EXTENDED_LIMITS, JOB_OBJECT_TERMINATE = 0x2000, 9, 0x8
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    for _name in ("CreateJobObjectW", "OpenJobObjectW"):
        getattr(_kernel, _name).restype = wintypes.HANDLE
    _kernel.CreateJobObjectW.argtypes = [ctypes.c_void_p, wintypes.LPCWSTR]
    _kernel.OpenJobObjectW.argtypes = [wintypes.DWORD, wintypes.BOOL, wintypes.LPCWSTR]
    _kernel.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
    _kernel.TerminateJobObject.argtypes = [wintypes.HANDLE, wintypes.UINT]
    _kernel.CloseHandle.argtypes = [wintypes.HANDLE]
    _kernel.SetInformationJobObject.argtypes = [wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD]
    _JOBS: dict[str, int] = {}

    class _Limits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION (winnt.h)."""

        _fields_ = (
            ("times", ctypes.c_int64 * 2),
            ("flags", wintypes.DWORD),
            ("sizes", ctypes.c_size_t * 2),
            ("active", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("classes", wintypes.DWORD * 2),
            ("io", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    def start(line: str, run_id: str, **common: Any) -> subprocess.Popen[bytes]:
        """Starts a process suspended, puts it into its job object, lets it go: no child of it can be born outside."""
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW | CREATE_SUSPENDED
        child = subprocess.Popen(line, creationflags=flags, close_fds=True, **common)
        job = _kernel.CreateJobObjectW(None, _job_name(run_id))
        limits = _Limits(flags=KILL_ON_JOB_CLOSE)
        _kernel.SetInformationJobObject(job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        _kernel.AssignProcessToJobObject(job, int(child._handle))  # type: ignore[attr-defined]
        _JOBS[run_id] = job
        psutil.Process(child.pid).resume()
        return child

    def end_job(run_id: str) -> None:
        """Ends whatever is in the run's job object, whoever made it."""
        job = _JOBS.pop(run_id, None) or _kernel.OpenJobObjectW(JOB_OBJECT_TERMINATE, False, _job_name(run_id))
        if job:
            _kernel.TerminateJobObject(job, 1)
            _kernel.CloseHandle(job)

    def _job_name(run_id: str) -> str:
        return f"Local\\agent-bus-{run_id}"

else:

    def start(line: str, run_id: str, **common: Any) -> subprocess.Popen[bytes]:
        """Windows only."""
        raise NotImplementedError

    def end_job(run_id: str) -> None:
        """Windows only: elsewhere there are no job objects."""
