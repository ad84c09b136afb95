"""The bus folder: what `init` makes, how it is recognised, and which host may write (docs/vault-format.md)."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeGuard

from pydantic_core import from_json, to_json

from agent_bus import host
from agent_bus.errors import BusError
from agent_bus.store import atomic
from agent_bus.store.locks import Locks
from agent_bus.times import stamp

FORMAT = 1
FOLDERS = (
    "inbox",
    "approvals",
    "waiting",
    "dead_letter",
    "reports/pending",
    "reports/processed",
    "status",
    "shared_context",
)
STATE_FOLDERS = ("tmp", "locks", "hints", "journal", "ledger", "quarantine")
_RESERVE = b" " * 4096
"""stop.reserve is a file with room in it: a stop needs no free disk (renamed, then filled)."""


@dataclass(frozen=True)
class Layout:
    """Where the parts of one bus lie.

    Args:
        root: the bus folder.
        state: the machine's side, `.bus` unless the setting `state_dir` moves it.
        archive: `archive` unless the setting `archive_dir` moves it.
    """

    root: Path
    state: Path
    archive: Path
    _checked: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, root: Path, state_dir: str = "", archive_dir: str = "") -> Layout:
        """The layout for a root and the two settings."""
        base = Path(os.path.abspath(root))
        state = Path(os.path.abspath(state_dir)) if state_dir else base / ".bus"
        return cls(base, state, Path(os.path.abspath(archive_dir)) if archive_dir else base / "archive")

    @property
    def stop_file(self) -> Path:
        """There is an emergency stop exactly while this file is there, whatever it holds."""
        return self.state / "stop.json"

    @property
    def format_file(self) -> Path:
        """The format version, the bus id and the owner host."""
        return self.state / "format.json"

    def check(self) -> None:
        """Whether this can be a bus folder: there, and empty, made by init, or made by the seed.

        Raises:
            BusError: `not_found` or `refused` with the command that mends it.
        """
        fix = f'Run: agent-bus init --root "{self.root}"'
        if not self.root.is_dir():
            raise BusError("not_found", f"the bus folder {self.root.name or self.root} does not exist.", fix)
        if self.format_file.exists():
            return
        names = set(os.listdir(self.root))
        if names and not names & {"inbox", "reports", "status", "shared_context", ".bus"}:
            raise BusError("refused", f"the folder {self.root.name} is not a bus folder and not empty.", fix)

    def make(self, now: datetime) -> None:
        """Adds what is missing and changes nothing else.

        Raises:
            OSError: the folder cannot be written.
        """
        for name in FOLDERS:
            atomic.make_folder(str(self.root.joinpath(*name.split("/"))), True)
        for name in STATE_FOLDERS:
            atomic.make_folder(str(self.state / name), True)
        atomic.make_folder(str(self.archive), True)
        self._check_temp()
        self.reserve_stop()
        if not self.format_file.exists():
            self._put_new(self.format_file, new_format(now))

    def reserve_stop(self) -> None:
        """Makes stop.reserve, unless a stop stands or it is there."""
        reserve = self.state / "stop.reserve"
        if not self.stop_file.exists() and not reserve.exists():
            self._put_over(reserve, _RESERVE)

    def read_format(self) -> dict[str, Any]:
        """The content of format.json, {} if there is none.

        Raises:
            BusError: `corrupt`, or `refused` for a newer format than this version knows.
        """
        try:
            found = from_json(self.format_file.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        except OSError as error:
            raise atomic.unavailable(error, self.root) from error
        if not _is_format(found):
            raise BusError(
                "corrupt",
                "format.json in the state folder cannot be read.",
                "Restore it from a backup or run agent-bus takeover.",
            )
        if found.get("schema", 1) > FORMAT:
            raise BusError(
                "refused", f"this bus has format {found['schema']}, this version knows {FORMAT}.", "Update agent-bus."
            )
        return found

    def take_over(self, now: datetime) -> dict[str, Any]:
        """Makes this host the owner; the former owner is kept in the record. Returns the new content of format.json.

        A format.json that cannot be read is kept in quarantine and made anew.

        Raises:
            BusError: `refused` for a newer format than this version knows; `unavailable`.
        """
        with atomic.InWords(str(self.root)), self._lock():
            try:
                old = self.read_format()
            except BusError as error:
                if error.code != "corrupt":
                    raise
                old = {}
                self._put_over(
                    self.state / "quarantine" / f"format.{now:%Y%m%d-%H%M%S}.json", self.format_file.read_bytes()
                )
            fresh = {**new_format(now), **{k: v for k, v in old.items() if k in ("bus_id", "created_at")}}
            fresh["former_owners"] = [*old.get("former_owners", []), *([old["owner"]] if "owner" in old else [])][-20:]
            self._put_over(self.format_file, to_json(fresh, indent=2) + b"\n")
        return fresh

    def check_owner(self) -> None:
        """Whether this host may write: the owner by its host id, or by the boot of its kernel, as one machine may have
        several homes (clients run servers in sandboxes). Looked up anew whenever the file has changed.

        Raises:
            BusError: `refused`, naming the owner and the ways out.
        """
        try:
            stat = os.stat(self.format_file)
            sign = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        except OSError:
            sign = None
        if sign is None or self._checked.get("sign") != sign:
            self._check_owner()
            self._checked["sign"] = sign

    def _check_owner(self) -> None:
        found = self.read_format()
        owner = found.get("owner", {})
        if owner.get("host", host.host_id()) == host.host_id():
            if owner and owner.get("boot") != host.boot_id():
                self._note_boot()
            return
        if owner.get("boot") == host.boot_id():
            return
        hint = "Work there, use its HTTP address, or make this host the owner: agent-bus takeover. Reading works here."
        name = f"{owner.get('name', '?')} ({owner['host']})"
        raise BusError("refused", f"only the owner host {name} writes to this bus.", hint)

    def _note_boot(self) -> None:
        with suppress(OSError), self._lock():  # of a read-only folder the write itself will tell
            found = self.read_format()
            owner = found.get("owner", {})
            if owner.get("host") == host.host_id():  # still: nobody took over meanwhile
                fresh = found | {"owner": owner | {"boot": host.boot_id()}}
                self._put_over(self.format_file, to_json(fresh, indent=2) + b"\n")

    def _lock(self) -> AbstractContextManager[None]:
        return Locks(str(self.state / "locks")).hold("format")

    def free_bytes(self) -> int:
        """Free space where the bus folder lies."""
        return shutil.disk_usage(self.root).free

    def _put_new(self, path: Path, value: dict[str, Any]) -> None:
        temp, _ = atomic.write_temp(str(self.state / "tmp"), to_json(value, indent=2) + b"\n", True)
        try:
            atomic.put_new(temp, str(path), self._lock)
            atomic.sync_folder(str(path.parent))
        except FileExistsError:
            pass
        finally:
            atomic.discard(temp)

    def _put_over(self, path: Path, data: bytes) -> None:
        temp, _ = atomic.write_temp(str(self.state / "tmp"), data, True)
        try:
            atomic.put_over(temp, str(path))
            atomic.sync_folder(str(path.parent))
        finally:
            atomic.discard(temp)

    def _check_temp(self) -> None:
        """The temp folder must be on the filesystem of its targets, or a rename cannot be atomic."""
        devices = {os.stat(p).st_dev for p in (self.root, self.state / "tmp", self.archive)}
        if len(devices) > 1:
            rule = "state_dir and archive_dir must lie on the filesystem of the bus folder"
            raise BusError(
                "refused",
                f"{rule}, so that files can be moved in one step.",
                "Change the settings, or move the folders.",
            )


def new_format(now: datetime) -> dict[str, Any]:
    """The content of a new format.json, owned by this host."""
    owner = {"host": host.host_id(), "name": socket.gethostname(), "boot": host.boot_id()}
    return {"schema": FORMAT, "bus_id": f"b-{secrets.token_hex(8)}", "owner": owner, "created_at": stamp(now)}


def _is_format(found: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this has the shape of a format.json, of this version or a newer one."""
    if not isinstance(found, dict) or not isinstance(found.get("schema", 1), int):
        return False
    owner = found.get("owner", {})
    return (
        isinstance(owner, dict)
        and isinstance(owner.get("host", ""), str)
        and isinstance(found.get("former_owners", []), list)
    )
