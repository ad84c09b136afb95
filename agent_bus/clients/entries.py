"""Our entry in a client's document: telling it from others, and planning how it is set and taken out. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agent_bus.clients import TOKEN_VARIABLE, USUAL_NAME, Client, Server, base_name, documents
from agent_bus.clients.hunks import Hunk
from agent_bus.errors import BusError

OURS, SEED, OTHER = "ours", "seed", "other"
SEED_NAME = "agent-bus"
LOCAL = ("127.0.0.1", "localhost", "::1")
"""The names and addresses of this machine itself."""
_ENVIRONMENT = ("env", "environment")
_SEED_FOLDER = "agent-bus-mcp"
ADDED, UPDATED, UNCHANGED, REMOVED = "added", "updated", "unchanged", "removed"


@dataclass(frozen=True)
class Planned:
    """What would be done to one document: `added`, `updated`, `unchanged` or `removed`, and the hunks of it."""

    what: str
    hunks: tuple[Hunk, ...] = ()
    keys: tuple[str, ...] = ()


def kind(client: Client, key: str, entry: Any) -> str:
    """Whose an entry is: `ours`, `seed` for the program that ours took the place of, or `other`."""
    if not isinstance(entry, dict):
        return OTHER
    words = client.started(entry)
    if words:
        if base_name(words[0]) == "agent-bus" or any("agent_bus" in word for word in words):
            return OURS
        paths = [word.replace("\\", "/").split("/") for word in words]
        return SEED if any(path[-2:] == [_SEED_FOLDER, "server.py"] for path in paths) else OTHER
    return OURS if key in (USUAL_NAME, SEED_NAME) and _calls_us(client, entry) else OTHER


def is_local(address: str) -> bool:
    """Whether an address is one of this machine's own."""
    try:
        return urlsplit(address).hostname in LOCAL
    except ValueError:
        return False


def is_bus_here(address: str) -> bool:
    """Whether an address is that of a bus on this machine; a slash at its end is allowed."""
    return is_local(address) and urlsplit(address).path.rstrip("/") == "/mcp"


def _calls_us(client: Client, entry: Mapping[str, Any]) -> bool:
    """Whether an entry by address is ours: it reads our token's variable, or it calls a bus on this machine."""
    address = client.address(entry)
    if not address:
        return False
    reads_token = any(TOKEN_VARIABLE in str(value) for value in entry.values())
    return reads_token or is_bus_here(address)


def ours(client: Client, document: Any) -> list[tuple[str, str]]:
    """The keys of our entries in a document, each with its kind (`ours` or `seed`)."""
    servers = documents.value(document, client.place(document))
    if not isinstance(servers, dict):
        return []
    found = [(key, kind(client, key, entry)) for key, entry in servers.items()]
    return [(key, whose) for key, whose in found if whose != OTHER]


def plan_entry(client: Client, text: str, server: Server, name: str, approve: bool, force: bool) -> Planned:
    """How our entry gets into the text.

    Args:
        name: its key; the usual one gives way to that of an entry of ours under another key.
        approve: whether the keys of `Client.approving` are set too.
        force: whether an entry of the seed is replaced, and a user's environment dropped where none can be.

    Raises:
        BrokenText: the document cannot be read or changed.
        BusError: `conflict` if another program has the key, or our entry another name than the wanted one; `refused`
            without `force` for an entry of the seed, and for an address in the place of a program with variables.
    """
    document = documents.parse(text, client.format)
    place = client.place(document)
    documents.check_single(text, client.format, place)
    key = _key(client, document, name, force)
    old = documents.value(document, (*place, key))
    fresh = {**client.entry(server, place), **(client.approving if approve else {})}
    if isinstance(old, dict):
        _check_variables(client, old, server, force)
        fresh = _kept(client, old, fresh)
    if fresh == old:
        return Planned(UNCHANGED, keys=(*place, key))
    if not isinstance(old, dict):
        hunks = _set_entry(client, text, place, key, fresh)
    elif old.keys() - fresh.keys():  # from a program to an address or back: other keys, so it is written anew
        hunks = documents.replace_members(text, client.format, (*place, key), fresh)
    else:
        changed = {name: value for name, value in fresh.items() if name not in old or old[name] != value}
        hunks = documents.set_members(text, client.format, (*place, key), changed)
    documents.prove(text, client.format, (*place, key), hunks, fresh)
    return Planned(UPDATED if isinstance(old, dict) else ADDED, tuple(hunks), (*place, key))


