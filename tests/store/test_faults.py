"""Full disks, read-only and missing folders: `unavailable`, the store unchanged, no temp file left."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_bus.errors import BusError
from agent_bus.store import atomic, exclusive
from agent_bus.store.files import FileStore
from agent_bus.store.port import Doc
from tests.contract.engines import make_folder

KEY, TARGET = "inbox/coder/t-1", "archive/2026-03/t-1"
Act = Callable[[FileStore, Doc], Any]
ACTS: dict[str, Act] = {
    "create": lambda store, _: store.create("inbox/coder/t-2", {"n": 2}),
    "replace": lambda store, doc: store.replace(doc, {"n": 2}),
    "move": lambda store, doc: store.move(doc, TARGET, {"n": 2}),
    "delete": lambda store, doc: store.delete(doc),
}
BEFORE_THE_COMMIT = {
    "create": ("open", "write", "utime", "fsync", "link"),
    "replace": ("open", "write", "utime", "fsync", "replace"),
    "move": ("open", "write", "utime", "fsync", "replace", "mkdir"),
    "delete": ("unlink",),
}
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE, errno.ENOTCONN)


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file but the hints and locks."""
    paths = (p for p in root.rglob("*") if p.is_file() and p.parent.name not in ("hints", "locks"))
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in paths}


