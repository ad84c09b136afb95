"""Small records of running processes in `.bus/run/`: who serves, which jobs live. No documents: nobody is
woken by them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic_core import from_json, to_json

from agent_bus import host
from agent_bus.store import atomic
from agent_bus.store.layout import Layout


def write(layout: Layout, name: str, value: dict[str, Any]) -> None:
    """Writes a record of this process: `value` with its process identity.

    Raises:
        OSError: the state folder cannot be written.
    """
    folder = str(layout.state / "run")
    atomic.make_folder(folder, False)
    data = to_json({**value, "process": host.as_record(host.this_process())}, indent=2) + b"\n"
    atomic.put_file(str(layout.state / "tmp"), os.path.join(folder, f"{name}.json"), data, False)


def read(layout: Layout, name: str) -> dict[str, Any] | None:
    """A record, None if there is none or it is unreadable."""
    try:
        found = from_json((layout.state / "run" / f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def alive(record: dict[str, Any] | None) -> bool:
    """Whether the process that wrote a record still runs (as far as this host can tell)."""
    process = (record or {}).get("process")
    if not isinstance(process, dict):
        return False
    try:
        return host.liveness(host.ProcessId(**process)) == host.ALIVE
    except TypeError:
        return False


def names(layout: Layout, prefix: str) -> Iterator[str]:
    """Names of the records that begin with a prefix, in order."""
    try:
        files = sorted(os.listdir(layout.state / "run"))
    except OSError:
        return
    yield from (f[:-5] for f in files if f.startswith(prefix) and f.endswith(".json"))


def remove(layout: Layout, name: str) -> None:
    """Takes a record away, if this process wrote it."""
    found = read(layout, name)
    if found and found.get("process", {}).get("pid") == os.getpid():
        with suppress(OSError):
            (layout.state / "run" / f"{name}.json").unlink()
