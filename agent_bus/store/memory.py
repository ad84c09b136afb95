"""The engine in memory: the same port without a disk, for tests of ours and of users. One process, safe for threads."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from agent_bus.errors import BusError, invalid
from agent_bus.store.codec import check_key, check_prefix, dump, parse
from agent_bus.store.locks import WAIT_S
from agent_bus.store.port import Doc, Exists, Stale, Unreadable, Value


class MemoryStore:
    """Documents in a dict, as the bytes that the files engine would write.

    Args:
        ring: called after each write (the ear of `store.watch.Watch`).
    """

    def __init__(self, ring: Callable[[], None] = lambda: None) -> None:
        self._ring = ring
        self._docs: dict[str, tuple[bytes, str]] = {}
        self._revisions = itertools.count(1)
        self._guard = threading.RLock()
        self._locks: dict[str, threading.RLock] = {}
        self._changed: list[str] = []

    def get(self, key: str) -> Doc | None:
        check_key(key)
        with self._guard:
            found = self._docs.get(key)
        return None if found is None else Doc(key, parse(key, found[0]), found[1])

    def list(self, prefix: str) -> Iterator[Doc]:
        for key in self.keys(prefix):
            if (doc := self.get(key)) is not None:
                yield doc

    def keys(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        with self._guard:
            return sorted(k for k in self._docs if k.rpartition("/")[0] == prefix)

    def folders(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        start = f"{prefix}/"
        with self._guard:
            rests = (k[len(start) :] for k in self._docs if k.startswith(start))
            return sorted({rest.split("/")[0] for rest in rests if "/" in rest})

    def exists(self, key: str) -> bool:
        check_key(key)
        with self._guard:
            return key in self._docs

    def create(self, key: str, value: Value, *, durable: bool = True, private: bool = False) -> Doc:
        check_key(key)
        data = dump(key, value)
        with self._guard:
            if key in self._docs:
                raise Exists(key)
            rev = self._put(key, data)
        self._ring()
        return Doc(key, value, rev)

    def replace(self, doc: Doc, value: Value, *, durable: bool = True) -> Doc:
        return self.move(doc, doc.key, value, durable=durable)

    def delete(self, doc: Doc) -> None:
        with self.lock(doc.name), self._guard:
            self._compare(doc)
            self._drop(doc.key)
        self._ring()

    def move(self, doc: Doc, key: str, value: Value, *, durable: bool = True) -> Doc:
        check_key(key)
        data = dump(key, value)
        if key.rpartition("/")[2] != doc.name:
            raise invalid("key", "must keep its name in a move")
        with self.lock(doc.name), self._guard:
            self._compare(doc)
            if key != doc.key:
                if key in self._docs:
                    raise Exists(key)
                self._drop(doc.key)
            rev = self._put(key, data)
        self._ring()
        return Doc(key, value, rev)

    @contextmanager
    def lock(self, name: str, pool: str = "doc", wait_s: float = WAIT_S) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(f"{pool}/{name.partition('.')[0]}", threading.RLock())
        if not lock.acquire(timeout=wait_s):
            raise BusError("busy", f"the lock of {name} was held too long by another thread.", "Try again in a moment.")
        try:
            yield
        finally:
            lock.release()

    def feed(self, prefix: str) -> MemoryFeed:
        check_prefix(prefix)
        return MemoryFeed(self, prefix)

    def since(self, place: int) -> tuple[Sequence[str], int]:
        """The keys changed since a place in the list of changes, and the place after them."""
        with self._guard:
            return self._changed[place:], len(self._changed)

    def sweep(self, older_than: float) -> None:
        """Nothing is left over in memory."""

    def close(self) -> None:
        """Nothing is held open."""

    def _put(self, key: str, data: bytes) -> str:
        rev = f"m{next(self._revisions)}-{time.time_ns():x}"
        self._docs[key] = data, rev
        self._changed.append(key)
        return rev

    def _drop(self, key: str) -> None:
        del self._docs[key]
        self._changed.append(key)

    def _compare(self, doc: Doc) -> None:
        check_key(doc.key)
        found = self._docs.get(doc.key)
        if found is None or found[1] != doc.rev:
            raise Stale(doc.key)


class MemoryFeed:
    """A feed over the memory engine (`store.port.Feed`); safe for threads."""

    def __init__(self, store: MemoryStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._place = 0
        self._guard = threading.Lock()

    def poll(self, full: bool = False) -> list[tuple[str, Doc | Unreadable | None]]:
        """See `store.port.Feed.poll`; nothing is ever missed here."""
        with self._guard:
            keys, self._place = self._store.since(self._place)
        mine = {k for k in keys if k.rpartition("/")[0] == self._prefix}
        return [(key, self._store.get(key)) for key in sorted(mine)]

    def changes(self, full: bool = False) -> Iterator[tuple[str, Doc | Unreadable | None]]:
        """`poll` one by one."""
        yield from self.poll(full)
