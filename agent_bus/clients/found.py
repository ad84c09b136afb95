"""What stands in the clients' files now: entries of ours and of others, and what cannot be read. Nothing is changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent_bus.clients import PROJECT, USER, Client, Home, documents, files
from agent_bus.clients.entries import OTHER, kind
from agent_bus.clients.hunks import decode
from agent_bus.clients.jsonc import BrokenText
from agent_bus.errors import BusError


@dataclass(frozen=True)
class Entry:
    """One server of a client's file.

    Args:
        keys: the keys that lead to it.
        value: as it stands there.
        whose: `ours`, `seed` or `other`.
        line: where it stands, from 1.
    """

    keys: tuple[str, ...]
    value: Any
    whose: str
    line: int

    @property
    def key(self) -> str:
        """Its name in the client."""
        return self.keys[-1]


@dataclass(frozen=True)
class FoundFile:
    """One file of a client.

    Args:
        scope: `user`, `project`, or `older` for a place of another version.
        text: its content; None if there is none, or it cannot be read.
        problem: why it cannot be read, "" if it can.
    """

    client: Client
    scope: str
    path: Path
    text: str | None = None
    document: Any = None
    entries: tuple[Entry, ...] = ()
    problem: str = ""


def is_here(client: Client, home: Home) -> bool:
    """Whether the client is on this machine, as far as its programs and folders tell."""
    path = home.environ.get("PATH", "")
    return any(shutil.which(name, path=path) for name in client.signs.programs) or any(
        home.at(folder).exists() for folder in client.signs.folders
    )


def look(client: Client, home: Home, project: Path | None) -> Iterator[FoundFile]:
    """The files of a client, whether or not they are there."""
    for scope in (USER, PROJECT):
        path = client.path(scope, home, project)
        if path is not None:
            yield _read(client, scope, path)
    for path in client.older_paths(home):
        if path.exists():
            yield _read(client, "older", path)


def options(client: Client, entry: Any) -> Mapping[str, str]:
    """The options of the command line that an entry of ours has: `--root` and the like, by name without dashes."""
    words = client.started(entry) if isinstance(entry, dict) else ()
    pairs = pairwise(words)
    return {word[2:]: value for word, value in pairs if word.startswith("--") and not value.startswith("--")}


def _read(client: Client, scope: str, path: Path) -> FoundFile:
    try:
        data = files.read(path)
        if data is None:
            return FoundFile(client, scope, path)
        text = decode(data, str(path))
        document = documents.parse(text, client.format)
    except BusError as error:
        return FoundFile(client, scope, path, problem=error.message)
    except BrokenText as error:
        return FoundFile(client, scope, path, problem=str(error))
    place = client.place(document)
    servers = documents.value(document, place)
    listed = servers.items() if isinstance(servers, dict) else ()
    return FoundFile(client, scope, path, text, document, tuple(
        Entry((*place, key), value, kind(client, key, value) if isinstance(value, dict) else OTHER,
              documents.line_of(text, client.format, (*place, key)))
        for key, value in listed
    ))  # fmt: skip
