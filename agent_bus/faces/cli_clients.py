"""What the verbs about clients have in common: the clients that a user names, the project that the user stands in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from agent_bus.clients import Client, registry
from agent_bus.errors import BusError


def named(names: Iterable[str]) -> list[Client]:
    """The clients of these names, each once.

    Raises:
        click.UsageError: a name is unknown; with the nearest.
    """
    try:
        return [registry.load(name) for name in dict.fromkeys(names)]
    except BusError as error:
        raise click.UsageError(f"{error.message} {error.hint}") from None


def nearest_project() -> Path | None:
    """The nearest folder with .git, from the current one up; None without one."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
