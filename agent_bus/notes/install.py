"""Carries out the plan of `vault install`: each file whole or not at all, and none over what somebody has changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from agent_bus.errors import BusError
from agent_bus.notes.obsidian import Edit
from agent_bus.notes.plan import CREATE, OFFER, UPDATE, Step, recorded
from agent_bus.store import atomic


def read_record(path: Path) -> dict[str, str]:
    """By path the version that was last written or offered; {} if nothing was yet, or that is lost."""
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads(path.read_bytes()).get("files", {})
        return {str(name): str(value) for name, value in found.items()}
    return {}


def write(root: Path, temp: Path, steps: Sequence[Step], record: Path) -> None:
    """Writes the files and then the record: a kill between them only makes the next install look again.

    Args:
        root: the bus folder.
        temp: a folder for temp files on its filesystem.
        record: the file of what was written.

    Raises:
        BusError: `conflict` if a file changes at this moment; `unavailable`.
    """
    with atomic.InWords(str(root)):
        for step in steps:
            if step.act in (CREATE, UPDATE, OFFER):
                path = root.joinpath(*step.target.split("/"))
                old = path.read_bytes() if path.exists() else None
                expected = step.was if step.act == UPDATE or step.was else None
                if old != expected:
                    raise _changed(path)
                put(path, temp, step.data, old is None)
        files = read_record(record) | recorded(list(steps))
        data = json.dumps({"files": dict(sorted(files.items()))}, indent=2).encode() + b"\n"
        if not record.exists() or record.read_bytes() != data:
            put(record, record.parents[1] / "tmp", data, False)


def write_settings(vault: Path, temp: Path, edits: Sequence[Edit], now: datetime) -> None:
    """Writes Obsidian's settings; the old ones stay beside them as `<file>.bak-<stamp>`.

    Raises:
        BusError: `conflict` if one changes at this moment; `unavailable`.
    """
    with atomic.InWords(str(vault)):
        for edit in edits:
            path = vault.joinpath(*edit.path.split("/"))
            old = path.read_bytes() if path.exists() else None
            if old != edit.was:
                raise _changed(path)
            if old is not None:
                put(path.with_name(f"{path.name}.bak-{now:%Y%m%d-%H%M%S}"), temp, old, True)
            put(path, temp, edit.data, old is None)


def put(path: Path, temp: Path, data: bytes, new: bool) -> None:
    """Puts a file in its place at once.

    Raises:
        BusError: `conflict` if it must be new and is there.
    """
    atomic.make_folder(str(path.parent), False)
    made, _ = atomic.write_temp(str(temp), data, True)
    try:
        if new:
            atomic.put_new(made, str(path))
        else:
            atomic.put_over(made, str(path))
    except FileExistsError:
        raise _changed(path) from None
    finally:
        atomic.discard(made)


def _changed(path: Path) -> BusError:
    return BusError("conflict", f"{path.name} has changed just now.", "Run the command again; what was done stays.")
