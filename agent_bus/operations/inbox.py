"""The index of an inbox: which task is next and who holds which, without listing the folder at each receive."""

from __future__ import annotations

import heapq
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain.task import IN_PROGRESS, PENDING, aged_rank, inbox, rank
from agent_bus.store.port import Doc, Feed, Unreadable
from agent_bus.times import parse_stamp


@dataclass(frozen=True, slots=True)
class Held:
    """A task in progress, as far as the index must know it: key, worker label and the holder's fields."""

    key: str
    worker: str
    holder: dict[str, Any]


class InboxIndex:
    """What lies in one inbox, kept by a feed; safe for threads. Only hints: every candidate is read again
    before its claim.

    Args:
        feed: the changes of the inbox.
        ageing_s, fifo: the settings `ageing_s` and `order`.
    """

    def __init__(self, feed: Feed, ageing_s: int, fifo: bool) -> None:
        self._feed = feed
        self._ageing_s = ageing_s
        self._fifo = fifo
        self._queued: dict[str, tuple[int, float]] = {}
        self._heaps: tuple[list[tuple[float, str]], ...] = ([], [], [])
        self._held: dict[str, Held] = {}
        self._expiries: dict[str, float] = {}
        self._strays: set[str] = set()
        self._revived_at = float("-inf")
        self._guard = threading.Lock()

    def update(self, full: bool = False) -> None:
        """Takes in what has changed; `full` lists the folder in this call."""
        with self._guard:
            for key, doc in self._feed.changes(full):
                self._take(key, doc)

    def next(self, now: datetime, skip: set[str]) -> str | None:
        """The key of the task that is first in order, "" excluded ones; None if nothing is queued."""
        with self._guard:
            heads = [
                (self._aged(r, h, now), *h) for r, heap in enumerate(self._heaps) if (h := self._head(heap, r, skip))
            ]
            return min(heads)[2] if heads else None

    def held(self) -> list[Held]:
        """The tasks in progress."""
        with self._guard:
            return list(self._held.values())

    def strays(self) -> list[str]:
        """Keys of files that are unreadable or belong elsewhere."""
        with self._guard:
            return sorted(self._strays)

    def revival_is_due(self, boot_s: float) -> bool:
        """True at most once a second: looking after the holders costs a look at each of their processes."""
        with self._guard:
            due = boot_s - self._revived_at >= 1.0
            if due:
                self._revived_at = boot_s
            return due

    def expiring(self, now: datetime) -> list[str]:
        """Keys of queued tasks whose time is over."""
        with self._guard:
            return sorted(k for k, t in self._expiries.items() if t <= now.timestamp())

    def oldest_s(self, now: datetime) -> int:
        """How long the oldest queued task has waited, in seconds; 0 if none is."""
        with self._guard:
            heads = [h[0] for r, heap in enumerate(self._heaps) if (h := self._head(heap, r, set()))]
            return max(0, int(now.timestamp() - min(heads))) if heads else 0

    def __len__(self) -> int:
        return len(self._queued)

    def forget(self, key: str) -> None:
        """Takes a key out until the feed names it again."""
        with self._guard:
            self._drop(key)

    def _aged(self, priority: int, head: tuple[float, str], now: datetime) -> int:
        if self._fifo:
            return 0
        return aged_rank(("high", "normal", "low")[priority], now.timestamp() - head[0], self._ageing_s)

    def _head(self, heap: list[tuple[float, str]], priority: int, skip: set[str]) -> tuple[float, str] | None:
        """The first live entry of a heap; entries whose task has moved on are thrown away here."""
        aside = []
        found = None
        while heap:
            created, key = heap[0]
            if self._queued.get(key) != (priority, created):
                heapq.heappop(heap)
            elif key in skip:
                aside.append(heapq.heappop(heap))
            else:
                found = heap[0]
                break
        for entry in aside:
            heapq.heappush(heap, entry)
        return found

    def _take(self, key: str, doc: Doc | Unreadable | None) -> None:
        self._strays.discard(key)
        if doc is None:
            self._drop(key)
            return
        status = doc.value.get("status") if isinstance(doc, Doc) else None
        if isinstance(doc, Doc) and status == PENDING:
            self._held.pop(key, None)
            self._queue(key, doc.value)
            return
        self._drop(key)
        if isinstance(doc, Doc) and status == IN_PROGRESS:
            self._held[key] = _held(key, doc.value)
        else:
            self._strays.add(key)

    def _queue(self, key: str, value: dict[str, Any]) -> None:
        entry = (rank(str(value.get("priority"))), _created(key, value))
        if self._queued.get(key) != entry:
            self._queued[key] = entry
            if expires := value.get("expires_at"):
                self._expiries[key] = _time(expires)
            heapq.heappush(self._heaps[entry[0]], (entry[1], key))

    def _drop(self, key: str) -> None:
        self._queued.pop(key, None)
        self._held.pop(key, None)
        self._expiries.pop(key, None)
        self._strays.discard(key)


def index(bus: Bus, agent: str) -> InboxIndex:
    """The index of an agent's inbox in this process."""
    prefix = inbox(agent)
    found = bus.memo.get(prefix)
    if found is None:
        made = InboxIndex(bus.store.feed(prefix), bus.settings.ageing_s, bus.settings.order == "fifo")
        found = bus.memo.setdefault(prefix, made)
    return found  # type: ignore[no-any-return]


def _created(key: str, value: dict[str, Any]) -> float:
    try:
        return parse_stamp(str(value.get("created_at", ""))).timestamp()
    except ValueError:
        return _from_id(key)


def _time(text: Any) -> float:
    """A stored time in seconds; one that cannot be read never comes."""
    try:
        return parse_stamp(str(text)).timestamp()
    except ValueError:
        return float("inf")


def _from_id(key: str) -> float:
    """The time in a task's id, for a document whose own time cannot be read."""
    digits = key.rpartition("/")[2][2:17]
    try:
        return datetime.strptime(digits + "+0000", "%Y%m%d-%H%M%S%z").timestamp()
    except ValueError:
        return 0.0


def _held(key: str, value: dict[str, Any]) -> Held:
    lease = value.get("lease")
    lease = lease if isinstance(lease, dict) else {}
    holder = lease.get("holder")
    return Held(key, str(lease.get("worker", "")), holder if isinstance(holder, dict) else {})