def plan_removal(client: Client, text: str) -> Planned:
    """How our entry gets out of the text; of several, the first.

    Raises:
        BrokenText: the document cannot be read or changed.
    """
    document = documents.parse(text, client.format)
    keys = [key for key, whose in ours(client, document) if whose == OURS]
    if not keys:
        return Planned(UNCHANGED)
    path = (*client.place(document), keys[0])
    hunks = documents.remove(text, client.format, path)
    documents.prove(text, client.format, path, hunks, None)
    return Planned(REMOVED, tuple(hunks), path)


def _set_entry(client: Client, text: str, place: tuple[str, ...], key: str, fresh: Mapping[str, Any]) -> list[Hunk]:
    if client.format == "toml":
        return documents.set_members(text, client.format, (*place, key), fresh)
    return documents.set_members(text, client.format, place, {key: fresh})


def _key(client: Client, document: Any, name: str, force: bool) -> str:
    """The key that our entry has or gets."""
    found = dict(ours(client, document))
    mine = [key for key, whose in found.items() if whose == OURS]
    if mine and name not in mine and name != USUAL_NAME:
        why = f"the entry of the bus is called {mine[0]!r} there."
        fix = f"Leave --name out to update it, or take it out first: agent-bus uninstall {client.name}"
        raise BusError("conflict", why, fix)
    if mine:
        return name if name in mine else mine[0]
    for key in found:
        if not force:
            why = f"the entry {key!r} starts the server of agent-bus-mcp, which this one takes the place of."
            raise BusError("refused", why, "Give --force to replace it.")
        return key
    if documents.value(document, (*client.place(document), name)) is not None:
        raise BusError("conflict", f"another program has the name {name!r} there.", "Choose another: --name bus2")
    return name


def _check_variables(client: Client, old: Mapping[str, Any], server: Server, force: bool) -> None:
    """An entry by address has no environment, and clients refuse one there: what a user put into it would be lost."""
    own = [block for block in map(old.get, _ENVIRONMENT) if isinstance(block, dict)]
    names = sorted({str(name) for block in own for name in block})
    if server.url and names and client.started(old) and not force:
        why = f"the entry there has variables of yours that an address has no place for: {', '.join(names)}."
        raise BusError("refused", why, "Take them out of the file, or give --force to drop them.")


def _kept(client: Client, old: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """The fresh entry with what a user added to the old one: further keys, an environment, a longer time-out."""
    merged = {key: value for key, value in old.items() if key not in _of_other_kind(client, fresh)}
    for key, value in fresh.items():
        known = merged.get(key)
        if key in _ENVIRONMENT and isinstance(known, dict):
            continue
        if isinstance(value, int) and not isinstance(value, bool) and _is_more(known, value):
            continue
        merged[key] = value
    return merged


def _is_more(known: Any, value: int) -> bool:
    return isinstance(known, (int, float)) and not isinstance(known, bool) and known >= value


def _of_other_kind(client: Client, fresh: Mapping[str, Any]) -> set[str]:
    """The keys that an entry for a program has and one for an address has not, or the other way round."""
    of_program = client.entry(Server("x"), client.servers).keys()
    of_address = client.entry(Server(url="x"), client.servers).keys() if client.url_key else set()
    environment = () if "command" in fresh else _ENVIRONMENT
    return {*of_program, *of_address, *environment} - fresh.keys()
