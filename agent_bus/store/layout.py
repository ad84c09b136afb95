"""The bus folder: what `init` makes, how it is recognised, and which host may write (docs/vault-format.md)."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from agent_bus import host
from agent_bus.errors import BusError
from agent_bus.store import atomic, claim, owner
from agent_bus.store.format import FORMAT, MOVED, is_format, new_format, place_hash
from agent_bus.store.locks import Locks

AUTO = "auto"
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
        state: the machine's side, `.bus` unless the setting `state_dir` moves all of it but format.json.
        archive: `archive` unless the setting `archive_dir` moves it. Relative paths begin in the bus folder.
    """

    root: Path
    state: Path
    archive: Path
    _checked: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, root: Path, state_dir: str = "", archive_dir: str = "") -> Layout:
        """The layout for a root and the two settings; `state_dir = "auto"` is a folder of the user's state folder."""
        base = Path(os.path.abspath(root))
        if state_dir == AUTO:
            state = host.state_folder() / place_hash(base)
        else:
            state = Path(os.path.abspath(base / (state_dir or ".bus")))
        return cls(base, state, Path(os.path.abspath(base / (archive_dir or "archive"))))

    @property
    def stop_file(self) -> Path:
        """There is an emergency stop exactly while this file is there, whatever it holds."""
        return self.state / "stop.json"

    @property
    def format_file(self) -> Path:
        """The format version, the bus id and the owner host; in the bus folder wherever the state lies, so that every
        client finds it.
        """
        return self.root / ".bus" / "format.json"

    @property
    def is_moved(self) -> bool:
        """Whether the machine's side lies outside the bus folder's `.bus`."""
        return self.state != self.root / ".bus"

    @cached_property
    def temp(self) -> Path:
        """Where temp files of documents lie: with the state if a rename from there reaches the bus folder."""
        same = not self.is_moved or _device(self.state) == _device(self.root)
        return (self.state if same else self.root / ".bus") / "tmp"

    def is_new(self) -> bool:
        """Whether nothing says yet that this is a bus."""
        return not self.format_file.exists() and not self._old_format()

    def check(self) -> None:
        """Whether this can be a bus folder: there, and empty, made by init, or made by the seed.

        Raises:
            BusError: `not_found` or `refused` with the command that mends it.
        """
        fix = f'Run: agent-bus init --root "{self.root}"'
        if not self.root.is_dir():
            raise BusError("not_found", f"the bus folder {self.root.name or self.root} does not exist.", fix)
        if not self.is_new():
            owner.check_state(self)
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
        for folder in (self.archive, self.temp, self.format_file.parent):
            atomic.make_folder(str(folder), True)
        self._check_temp()
        self.reserve_stop()
        if not self.format_file.exists():
            self._put_new(self.format_file, self.with_state(self._old_format() or new_format(now)))
        if self.is_moved and self._old_format(MOVED) is None:  # older programs look there; they must not begin anew
            self.put_over(self.state / "format.json", to_json({"schema": MOVED, "bus": str(self.root)}) + b"\n")

    def reserve_stop(self) -> None:
        """Makes stop.reserve, unless a stop stands or it is there."""
        reserve = self.state / "stop.reserve"
        if not self.stop_file.exists() and not reserve.exists():
            self.put_over(reserve, _RESERVE)

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
        if not is_format(found):
            raise BusError(
                "corrupt",
                "format.json in .bus of the bus folder cannot be read.",
                "Restore it from a backup or run agent-bus takeover.",
            )
        if found.get("schema", 1) > FORMAT:
            raise BusError(
                "refused", f"this bus has format {found['schema']}, this version knows {FORMAT}.", "Update agent-bus."
            )
        return found

    def take_over(self, now: datetime) -> dict[str, Any]:
        """Makes this host the owner; see `owner.take_over`."""
        return owner.take_over(self, now)

    def check_owner(self) -> None:
        """Whether this host may write. Looked up anew whenever format.json or the Dashboard has changed.

        Raises:
            BusError: `refused`, naming the owner and the ways out; `invalid` for another state folder than noted.
        """
        try:
            stat = os.stat(self.format_file)
            sign = (stat.st_ino, stat.st_mtime_ns, stat.st_size, claim.sign(self.root))
        except OSError:
            sign = None
        if sign is None or self._checked.get("sign") != sign:
            owner.check(self)
            self._checked["sign"] = sign

    def is_ours(self) -> bool:
        """Whether this host may write, for whoever would only mend what is missing."""
        try:
            self.check_owner()
        except BusError:
            return False
        return True

    def with_state(self, found: dict[str, Any]) -> dict[str, Any]:
        """The content of format.json with this host's state folder noted, where it is not the usual one."""
        noted = {k: v for k, v in found.get("state_dirs", {}).items() if k != host.host_id()}
        noted |= {host.host_id(): place_hash(self.state)} if self.is_moved else {}
        return {**{k: v for k, v in found.items() if k != "state_dirs"}, **({"state_dirs": noted} if noted else {})}

    def _old_format(self, schema: int = FORMAT) -> dict[str, Any] | None:
        """The format.json that lies with a state folder elsewhere: of an older program, or the mark left for it."""
        if not self.is_moved:
            return None
        try:
            found = from_json((self.state / "format.json").read_bytes())
        except (OSError, ValueError):
            return None
        return found if is_format(found) and found.get("schema", 1) == schema else None

    def lock(self) -> AbstractContextManager[None]:
        """Held while format.json changes."""
        return Locks(str(self.state / "locks")).hold("format")

    def free_bytes(self) -> int:
        """Free space where the bus folder lies."""
        return shutil.disk_usage(self.root).free

    def _put_new(self, path: Path, value: dict[str, Any]) -> None:
        temp, _ = atomic.write_temp(self._temp_for(path), to_json(value, indent=2) + b"\n", True)
        try:
            atomic.put_new(temp, str(path), self.lock)
            atomic.sync_folder(str(path.parent))
        except FileExistsError:
            pass
        finally:
            atomic.discard(temp)

    def put_over(self, path: Path, data: bytes) -> None:
        """Replaces a file of the machine's side or of the bus folder, durably."""
        atomic.put_file(self._temp_for(path), str(path), data, True)
        atomic.sync_folder(str(path.parent))

    def _check_temp(self) -> None:
        """The temp folder must be on the filesystem of its targets, or a rename cannot be atomic."""
        if len({_device(p) for p in (self.root, self.temp, self.archive)}) > 1:
            rule = "archive_dir must lie on the filesystem of the bus folder"
            raise BusError(
                "refused",
                f"{rule}, so that files can be moved in one step.",
                "Change the setting, or move the folder.",
            )

    def _temp_for(self, path: Path) -> str:
        return str(self.state / "tmp" if path.is_relative_to(self.state) else self.temp)


def _device(path: Path) -> int:
    """The filesystem of a path, or of the nearest folder above it that is there."""
    here = next(p for p in (path, *path.parents) if p.exists())
    return os.stat(here).st_dev
