"""Which flags an executable takes: asked once for each (path, time, size), kept in `.bus/run/caps-<host>.json`."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_bus import host
from agent_bus.launchers import Launcher, LaunchError, process
from agent_bus.launchers.environment import RUN_ID
from agent_bus.launchers.trees import Tree
from agent_bus.store import records
from agent_bus.store.layout import Layout

PROBE_S = 10.0
OUTPUT_BYTES = 256 * 1024
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


@dataclass(frozen=True)
class Capabilities:
    """What one executable can do.

    Args:
        version: as it says itself, "" = not said.
        flags: all that its help names, without those it has refused since.
        files: (path, mtime in ns, size) of the files in its argv prefix; another one is probed anew.
    """

    version: str
    flags: frozenset[str]
    files: tuple[tuple[str, int, int], ...]


_READ = TypeAdapter(Capabilities)


def capabilities(
    layout: Layout, executable: Sequence[str], launcher: Launcher, env: Mapping[str, str], timeout_s: float = PROBE_S
) -> Capabilities:
    """What the executable can do, from the cache or by asking it; a launcher without flags asks nothing.

    Args:
        executable: argv prefix (`executable.resolve`).
        env: the environment of the probes, as that of a run.
        timeout_s: for each of the two probes.

    Raises:
        LaunchError: `spawn` if it cannot be started.
    """
    known = _read(layout).get(_key(executable))
    if known is not None and known.files == _files(executable):
        return known
    found, is_whole = ask(executable, launcher, env, timeout_s)
    if is_whole and found.flags:  # one that was too slow is asked again next time
        _keep(layout, executable, found)
    return found


def ask(
    executable: Sequence[str], launcher: Launcher, env: Mapping[str, str], timeout_s: float = PROBE_S
) -> tuple[Capabilities, bool]:
    """What the executable says of itself now, and whether it came to the end of that; errors as `capabilities`."""
    if not launcher.required_flags | launcher.optional_flags:
        return Capabilities("", frozenset(), _files(executable)), True
    _, said = run_briefly((*executable, "--version"), env=env, timeout_s=timeout_s)
    code, helped = run_briefly((*executable, *launcher.help_words, "--help"), env=env, timeout_s=timeout_s)
    version = _VERSION.search(said.decode("utf-8", "replace"))
    flags = flags_in(helped.decode("utf-8", "replace"))
    return Capabilities(version[0] if version else "", flags, _files(executable)), code is not None


def check_required(found: Capabilities, launcher: Launcher, executable: Sequence[str]) -> None:
    """Raises LaunchError `too_old`, with the version and the flags that are missing."""
    missing = sorted(launcher.required_flags - found.flags)
    if missing:
        raise LaunchError(
            "too_old",
            f"{launcher.name} {found.version or '(version unknown)'} does not know {', '.join(missing)}.",
            f"Update {launcher.name}, or name another executable than {executable[0]} with command in bus.toml.",
        )


def drop(layout: Layout, executable: Sequence[str], option: str) -> None:
    """Takes a flag that the executable has just refused out of the cache, until the executable changes."""
    known = _read(layout).get(_key(executable))
    if known is not None:
        _keep(layout, executable, replace(known, flags=known.flags - {option}))


def flags_in(text: str) -> frozenset[str]:
    """All words of a help text that look like flags."""
    return frozenset(_FLAG.findall(text))


def run_briefly(
    argv: Sequence[str], *, env: Mapping[str, str], timeout_s: float = PROBE_S, limit: int = OUTPUT_BYTES
) -> tuple[int | None, bytes]:
    """Exit code and output of a probe with nothing to read; its tree is ended if it takes too long or says too much.

    Returns:
        None instead of the code for a probe that was ended; at most `limit` bytes.

    Raises:
        LaunchError: `spawn` if it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="agent-bus-probe-", ignore_cleanup_errors=True) as folder:
        log, marker = Path(folder) / "output", os.path.basename(folder)
        child = process.spawn(argv, cwd=Path(folder), env={**env, RUN_ID: marker}, stdin=None, log=log)
        deadline = time.monotonic() + timeout_s
        while (status := child.poll()) is None and time.monotonic() < deadline and log.stat().st_size <= limit:
            time.sleep(0.02)
        if status is None:
            Tree(marker, child.pid, child.pid_started).end(0.0)
        process.forget(child.pid, child.pid_started)
        with open(log, "rb") as said:
            return status[0] if status else None, said.read(limit)


def _files(executable: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    """The files of an argv prefix, as what they are now (links followed)."""
    found = []
    for word in executable:
        try:
            stat = os.stat(word) if os.path.isabs(word) else None
        except (OSError, ValueError):
            continue
        if stat is not None:
            found.append((word, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def _key(executable: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(executable).encode("utf-8", "replace")).hexdigest()[:16]


def _name() -> str:
    return f"caps-{host.host_id()}"


def _read(layout: Layout) -> dict[str, Capabilities]:
    """The cache; what cannot be read is not there."""
    stored: Any = (records.read(layout, _name()) or {}).get("executables")
    found = {}
    for key, value in stored.items() if isinstance(stored, dict) else ():
        try:
            found[key] = _READ.validate_python(value)
        except ValidationError:
            continue
    return found


def _keep(layout: Layout, executable: Sequence[str], one: Capabilities) -> None:
    """Two writers at once cost one of them its entry, which is asked for again."""
    entries = {**_read(layout), _key(executable): one}
    stored = {key: {**asdict(entry), "flags": sorted(entry.flags)} for key, entry in entries.items()}
    records.write(layout, _name(), {"executables": stored})