def failing(real: Callable[..., Any], number: int, partly: bool = False) -> Callable[..., Any]:
    """A call that fails; `partly` lets the first one do half of its work."""
    state = {"first": True}

    def fail(*args: Any, **kwargs: Any) -> Any:
        if partly and state["first"]:
            state["first"] = False
            return real(args[0], args[1][: len(args[1]) // 2])
        raise OSError(number, os.strerror(number), *[a for a in args[:1] if isinstance(a, str)])

    return fail


def check_unavailable(store: FileStore, root: Path, act: Act, doc: Doc) -> None:
    before = snapshot(root)
    with pytest.raises(BusError) as error:
        act(store, doc)
    assert error.value.code == "unavailable"
    assert error.value.hint
    assert snapshot(root) == before


@pytest.mark.req("core:44:store")
@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize(
    ("name", "call"), [(name, call) for name, calls in BEFORE_THE_COMMIT.items() for call in calls]
)
def test_an_error_of_the_disk_before_the_commit_leaves_everything_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: str, number: int
) -> None:
    store = FileStore(root)
    doc = store.create(KEY, {"n": 1})
    store.delete(store.create("inbox/coder/warm", {}))
    with store.lock("t-1"), monkeypatch.context() as patch:
        patch.setattr(os, call, failing(getattr(os, call), number))
        with pytest.raises(BusError) as error:
            ACTS[name](store, doc)
    assert error.value.code == "unavailable"
    assert store.get(KEY) == doc
    assert sorted(snapshot(root)) == ["inbox/coder/t-1.json"]
    assert snapshot(root)["inbox/coder/t-1.json"] == b'{\n  "n": 1\n}\n'
    store.close()


@pytest.mark.req("core:44:store")
@pytest.mark.parametrize("name", ["create", "replace", "move"])
def test_a_disk_that_fills_up_within_a_write_leaves_no_half_document(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    doc = store.create(KEY, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(os.write, errno.ENOSPC, partly=True))
        with pytest.raises(BusError) as error:
            ACTS[name](store, doc)
    assert error.value.code == "unavailable"
    assert sorted(snapshot(root)) == ["inbox/coder/t-1.json"]
    assert store.get(KEY) == doc


def test_a_move_whose_rename_fails_is_an_unfinished_move_that_can_be_finished(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = store.create(KEY, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(exclusive, "rename", failing(exclusive.rename, errno.EIO))
        with pytest.raises(BusError) as error:
            store.move(doc, TARGET, {"n": 2})
    assert error.value.code == "unavailable"
    found = store.get(KEY)
    assert found is not None
    assert found.value == {"n": 2}
    moved = store.move(found, TARGET, found.value)
    assert store.get(TARGET) == moved
    assert store.get(KEY) is None


def test_a_create_that_beats_a_move_to_its_key_is_not_overwritten(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = store.create(KEY, {"n": 1})
    other = FileStore(root, durable=False)
    real = atomic.put_over

    def put_over(temp: str, path: str, durable: bool = True) -> None:
        real(temp, path, durable)
        other.create(TARGET, {"n": "other"})

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "put_over", put_over)
        with pytest.raises(Exception, match=TARGET):
            store.move(doc, TARGET, {"n": 2})
    found = store.get(TARGET)
    assert found is not None
    assert found.value == {"n": "other"}
    other.close()


def test_a_file_system_without_links_still_creates_exclusively(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(os.link, errno.EPERM))
    for without_exclusive_rename in (False, True):
        if without_exclusive_rename:
            monkeypatch.setattr(exclusive, "rename", lambda *_: False)
        key = f"inbox/coder/t-{without_exclusive_rename}"
        doc = store.create(key, {"n": 1})
        with pytest.raises(Exception, match=key):
            store.create(key, {"n": 2})
        assert store.get(key) == doc
        moved = store.move(doc, f"waiting/t-{without_exclusive_rename}", {"n": 3})
        assert store.get(moved.key) == moved


def test_a_file_system_that_cannot_sync_folders_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(root)
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    doc = store.create(KEY, {"n": 1})
    assert store.move(doc, TARGET, {"n": 2}) == store.get(TARGET)
    store.close()


def test_a_fault_of_ours_is_not_called_a_fault_of_the_disk(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", failing(os.write, errno.EBADF))
    with pytest.raises(OSError, match="Bad file"):
        store.create(KEY, {})


@pytest.mark.parametrize("gone", [".", ".bus/tmp", ".bus/locks"])
def test_a_missing_folder_is_unavailable(store: FileStore, root: Path, gone: str) -> None:
    doc = store.create(KEY, {"n": 1})
    shutil.rmtree(root / gone)
    for name, act in ACTS.items():
        if (gone, name) in ((".bus/tmp", "delete"), (".bus/locks", "create")):  # need not have it
            continue
        with pytest.raises(BusError) as error:
            act(store, doc)
        assert error.value.code == "unavailable"
    assert root.exists() == (gone != ".")
    if gone == ".bus/locks":
        with pytest.raises(BusError) as error, store.lock("t-1"):
            raise AssertionError("locked")
        assert error.value.code == "unavailable"


def test_a_file_in_a_folders_place_is_unavailable(store: FileStore, root: Path) -> None:
    (root / "inbox").write_text("mine")
    with pytest.raises(BusError) as error:
        store.create(KEY, {})
    assert error.value.code == "unavailable"
    assert store.get(KEY) is None
    assert list(store.keys("inbox/coder")) == []
    assert list(store.folders("inbox")) == []
    assert (root / "inbox").read_text() == "mine"
    assert list((root / ".bus" / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_an_error_while_reading_is_unavailable_and_never_called_an_unreadable_or_missing_document(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    doc = store.create(KEY, {"n": 1})
    feed = store.feed("inbox/coder")
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "read", failing(atomic.read, number))
        patch.setattr(os, "listdir", failing(os.listdir, number))
        for act in (lambda: store.get(KEY), lambda: store.keys("inbox/coder"), lambda: store.delete(doc), feed.poll):
            with pytest.raises(BusError) as error:
                act()
            assert error.value.code == "unavailable"
    assert feed.poll() == [(KEY, doc)]


# --- a real disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs to mount a file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("may not mount a file system")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(filler: Path) -> None:
    """Uses up all room."""
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        for _ in range(1000):
            file.write(b"x" * 4096)
        raise AssertionError("the disk has no end")


def open_on(disk: Path) -> tuple[FileStore, Doc]:
    store = FileStore(make_folder(disk / "bus"))
    doc = store.create(KEY, {"n": 1})
    (disk / "bus" / "archive" / "2026-03").mkdir(parents=True)
    return store, doc


@pytest.mark.req("core:44:store")
def test_a_full_disk_refuses_writes_keeps_what_is_there_and_works_again_with_room(small_disk: Path) -> None:
    store, doc = open_on(small_disk)
    filler = small_disk / "filler"
    fill(filler)
    for act in ("create", "replace", "move"):
        check_unavailable(store, small_disk / "bus", ACTS[act], doc)
    assert store.get(KEY) == doc
    filler.unlink()
    assert store.move(doc, TARGET, {"n": 2}) == store.get(TARGET)
    store.close()


@pytest.mark.req("core:44:store")
def test_a_read_only_disk_refuses_writes_and_can_be_read(small_disk: Path) -> None:
    store, doc = open_on(small_disk)
    store.close()
    reader = FileStore(small_disk / "bus")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for act in ACTS.values():
        check_unavailable(reader, small_disk / "bus", act, doc)
    assert reader.get(KEY) == doc
    assert list(reader.list("inbox/coder")) == [doc]
    assert reader.feed("inbox/coder").poll() == [(KEY, doc)]
    reader.close()


def test_what_need_not_be_durable_is_exchanged_where_the_system_can_and_replaced_where_it_cannot(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = store.create(KEY, {"n": 1})
    for number, can in enumerate((True, False), 2):
        if not can:
            monkeypatch.setattr(exclusive, "exchange", lambda *_: False)
        doc = store.replace(doc, {"n": number})
        assert store.get(KEY) == doc
        assert os.listdir(root / ".bus" / "tmp") == []
