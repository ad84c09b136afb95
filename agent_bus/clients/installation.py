"""This installation of agent-bus, as other programs start it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent_bus.errors import BusError

_CACHES = (("uv", "archive-v0"), ("uv", "environments-v2"), ("pipx", ".cache"), (".cache", "uv"), (".cache", "pipx"))
"""Neighbouring parts of a path where uvx and `pipx run` keep environments that they throw away."""


@dataclass(frozen=True)
class Installation:
    """Where the program lies, and the environment that it belongs to."""

    program: Path
    prefix: Path


def this_installation(environ: Mapping[str, str] | None = None) -> Installation:
    """The installation that runs now. A link on PATH that leads to it is kept: pipx and uv renew what is behind it."""
    own = Path(sysconfig.get_path("scripts")) / ("agent-bus.exe" if sys.platform == "win32" else "agent-bus")
    found = shutil.which("agent-bus", path=(os.environ if environ is None else environ).get("PATH", ""))
    linked = found is not None and os.path.realpath(found) == os.path.realpath(own)
    return Installation(Path(os.path.abspath(found)) if found and linked else own, Path(sys.prefix))


def is_temporary(path: Path, temp: Path | None = None) -> bool:
    """Whether a path lies where things are thrown away: the temp folder, or the cache of uvx and `pipx run`.

    Args:
        temp: the temp folder; None = this system's.
    """
    parts = path.parts
    pairs = set(pairwise(parts))
    folder = os.path.realpath(temp or tempfile.gettempdir())
    return bool(pairs.intersection(_CACHES)) or Path(os.path.realpath(path)).is_relative_to(folder)


def checked_program(installation: Installation, force: bool) -> Path:
    """The program that an entry may name.

    Raises:
        BusError: `refused` for one that will not be there for long, `not_found` for one that is not there.
    """
    if not force and (is_temporary(installation.prefix) or is_temporary(installation.program)):
        why = f"agent-bus runs from {installation.prefix}, which is temporary: the entry would soon start nothing."
        raise BusError(
            "refused", why, "Install it first, in the folder of agent-bus: pipx install . (or: uv tool install .)"
        )
    if not installation.program.is_file():
        why = f"there is no program {installation.program}."
        raise BusError("not_found", why, "Install it anew, in the folder of agent-bus: pipx install --force .")
    return installation.program
