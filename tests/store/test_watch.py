"""Waking up early."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from agent_bus.store.files import FileStore
from agent_bus.store.memory import MemoryStore
from agent_bus.store.watch import FolderWatch, Watch
from tests.store import workers

PATIENCE_S = 20.0


@pytest.fixture
def watch(store: FileStore) -> Iterator[FolderWatch]:
    """A watch over the store's hints."""
    opened = FolderWatch(store.hint_folder())
    yield opened
    opened.close()


async def wakes(watch: Watch, act: Callable[[], object]) -> bool:
    """Whether a listener wakes for what is done after it began to listen, long before its timer."""
    with watch.listen() as ear:
        act()
        start = time.monotonic()
        await ear.wait(PATIENCE_S)
        return time.monotonic() - start < PATIENCE_S


@pytest.mark.anyio
async def test_a_write_by_another_process_wakes_a_listener(pool: Pool, watch: FolderWatch, root: Path) -> None:
    assert await wakes(watch, lambda: pool.apply_async(workers.create_one, (root, "inbox/coder/t-1")))


@pytest.mark.anyio
async def test_every_listener_is_woken(pool: Pool, watch: FolderWatch, root: Path) -> None:
    async def wait_and_write() -> list[bool]:
        return await asyncio.gather(*(wakes(watch, lambda: None) for _ in range(5)), wakes(watch, write))

    def write() -> None:
        pool.apply_async(workers.create_one, (root, "inbox/coder/t-1"))

    assert all(await wait_and_write())


@pytest.mark.anyio
async def test_a_hint_between_the_look_and_the_wait_is_kept() -> None:
    watch = Watch()
    with watch.listen() as ear:
        watch.ring()
        await asyncio.wait_for(ear.wait(PATIENCE_S), PATIENCE_S / 2)


@pytest.mark.anyio
async def test_without_a_hint_a_wait_ends_by_its_timer_and_a_later_hint_is_heard() -> None:
    watch = Watch()
    with watch.listen() as ear:
        await ear.wait(0.01)
        watch.ring()
        await asyncio.wait_for(ear.wait(PATIENCE_S), PATIENCE_S / 2)


@pytest.mark.anyio
async def test_a_ring_from_a_thread_wakes(store: FileStore) -> None:
    watch = Watch()
    assert await wakes(watch, lambda: threading.Thread(target=watch.ring).start())


@pytest.mark.anyio
async def test_the_memory_engine_rings_for_each_kind_of_write() -> None:
    watch = Watch()
    store = MemoryStore(watch.ring)
    doc = store.create("inbox/x/a", {})
    assert await wakes(watch, lambda: store.create("inbox/x/b", {}))
    assert await wakes(watch, lambda: store.replace(doc, {}))
    doc = store.get("inbox/x/a") or doc
    assert await wakes(watch, lambda: store.delete(doc))


def test_a_ring_after_the_listeners_loop_has_ended_is_harmless() -> None:
    watch = Watch()

    async def listen() -> Callable[[], None]:
        with watch.listen() as ear:
            return ear.wake

    wake = asyncio.run(listen())
    wake()
    watch.ring()


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_watched_leaves_the_timer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch = FolderWatch(str(tmp_path / "missing"))
    with watch.listen() as ear:
        await ear.wait(0.01)
    watch.close()
    assert "cannot watch" in caplog.text


@pytest.mark.anyio
async def test_a_watch_begins_to_work_once_its_folder_is_there(
    pool: Pool, store: FileStore, root: Path, tmp_path: Path
) -> None:
    (root / ".bus" / "hints").rename(tmp_path / "aside")
    watch = FolderWatch(store.hint_folder())
    with watch.listen() as ear:
        await ear.wait(0.01)
    (tmp_path / "aside").rename(root / ".bus" / "hints")
    assert await wakes(watch, lambda: pool.apply_async(workers.create_one, (root, "inbox/coder/t-1")))
    watch.close()
