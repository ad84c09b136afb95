"""The engines that keep the contract: a new one adds its name and its maker here."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from agent_bus.store.files import FileStore
from agent_bus.store.memory import MemoryStore
from agent_bus.store.port import Store

STATE_FOLDERS = ("tmp", "locks", "hints", "journal", "quarantine")


def make_folder(root: Path) -> Path:
    """An empty bus folder, without the fsyncs of a real one."""
    for name in STATE_FOLDERS:
        (root / ".bus" / name).mkdir(parents=True)
    return root


@contextmanager
def files(folder: Path) -> Iterator[tuple[Store, Store]]:
    """Two handles of one bus folder, as two processes have them."""
    root = make_folder(folder / "bus")
    one, other = FileStore(root, durable=False), FileStore(root, durable=False)
    yield one, other
    one.close()
    other.close()


@contextmanager
def memory(folder: Path) -> Iterator[tuple[Store, Store]]:
    """The memory engine lives in one process: both handles are the same."""
    store = MemoryStore()
    yield store, store


ENGINES: dict[str, Callable[[Path], AbstractContextManager[tuple[Store, Store]]]] = {"files": files, "memory": memory}
