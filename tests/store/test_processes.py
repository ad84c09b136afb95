"""Many real processes on one folder."""

from collections import Counter
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from agent_bus.errors import BusError
from agent_bus.store.files import FileStore
from agent_bus.store.locks import Locks
from tests.store import workers
from tests.store.pool import run_all
from tests.store.workers import PROCESSES, wait_until


def test_of_eight_processes_that_create_the_same_keys_each_key_has_one_winner(
    pool: Pool, store: FileStore, root: Path, gate: Path
) -> None:
    won = run_all(pool, workers.create_all, root, gate, 500)
    assert Counter(n for keys in won for n in keys) == Counter(range(500))
    docs = {int(doc.name[2:]): doc.value["by"] for doc in store.list("inbox/coder")}
    assert docs == {n: me for me, keys in enumerate(won) for n in keys}
    assert list((root / ".bus" / "tmp").iterdir()) == []


def test_no_increment_by_compare_and_swap_is_lost(pool: Pool, store: FileStore, root: Path, gate: Path) -> None:
    store.create("status/counter", {"n": 0})
    run_all(pool, workers.count_up, root, gate, 100)
    found = store.get("status/counter")
    assert found is not None
    assert found.value["n"] == 100 * PROCESSES
    assert list((root / ".bus" / "tmp").iterdir()) == []


def test_a_document_that_is_pushed_around_is_never_in_two_places(
    pool: Pool, store: FileStore, root: Path, gate: Path
) -> None:
    store.create("inbox/a/t-1", {"moves": 0, "belongs": "inbox/a"})
    movers = PROCESSES - 1
    pushing = [pool.apply_async(workers.push_around, (root, gate, me, 60)) for me in range(movers)]
    looking = pool.apply_async(workers.look_for_copies, (root, gate, movers, movers))
    assert all(result.get(timeout=50) >= 0 for result in pushing)
    looks, copies = looking.get(timeout=50)
    assert looks > 10
    assert copies == []
    docs = [doc for place in ("inbox/a", "inbox/b", "waiting") for doc in store.list(place)]
    assert len(docs) == 1
    assert docs[0].key == f"{docs[0].value['belongs']}/t-1"
    assert docs[0].value["moves"] > movers


def test_another_processs_write_is_told_by_a_feed_without_a_full_look(pool: Pool, store: FileStore, root: Path) -> None:
    feed = store.feed("inbox/coder")
    feed.poll()
    pool.apply(workers.create_one, (root, "inbox/coder/t-1"))
    assert [key for key, _ in feed.poll()] == ["inbox/coder/t-1"]


def test_a_lock_held_by_another_process_is_busy_within_the_bound_and_free_afterwards(
    pool: Pool, root: Path, gate: Path
) -> None:
    held = pool.apply_async(workers.hold_lock, (root, gate, "t-1"))
    wait_until((gate / "held").exists)
    locks = Locks(str(root / ".bus" / "locks"))
    with pytest.raises(BusError) as error, locks.hold("t-1", wait_s=0.05):
        raise AssertionError("taken twice")
    assert error.value.code == "busy"
    with locks.hold("another name"):
        pass
    (gate / "release").touch()
    assert held.get(timeout=20) == "released"
    with locks.hold("t-1"):
        pass
    locks.close()
