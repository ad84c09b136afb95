"""What lies under the bus folder: programs that synchronise it, its file system, and whether locks hold there."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psutil

from agent_bus.doctor import Finding, fail, good, info, warn
from agent_bus.doctor.ground import Ground
from agent_bus.doctor.running import Deadline
from agent_bus.jobs.launch_ready import our_program
from agent_bus.store.locks import Locks

LOCK = "doctor"
FOLDERS = {
    "Dropbox": re.compile(r"Dropbox(?: \(.+\))?$"),
    "OneDrive": re.compile(r"OneDrive(?: - .+|-.+)?$"),
    "iCloud": re.compile(r"(?:Mobile Documents|iCloud ?Drive|com~apple~CloudDocs)$"),
    "Google Drive": re.compile(r"(?:Google ?Drive(?:-.+)?|My Drive)$"),
    "Nextcloud": re.compile(r"(?:Nextcloud|ownCloud)\d*$"),
}
"""How the folders of services are called; on macOS newer ones lie in Library/CloudStorage under these names."""
MARKS = {".stfolder": "Syncthing", ".dropbox": "Dropbox", ".dropbox.cache": "Dropbox", ".sync.ffs_db": "FreeFileSync"}
_MARK_PATTERNS = ((".sync_*.db", "Nextcloud"), ("._sync_*.db", "Nextcloud"))
CONFLICT = re.compile(
    r"\.sync-conflict-\d{8}|conflicted copy|\(case conflict|\bconflict-\d{8}|競合コピー"
    r"|-(?:DESKTOP|LAPTOP)-\w+\.\w+$| \(\d+\)\.(?:json|md)$| - Copy(?: \(\d+\))?\.\w+$",
    re.IGNORECASE,
)
_NETWORK = {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "webdav", "davfs", "fuse.davfs", "9p",
            "ceph", "fuse.sshfs", "fuse.rclone", "fuse.gvfsd-fuse", "glusterfs", "fuse.glusterfs", "afs"}  # fmt: skip
MOST_FILES = 50_000


def look(ground: Ground) -> Iterator[Finding]:
    """Everything that may disturb the folder; a good finding if nothing does."""
    assert ground.layout is not None
    root, state = ground.layout.root, ground.layout.state
    found = [*_services(root), *_conflicts(root), *_network(root), *_names(state), *_locks(state, ground.deadline)]
    yield from found or [good("root.sync")]


def service_of(root: Path) -> str:
    """The service whose folder holds this one, by names and marks; "" for none."""
    for folder in (root, *root.parents):
        for service, name in FOLDERS.items():
            if name.match(folder.name):
                return service
        for mark, service in MARKS.items():
            if folder != Path.home() and (folder / mark).exists():
                return service
        for pattern, service in _MARK_PATTERNS:
            if any(folder.glob(pattern)):
                return service
    return ""


def _services(root: Path) -> Iterator[Finding]:
    if service := service_of(root):
        yield warn("root.sync", "service", service=service, root=root)
    holder = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if holder is not None:
        yield info("root.sync", "git", folder=holder)


def _conflicts(root: Path) -> Iterator[Finding]:
    files = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
    copies = [path for path in islice(files, MOST_FILES) if CONFLICT.search(path.name)]
    if copies:
        yield warn("root.sync", "conflicts", count=len(copies), first=copies[0].relative_to(root).as_posix())


def _network(root: Path) -> Iterator[Finding]:
    kind = file_system(root)
    if kind.lower() in _NETWORK or str(root).startswith("\\\\"):
        yield warn("root.sync", "network", kind=kind or "UNC")


def file_system(root: Path) -> str:
    """The kind of file system that holds a folder, "" if the system does not tell."""
    mounts = [part for part in psutil.disk_partitions(all=True) if root.is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else ""


def _names(state: Path) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=state / "tmp") as folder:
        if os.path.exists(folder.replace("doctor-", "DOCTOR-")):
            yield info("root.sync", "caseless")


def _locks(state: Path, deadline: Deadline) -> Iterator[Finding]:
    """Two processes: what this one holds, the other one must not get; what this one has freed, it must."""
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=state / "tmp") as folder:
        locks = Locks(folder)
        with locks.hold(LOCK):
            held = _other(folder, deadline)
        freed = _other(folder, deadline)
        locks.close()
    if held == 0:
        yield fail("root.sync", "unlocked")
    elif freed != 0 or held != 1:
        yield fail("root.sync", "stuck", code=held if held != 1 else freed)


def _other(folder: str, deadline: Deadline) -> int:
    """The exit code of a process that tries the lock: 0 it got it, 1 it is taken."""
    words = [*our_program("agent_bus.doctor.locker"), folder, LOCK]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=deadline.left() + 0.1, check=False
        )
    except subprocess.TimeoutExpired:
        return -1
    return done.returncode
