"""What the many processes do; each function runs in a process of its own and starts together with its fellows."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_bus.store.files import FileStore
from agent_bus.store.journal import FileJournal
from agent_bus.store.layout import Layout
from agent_bus.store.locks import Locks
from agent_bus.store.port import Exists, Stale

PROCESSES = 8
NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
_PATIENCE_S = 30.0


def wait_until(is_so: Callable[[], bool]) -> None:
    """Waits a bounded time."""
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


def together(gate: Path, me: int, fellows: int = PROCESSES) -> None:
    """Returns in all fellows at about the same time."""
    (gate / f"ready-{me}").touch()
    wait_until(lambda: sum(name.startswith("ready-") for name in os.listdir(gate)) >= fellows)


def create_all(root: Path, gate: Path, me: int, count: int) -> list[int]:
    """Creates the same keys as everybody else; which of them were won."""
    store = FileStore(root, durable=False)
    together(gate, me)
    won = []
    for n in range(count):
        with suppress(Exists):
            store.create(f"inbox/coder/t-{n}", {"by": me})
            won.append(n)
    return won


def count_up(root: Path, gate: Path, me: int, count: int) -> int:
    """Adds one to a counter so many times by compare-and-swap; how often it lost."""
    store = FileStore(root, durable=False)
    together(gate, me)
    lost = 0
    for _ in range(count):
        while True:
            doc = store.get("status/counter")
            assert doc is not None
            try:
                store.replace(doc, {"n": doc.value["n"] + 1, "by": me})
                break
            except Stale:
                lost += 1
    return lost


def push_around(root: Path, gate: Path, me: int, count: int) -> int:
    """Moves one document from folder to folder, against the others; how many moves it made."""
    store = FileStore(root, durable=False)
    together(gate, me, PROCESSES)
    made = 0
    for n in range(count):
        for place in ("inbox/a", "inbox/b", "waiting"):
            doc = store.get(f"{place}/t-1")
            if doc is None:
                continue
            target = ("inbox/a", "inbox/b", "waiting")[(n + me) % 3]
            with suppress(Stale, Exists):
                store.move(doc, f"{target}/t-1", {"moves": doc.value["moves"] + 1, "belongs": target})
                made += target != place or doc.value["belongs"] == target
    (gate / f"done-{me}").touch()
    return made


def look_for_copies(root: Path, gate: Path, me: int, fellows: int) -> tuple[int, list[str]]:
    """Looks at three folders until the fellows are done: (looks, times when two copies were there at once)."""
    store = FileStore(root, durable=False)
    together(gate, me)
    places = ("inbox/a/t-1", "inbox/b/t-1", "waiting/t-1")
    looks, copies = 0, []
    while sum(name.startswith("done-") for name in os.listdir(gate)) < fellows:
        looks += 1
        first = {key: doc.rev for key in places if (doc := store.get(key))}
        between = {key: doc.rev for key in places if (doc := store.get(key))}
        again = {key: doc.rev for key in places if (doc := store.get(key))}
        stayed = {key for key, rev in first.items() if again.get(key) == rev}  # no revision ever comes back
        if stayed and between.keys() - stayed:
            copies.append(f"{stayed} and {between.keys() - stayed}")
    return looks, copies


def write_lines(root: Path, gate: Path, me: int, count: int) -> None:
    """Writes lines into the journal."""
    state = root / ".bus"
    journal = FileJournal(state / "journal", Locks(str(state / "locks")))
    together(gate, me)
    for n in range(count):
        journal.write(NOON, {"event": "test", "by": me, "n": n})


def make_layout(root: Path, gate: Path, me: int) -> dict[str, Any]:
    """Makes the bus folder."""
    layout = Layout.of(root)
    together(gate, me)
    layout.make(NOON)
    return layout.read_format()


def create_one(root: Path, key: str) -> None:
    """Creates a document."""
    store = FileStore(root, durable=False)
    store.create(key, {"by": os.getpid()})
    store.close()


def hold_lock(root: Path, gate: Path, name: str) -> str:
    """Holds a lock until somebody makes the file `release`."""
    locks = Locks(str(root / ".bus" / "locks"))
    with locks.hold(name):
        (gate / "held").touch()
        wait_until((gate / "release").exists)
    return "released"
