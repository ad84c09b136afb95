"""The store: documents with compare-and-swap, and not one word of the domain.

Terms:
    key       a relative path of safe segments, `/` between them, without `.json`: `inbox/coder/t-20260307-101500-001`
    name      the last segment of a key; locks are by name, so a document keeps its lock when it moves
    document  a JSON object; keys that a reader does not know stay where they are
    revision  a text that changes with every write, also one by hand; never stored, never reused
    feed      a reader's place in the stream of changes under a prefix; it may tell too much, and what it misses (an
              edit by hand, a hint lost by a kill) a full look finds
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

Value = dict[str, Any]


class Exists(Exception):
    """There is a document with this key already."""


class Stale(Exception):
    """The document is not (or no longer) at the revision that the caller has seen."""


class Unreadable(Exception):
    """The bytes under a key are no JSON object.

    Args:
        key: the key.
        reason: why, in words.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Doc:
    """A document as it was read: key, value and the revision to compare with."""

    key: str
    value: Value
    rev: str

    @property
    def name(self) -> str:
        """The last segment of the key."""
        return self.key.rpartition("/")[2]


class Feed(Protocol):
    """Changes under one prefix since the last look."""

    def poll(self, full: bool = False) -> list[tuple[str, Doc | Unreadable | None]]:
        """Keys that may have changed, each with its document now (None: gone).

        The first look tells everything. `full` lists the folder anew in this call, whatever the hints say.
        """

    def changes(self, full: bool = False) -> Iterator[tuple[str, Doc | Unreadable | None]]:
        """`poll` one by one, for whoever keeps little of each; it must be read to its end."""


class Store(Protocol):
    """An engine. Every write is atomic: a reader sees the document before or after it, never between.

    `durable` asks for what survives a power cut (fsync of file and folder); engines may do more.
    All methods may raise BusError `busy` (a lock bound passed), `unavailable` (disk full, folder missing or read-only),
    `invalid` for what is no key, and `refused` for one behind a link that leaves the bus folder (no list has those).
    An `unavailable` write has changed nothing, unless it was the sync of a folder that failed, after the commit.
    """

    def get(self, key: str) -> Doc | None:
        """The document, or None. Raises Unreadable."""

    def list(self, prefix: str) -> Iterator[Doc]:
        """The documents directly below a prefix, in key order; unreadable ones are left out."""

    def keys(self, prefix: str) -> Sequence[str]:
        """The keys directly below a prefix, in order, without reading the documents."""

    def folders(self, prefix: str) -> Sequence[str]:
        """The names of the folders directly below a prefix, in order."""

    def exists(self, key: str) -> bool:
        """Whether something is stored under the key; cheaper than get."""

    def create(self, key: str, value: Value, *, durable: bool = True, private: bool = False) -> Doc:
        """A new document. Raises Exists; BusError `invalid` (not JSON) and `too_large`, as all writes.

        `private`: other users of the system cannot read it (mode 0600); Windows' profiles are closed to others anyway.

        It takes no lock, so that code that holds the lock of one name may create documents of other names.
        """

    def replace(self, doc: Doc, value: Value, *, durable: bool = True) -> Doc:
        """The document's next value. Raises Stale."""

    def delete(self, doc: Doc) -> None:
        """Takes the document away. Raises Stale."""

    def move(self, doc: Doc, key: str, value: Value, *, durable: bool = True) -> Doc:
        """New value and new key (of the same name) in one act: never a second copy. Raises Stale, Exists
        (Stale first: of two movers the slower one is not told that the target exists).

        On files it is two steps under the name's lock (content in place, then rename); a reader between them sees the
        new content under the old key, so the content must say where it belongs.
        """

    def lock(self, name: str, pool: str = "doc", wait_s: float = 5.0) -> AbstractContextManager[None]:
        """The lock of a name (a document's or any text), re-entrant within a thread; bounded wait, then `busy`."""

    def feed(self, prefix: str) -> Feed:
        """A new feed over the documents directly below a prefix."""

    def sweep(self, older_than: float) -> None:
        """Clears what killed writers left before a time, in seconds since the epoch."""

    def close(self) -> None:
        """Releases what the engine holds open; further use is an error."""
