"""The files that a vault begins with (vault_template/), and which versions of them were ever shipped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import agent_bus

LANGUAGES = ("en", "ja")
MANIFEST = "manifest.json"
_MARK = b"__BUS__/"
"""Stands for the bus folder's name, wherever a path begins in the vault."""


@dataclass(frozen=True)
class Template:
    """One template.

    Args:
        folder: holds `en/`, `ja/`, `common/` and the manifest.
        known: for each path the sha256 of every version that was shipped, in any language, with `__BUS__` in it.
    """

    folder: Path
    known: Mapping[str, frozenset[str]]

    def files(self, language: str, name: str) -> dict[str, bytes]:
        """The files of the bus folder by their paths in it, for a bus folder of this name."""
        return _rendered(self.folder / language, name)

    def settings(self, name: str) -> dict[str, bytes]:
        """The files of a new vault's `.obsidian` by their paths in the vault."""
        return _rendered(self.folder / "common", name)

    def knows(self, path: str, data: bytes, name: str) -> bool:
        """Whether a file is a shipped version that nobody has changed."""
        return digest(data, name) in self.known.get(path, ())


def shipped() -> Template:
    """The template of this installation: beside the package in a checkout, in the package when installed."""
    package = Path(agent_bus.__file__).parent
    inside = package / "vault_template"
    return load(inside if inside.is_dir() else package.parent / "vault_template")


def load(folder: Path) -> Template:
    """The template in a folder."""
    known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return Template(folder, {path: frozenset(hashes) for path, hashes in known.items()})


def digest(data: bytes, name: str) -> str:
    """The sha256 of a file as the manifest has it, whatever the bus folder is called."""
    return hashlib.sha256(data.replace(name.encode() + b"/", _MARK)).hexdigest()


def manifest(folder: Path) -> str:
    """The manifest's text with the present versions added; what it knows stays, for vaults that have older ones."""
    path = folder / MANIFEST
    known: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for language in LANGUAGES:
        for name, data in _read(folder / language).items():
            hashes = known.setdefault(name, [])
            if (found := hashlib.sha256(data).hexdigest()) not in hashes:
                hashes.append(found)
    return json.dumps(dict(sorted(known.items())), indent=2) + "\n"


def _rendered(folder: Path, name: str) -> dict[str, bytes]:
    return {path: data.replace(_MARK, name.encode() + b"/") for path, data in _read(folder).items()}


def _read(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
