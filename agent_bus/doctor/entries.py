"""The clients' files as a whole: who knows the bus, what cannot be read, what is never looked at, what clashes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_bus import ids
from agent_bus.clients import JSONC, PROJECT, USER, Client, documents
from agent_bus.clients.entries import is_bus_here
from agent_bus.clients.found import Entry, FoundFile, is_here, options
from agent_bus.clients.jsonc import BrokenText
from agent_bus.doctor import Finding, fail, good, info, warn
from agent_bus.doctor.ground import Ground

ADDRESS_KEYS = ("url", "serverUrl", "httpUrl")
_USUAL = ("bus", "agent-bus")


def look(ground: Ground) -> Iterator[Finding]:
    """All checks that need more than one entry to be seen."""
    yield from _found(ground)
    yield from _parse(ground)
    yield from _place(ground)
    yield from _double(ground)
    yield from _agent(ground)


def _found(ground: Ground) -> Iterator[Finding]:
    """Who has us; a client that was named, or is the only hope, must."""
    having: dict[str, list[str]] = {}
    for file, _ in ground.ours():
        having.setdefault(file.client.name, []).append(str(file.path))
    for client in ground.clients:
        if client.name in having:
            yield good("entry.found", ", ".join(dict.fromkeys(having[client.name])), client.name)
        elif ground.named:
            yield warn("entry.found", "absent", client.name, title=client.title)
        elif is_here(client, ground.home):
            yield info("entry.found", "absent", client.name, title=client.title)
    for file, entry in ground.ours():
        if entry.value.get("disabled") is True or entry.value.get("enabled") is False:
            yield info("entry.found", "off", file.client.name, path=file.path, key=entry.key)
    if not having and not ground.named:
        yield warn("entry.found", "nobody")


def _parse(ground: Ground) -> Iterator[Finding]:
    for file in ground.files:
        if file.problem:
            client = file.client
            yield fail("entry.parse", "broken", client.name, path=file.path, reason=file.problem, title=client.title)
        elif file.text is not None:
            yield good("entry.parse", file.path, file.client.name)


def _place(ground: Ground) -> Iterator[Finding]:
    for client in ground.clients:
        for path, keys in client.dead_places(ground.home, ground.project):
            if names := dead_servers(path, keys):
                yield fail("entry.place", "dead", client.name, names=", ".join(names), path=path,
                           key=".".join(keys), title=client.title)  # fmt: skip
    for file in ground.files:
        for entry in file.entries:
            yield from _misplaced(file, entry)


def dead_servers(path: Path, keys: tuple[str, ...]) -> list[str]:
    """The names of servers in a place that the client does not look at; [] if it cannot be read."""
    try:
        found = documents.value(documents.parse(path.read_text(encoding="utf-8-sig"), JSONC), keys)
    except (OSError, ValueError, BrokenText):
        return []
    return [str(name)[:60] for name in found][:20] if isinstance(found, dict) else []


def _misplaced(file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """An entry of ours in an older file, or with keys that the client does not take."""
    client, value = file.client, entry.value
    if not isinstance(value, dict):
        return
    at: Mapping[str, Any] = {"path": file.path, "key": entry.key, "title": client.title}
    if file.scope == "older" and entry.whose == "ours":
        yield fail("entry.place", "older", client.name, **at)
    if isinstance(value.get("command"), list) and "args" in value and entry.whose == "ours":
        yield fail("entry.place", "args", client.name, **at)
    if wrong := _wrong_address(client, entry):
        yield fail("entry.place", "address", client.name, **at, wrong=wrong, right=client.url_key or "command")


def _wrong_address(client: Client, entry: Entry) -> str:
    """The key under which an address of ours stands, if the client reads another one."""
    if client.started(entry.value) or client.address(entry.value):
        return ""
    for key in ADDRESS_KEYS:
        text = entry.value.get(key)
        if key != client.url_key and isinstance(text, str) and (entry.key in _USUAL or is_bus_here(text)):
            return key
    return ""


def _double(ground: Ground) -> Iterator[Finding]:
    by_client: dict[str, list[tuple[FoundFile, Entry]]] = {}
    for file, entry in ground.ours():
        by_client.setdefault(file.client.name, []).append((file, entry))
    for name, found in by_client.items():
        yield _double_of(name, found)


def _double_of(client: str, found: list[tuple[FoundFile, Entry]]) -> Finding:
    for path in {file.path for file, _ in found}:
        keys = [entry.key for file, entry in found if file.path == path]
        if len(keys) > 1:
            return warn("entry.double", "twice", client, path=path, keys=", ".join(keys))
    meant = {file.scope: _meant(file, entry) for file, entry in found}
    if USER in meant and PROJECT in meant and meant[USER] != meant[PROJECT]:
        shown = {scope: " ".join(filter(None, words)) for scope, words in meant.items()}
        return warn("entry.double", "scopes", client, user=shown[USER], project=shown[PROJECT])
    return good("entry.double", "", client)


def _meant(file: FoundFile, entry: Entry) -> tuple[str, str]:
    """Which bus and which agent an entry means."""
    given = options(file.client, entry.value)
    root = given.get("root", "")
    return os.path.realpath(root) if root else file.client.address(entry.value), given.get("agent", "")


def _agent(ground: Ground) -> Iterator[Finding]:
    users: dict[str, dict[str, str]] = {}
    for file, entry in ground.ours():
        if name := options(file.client, entry.value).get("agent", ""):
            users.setdefault(ids.folder_of(name), {})[file.client.name] = name
    for clients in users.values():
        first, *others = clients
        agent = clients[first]
        if others:
            yield warn("entry.agent", "shared", others[-1], agent=agent, clients=", ".join(clients))
        else:
            yield good("entry.agent", agent, first)
