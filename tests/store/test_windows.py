"""The branches for Windows, on any system."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bus.errors import BusError
from agent_bus.store import atomic
from agent_bus.store.files import FileStore
from agent_bus.store.port import Exists, Unreadable

KEY = "inbox/coder/t-1"
POSIX_RENAME, POSIX_OPEN = os.rename, os.open


def rename(source: str, target: str) -> None:
    """Windows' rename: a taken name is an error."""
    if os.path.lexists(target):
        raise FileExistsError(17, "File exists", target)
    POSIX_RENAME(source, target)


def open_file(path: str, flags: int, mode: int = 0o777, **more: Any) -> int:
    """Windows' open: a folder is no permission."""
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return POSIX_OPEN(path, flags, mode, **more)


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Windows, as far as the store sees it; the pauses it made."""
    pauses: list[float] = []
    monkeypatch.setattr(atomic, "WINDOWS", True)
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.delattr(os, "link")
    return pauses


@pytest.fixture
def durable(root: Path) -> Iterator[FileStore]:
    """A store with every fsync."""
    opened = FileStore(root)
    yield opened
    opened.close()


def failing(real: Callable[..., Any], times: int) -> Callable[..., Any]:
    """A call that somebody's open file makes fail a few times."""
    left = [times]

    def act(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise PermissionError(13, "The process cannot access the file")
        return real(*args, **kwargs)

    return act


def test_all_operations_work(durable: FileStore, root: Path) -> None:
    doc = durable.create(KEY, {"n": 1})
    with pytest.raises(Exists):
        durable.create(KEY, {"n": 2})
    doc = durable.replace(doc, {"n": 2})
    doc = durable.move(doc, "waiting/t-1", {"n": 3})
    assert durable.get("waiting/t-1") == doc
    taken = durable.create(KEY, {})
    with pytest.raises(Exists):
        durable.move(taken, "waiting/t-1", {})
    durable.delete(doc)
    assert list((root / ".bus" / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("call", "act"),
    [
        ("rename", lambda store, _: store.create("inbox/coder/t-2", {})),
        ("replace", lambda store, doc: store.replace(doc, {"n": 2})),
        ("rename", lambda store, doc: store.move(doc, "waiting/t-1", {"n": 2})),
        ("unlink", lambda store, doc: store.delete(doc)),
        ("open", lambda store, doc: store.get(KEY)),
    ],
)
def test_somebodys_open_file_is_waited_for(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, windows: list[float], call: str, act: Callable[..., Any]
) -> None:
    doc = store.create(KEY, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(getattr(os, call), 3))
        act(store, doc)
    assert len(windows) == 3


def test_the_wait_for_somebodys_open_file_is_bounded(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch, windows: list[float]
) -> None:
    doc = store.create(KEY, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing(os.replace, 10_000))
        with pytest.raises(BusError) as error:
            store.replace(doc, {"n": 2})
    assert error.value.code == "unavailable"
    assert 0 < sum(windows) < 5
    assert store.get(KEY) == doc
    assert list((root / ".bus" / "tmp").iterdir()) == []


def test_a_folder_with_a_documents_name_is_unreadable_at_once(
    store: FileStore, root: Path, windows: list[float]
) -> None:
    (root / "inbox" / "coder" / "t-1.json").mkdir(parents=True)
    with pytest.raises(Unreadable):
        store.get(KEY)
    assert windows == []


def test_a_file_that_stays_locked_is_unreadable_after_a_bounded_wait(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, windows: list[float]
) -> None:
    store.create(KEY, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(os.open, 10_000))
        with pytest.raises(Unreadable):
            store.get(KEY)
    assert 0 < sum(windows) < 5


def test_a_link_that_leaves_the_bus_is_refused(store: FileStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(b"{}")
    (root / "inbox" / "coder").mkdir(parents=True)
    try:
        (root / "inbox" / "coder" / "t-1.json").symlink_to(tmp_path / "secret.json")
    except OSError:
        pytest.skip("may not make links")
    with pytest.raises(BusError) as error:
        store.get(KEY)
    assert error.value.code == "refused"


def test_feeds_hear_writes_and_read_only_what_changed(store: FileStore, root: Path) -> None:
    other = FileStore(root, durable=False)
    old = other.create(KEY, {"n": 1})
    os.utime(root / "inbox/coder/t-1.json", (1_700_000_000, 1_700_000_000))
    feed = store.feed("inbox/coder")
    assert [key for key, _ in feed.poll(full=True)] == [KEY]
    assert feed.poll(full=True) == []
    new = other.create("inbox/coder/t-2", {"n": 2})
    assert feed.poll() == [("inbox/coder/t-2", new)]
    assert old.rev != new.rev
    other.close()
