"""Where the notes go: the vault, and the bus folder in it."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from agent_bus.errors import BusError, invalid
from agent_bus.notes import names

USUAL_NAME = "09_AgentSync"
SETTINGS = ".obsidian"


def bus_folder(vault: Path, name: str) -> Path:
    """The bus folder of this name in a vault.

    Raises:
        BusError: `not_found` without the vault, `invalid` if it is no folder or the name is none for every system,
            `refused` for links and inside of another bus.
    """
    if not os.path.lexists(vault):
        raise BusError("not_found", f"the folder {vault} does not exist.", "Name the folder of your vault.")
    if vault.is_symlink():
        fix = f"Name the folder itself: {os.path.realpath(vault)}"
        raise BusError("refused", f"{vault} is a link, which synchronisers do not follow.", fix)
    if not vault.is_dir():
        raise invalid("PATH", f"must be a folder, {vault} is a file", "Name the folder of your vault.")
    name = unicodedata.normalize("NFC", name)
    if wrong := names.fault(name):
        raise invalid("--name", wrong, f"Use letters, digits, - and _ , like {USUAL_NAME}.")
    inside = next((folder for folder in (vault, *vault.parents) if _is_bus(folder)), None)
    if inside is not None:
        raise BusError("refused", f"{inside} is a bus folder already.", "Name the vault that holds it.")
    root = vault / name
    if root.exists() and not root.is_dir():
        raise invalid("--name", f"must be free, {root} is a file", "Give another --name.")
    return root


def check_links(root: Path, paths: Iterable[str]) -> None:
    """Whether all files would land in the bus folder itself.

    Raises:
        BusError: `refused` if a folder or file on the way is a link, `invalid` if a file stands where a folder must.
    """
    for path in paths:
        spots = [root.joinpath(*path.split("/")[:n]) for n in range(len(path.split("/")) + 1)]
        if link := next((spot for spot in spots if spot.is_symlink()), None):
            raise BusError("refused", f"{link} is a link.", "Put the folder or file itself there, or take it away.")
        if file := next((spot for spot in spots[:-1] if spot.exists() and not spot.is_dir()), None):
            raise invalid("PATH", f"needs a folder where the file {file} is", "Move the file away.")
        if spots[-1].is_dir():
            raise invalid("PATH", f"needs a file where the folder {spots[-1]} is", "Move the folder away.")


def vault_of(root: Path) -> Path:
    """The vault that a bus folder lies in: the nearest folder with Obsidian's settings, else the one above."""
    return next((folder for folder in (root, *root.parents) if (folder / SETTINGS).is_dir()), root.parent)


def _is_bus(folder: Path) -> bool:
    return (folder / ".bus" / "format.json").exists()
