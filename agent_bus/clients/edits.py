"""What can be done to one file of a client: pure, from the bytes that are there to those that shall be."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agent_bus.clients import JSONC, TOML, Client, Server, documents, entries
from agent_bus.clients.entries import ADDED, OTHER, REMOVED, UNCHANGED
from agent_bus.clients.hunks import Hunk, apply, decode, encode
from agent_bus.clients.jsonc import BrokenText
from agent_bus.errors import BusError


@dataclass(frozen=True)
class Change:
    """The outcome of an edit.

    Args:
        what: `added`, `updated`, `unchanged`, `removed` or `kept`.
        after: the bytes that the file shall have; None if it shall not be there.
        hunks: what was changed in its text; None if that cannot be undone by cutting out.
        note: the key of a message that says more, "" for none.
        text: a whole text of ours, file or block, that stands there now; "" for none.
        beside: what goes into `<file>.new`, as a text of ours there was edited and stays.
    """

    what: str
    after: bytes | None
    hunks: tuple[Hunk, ...] | None = ()
    note: str = ""
    text: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Known:
    """What the manifest says of a file.

    Args:
        made: there was no file before us.
        texts: digests of the texts that we put there (`roles.known.digest`): others were edited since.
    """

    made: bool = False
    texts: Collection[str] = ()


class Edit(Protocol):
    """One thing of ours in one file."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def name(self) -> str:
        """What it is, as the manifest names it ("" = it is not kept there); of two clients that put a thing of one
        name into one file, the last takes it out."""
        ...

    @property
    def private(self) -> bool:
        """Whether a new file is readable for its user alone."""
        ...

    @property
    def signed(self) -> bool:
        """Whether it is known as ours without the manifest."""
        ...

    def put(self, before: bytes | None, known: Known) -> Change:
        """Puts it there. `before` is None if there is no file.

        Raises:
            BusError: `corrupt` if the file is broken, `conflict`, `refused`.
        """
        ...

    def take(self, now: bytes, known: Known) -> Change:
        """Takes it out; the rest stays. A file that was made for it goes too if nothing else is left in it.

        Raises:
            BusError: as `put`.
        """
        ...


@dataclass(frozen=True)
class EntryEdit:
    """Our entry among a client's servers."""

    path: Path
    client: Client
    server: Server
    key: str
    private: bool
    approve: bool = False
    force: bool = False

    @property
    def name(self) -> str:
        """The kind of thing: one a file."""
        return "entry"

    @property
    def signed(self) -> bool:
        """By what it starts."""
        return True

    def by_hand(self) -> str:
        """A file with our entry alone."""
        return whole_file(self.client, self.server, self.key)

    def put(self, before: bytes | None, known: Known) -> Change:
        """Adds the entry, or sets what we manage in the one that is there."""
        text = decode(before or b"", str(self.path))
        try:
            planned = entries.plan_entry(self.client, text, self.server, self.key, self.approve, self.force)
        except BrokenText as error:
            raise broken(self.path, error) from None
        return _change(self.path, before, text, planned.what, planned.hunks)

    def take(self, now: bytes, known: Known) -> Change:
        """Removes every entry of ours."""
        return _taken(self.path, now, self.client.format, known.made, self._without)

    def _without(self, text: str) -> str:
        while hunks := entries.plan_removal(self.client, text).hunks:
            text = apply(text, hunks)
        return text


@dataclass(frozen=True)
class ElementEdit:
    """One element of ours in an array of a client's settings (JSON).

    Args:
        signed: whether the element itself shows that it is ours, and not of the user's own hand.
    """

    path: Path
    name: str
    keys: tuple[str, ...]
    element: Any
    is_ours: Callable[[Any], bool]
    private: bool
    signed: bool = True
    form: str = "json"

    def by_hand(self) -> str:
        """A file with the element alone."""
        return _nested(self.keys, [self.element])

    def put(self, before: bytes | None, known: Known) -> Change:
        """Adds the element; one of ours that says something else gives way to it."""
        text = decode(before or b"", str(self.path))
        try:
            found = documents.value(documents.parse(text, self.form), self.keys)
            mine = [one for one in found if self.is_ours(one)] if isinstance(found, list) else []
            if mine == [self.element]:
                return Change(UNCHANGED, before)
            if mine:
                return self._again(text)
            hunks = tuple(documents.add_element(text, self.form, self.keys, self.element))
        except BrokenText as error:
            raise broken(self.path, error) from None
        return _change(self.path, before, text, ADDED, hunks)

    def take(self, now: bytes, known: Known) -> Change:
        """Removes every element of ours."""
        return _taken(self.path, now, self.form, known.made, self._without)

    def _again(self, text: str) -> Change:
        bare = self._without(text)
        after = apply(bare, documents.add_element(bare, self.form, self.keys, self.element))
        return Change(entries.UPDATED, encode(after, str(self.path)), None)

    def _without(self, text: str) -> str:
        while hunks := documents.remove_element(text, self.form, self.keys, self.is_ours):
            text = apply(text, hunks)
        return text


@dataclass(frozen=True)
class DeadEntryEdit:
    """Takes entries of ours, or of the seed, out of a place that the client never looks at; puts nothing anywhere."""

    path: Path
    client: Client
    keys: tuple[str, ...]
    name: str = ""
    private: bool = True
    signed: bool = False

    def put(self, before: bytes | None, known: Known) -> Change:
        """Removes them, and the map if nothing is left in it."""
        if before is None:
            return Change(UNCHANGED, None)
        return _taken(self.path, before, JSONC, False, self._without)

    def take(self, now: bytes, known: Known) -> Change:
        """Nothing of ours is to be undone here."""
        return Change(UNCHANGED, now)

    def _without(self, text: str) -> str:
        while servers := documents.value(documents.parse(text, JSONC), self.keys):
            found = servers.items() if isinstance(servers, dict) else ()
            dead = next((key for key, entry in found if entries.kind(self.client, key, entry) != OTHER), None)
            if dead is None:
                return text
            gone = self.keys if len(servers) == 1 else (*self.keys, dead)
            text = apply(text, documents.remove(text, JSONC, gone))
        return text


def _taken(path: Path, now: bytes, form: str, made: bool, without: Callable[[str], str]) -> Change:
    text = decode(now, str(path))
    try:
        bare = without(text)
        gone = made and documents.is_empty(bare, form)
    except BrokenText as error:
        raise broken(path, error) from None
    if bare == text:
        return Change(UNCHANGED, now)
    return Change(REMOVED, None if gone else encode(bare, str(path)), None)


def whole_file(client: Client, server: Server, key: str) -> str:
    """A client's file that holds our entry alone."""
    entry, keys = client.entry(server, client.servers), (*client.servers, key)
    return apply("", documents.set_members("", TOML, keys, entry)) if client.format == TOML else _nested(keys, entry)


def _nested(keys: Sequence[str], value: object) -> str:
    for key in reversed(keys):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def broken(path: Path, error: BrokenText) -> BusError:
    """The error for a file that cannot be read, or not be changed safely, with its line."""
    return BusError("corrupt", f"{path}: {error}.", "Mend that line, or add the entry by hand; nothing was written.")


def _change(path: Path, before: bytes | None, text: str, what: str, hunks: tuple[Hunk, ...]) -> Change:
    return Change(what, encode(apply(text, hunks), str(path)) if hunks else before, hunks)
