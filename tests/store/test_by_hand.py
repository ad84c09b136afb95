"""What people, editors and sync tools do to the files."""

import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bus.errors import BusError
from agent_bus.store.codec import READ_BYTES
from agent_bus.store.files import FileStore
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

KEY = "inbox/coder/t-1"
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and plain links")


def edit_in_place(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def edit_by_rename(path: Path, text: str) -> None:
    beside = path.with_suffix(".swp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def edit_with_old_times(path: Path, text: str) -> None:
    times = path.stat()
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


Edit = Callable[[Path, str], None]
EDITS: tuple[Edit, ...] = (edit_in_place, edit_by_rename, edit_with_old_times)


def put(root: Path, name: str, data: bytes) -> Path:
    path = root / "inbox" / "coder" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.req("core:40:stale")
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_by_hand_makes_a_read_document_stale_and_is_kept(store: FileStore, root: Path, edit: Edit) -> None:
    doc = store.create(KEY, {"n": 1})
    edit(root / "inbox/coder/t-1.json", '{"n":2}\n' if edit is not edit_with_old_times else '{\n  "n": 2\n}\n')
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.replace(doc, {"n": 3}),
        lambda: store.delete(doc),
        lambda: store.move(doc, "waiting/t-1", {"n": 3}),
    )
    for act in acts:
        with pytest.raises(Stale):
            act()
    found = store.get(KEY)
    assert found is not None
    assert found.value == {"n": 2}
    assert store.replace(found, {**found.value, "m": 1}).rev != found.rev


def test_each_write_sets_its_own_time_so_that_a_coarse_clock_brings_no_revision_back(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_772_877_500_123_456_700)
    store.create(KEY, {"n": 1})
    assert (root / "inbox/coder/t-1.json").stat().st_mtime_ns == 1_772_877_500_123_456_700


def test_a_file_is_json_that_people_can_read(store: FileStore, root: Path) -> None:
    store.create(KEY, {"z": "ナナ", "a": 1})
    assert (root / "inbox/coder/t-1.json").read_bytes() == '{\n  "z": "ナナ",\n  "a": 1\n}\n'.encode()


def test_unknown_keys_and_their_order_survive_a_rewrite(store: FileStore, root: Path) -> None:
    path = put(root, "t-1.json", b'\xef\xbb\xbf{\r\n"mine": {"z": 1, "a": [null]},\r\n"status": "pending"}')
    doc = store.get(KEY)
    assert doc is not None
    assert doc.value == {"mine": {"z": 1, "a": [None]}, "status": "pending"}
    store.replace(doc, {**doc.value, "status": "done"})
    assert list(json.loads(path.read_bytes()).items()) == [("mine", {"z": 1, "a": [None]}), ("status", "done")]


UNREADABLE = {
    "empty": b"",
    "blank": b" \r\n",
    "only a BOM": b"\xef\xbb\xbf",
    "half": b'{"task_id": "t-1", "instr',
    "NUL bytes": b"\0" * 512,
    "NUL in a text": b'{"a": "\0"}',
    "a list": b"[1]",
    "a number": b"1",
    "null": b"null",
    "merge marks": b"<<<<<<< HEAD\n{}\n",
    "two documents": b"{}{}",
    "100,000 brackets": b"[" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "NaN": b'{"a": NaN}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "bad UTF-8": b'{"a": "\xff"}',
    "too large": b" " * (READ_BYTES + 1),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_document_is_unreadable_with_a_reason_and_left_out_of_lists(
    store: FileStore, root: Path, data: bytes
) -> None:
    path = put(root, "t-1.json", data)
    good = store.create("inbox/coder/t-2", {"n": 1})
    with pytest.raises(Unreadable) as error:
        store.get(KEY)
    assert error.value.key == KEY
    assert error.value.reason
    assert list(store.list("inbox/coder")) == [good]
    assert list(store.keys("inbox/coder")) == [KEY, good.key]
    assert isinstance(dict(store.feed("inbox/coder").poll())[KEY], Unreadable)
    with pytest.raises(Exists):
        store.create(KEY, {})
    with pytest.raises(Stale):
        store.replace(Doc(KEY, {}, good.rev), {})
    assert path.read_bytes() == data


FOREIGN = (
    "x..json", "x .json", ".json", ".hidden.json", " x.json", "a:b.json", "note.md", "t-1.json.tmp", "t-1.JSON",
    "a\nb.json", os.fsdecode(b"\xff\xfe.json"), "n" * 245 + ".json",
)  # fmt: skip


@posix
@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_key_is_left_alone(store: FileStore, root: Path, name: str) -> None:
    good = store.create(KEY, {"n": 1})
    path = put(root, name, b'{"foreign": true}')
    assert list(store.list("inbox/coder")) == [good]
    assert list(store.keys("inbox/coder")) == [KEY]
    assert store.feed("inbox/coder").poll(full=True) == [(KEY, good)]
    assert path.read_bytes() == b'{"foreign": true}'


@posix
@pytest.mark.parametrize("name", ["x.", ".x", "a:b", os.fsdecode(b"\xff"), "n" * 250])
def test_a_folder_that_is_no_key_is_left_alone(store: FileStore, root: Path, name: str) -> None:
    store.create(KEY, {})
    (root / "inbox" / name).mkdir()
    assert list(store.folders("inbox")) == ["coder"]


@posix
@pytest.mark.req("core:43:no_hang")
def test_a_fifo_a_socket_folder_and_a_loop_are_unreadable_without_hanging(store: FileStore, root: Path) -> None:
    good = store.create("inbox/coder/good", {"n": 1})
    folder = root / "inbox" / "coder"
    os.mkfifo(folder / "fifo.json")
    (folder / "folder.json").mkdir()
    (folder / "loop.json").symlink_to("loop.json")
    for name in ("fifo", "folder", "loop"):
        key = f"inbox/coder/{name}"
        with pytest.raises(Unreadable):
            store.get(key)
        with pytest.raises(Stale):
            store.delete(Doc(key, {}, good.rev))
        with pytest.raises(Exists):
            store.create(key, {})
    assert list(store.list("inbox/coder")) == [good]
    told = dict(store.feed("inbox/coder").poll(full=True))
    assert {key for key, found in told.items() if isinstance(found, Unreadable)} >= {
        "inbox/coder/fifo",
        "inbox/coder/folder",
    }
    assert stat.S_ISFIFO((folder / "fifo.json").stat().st_mode)


@posix
@pytest.mark.req("core:43:links")
def test_a_folder_link_that_leaves_the_bus_is_refused_and_nothing_outside_is_touched(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "t-1.json").write_bytes(b'{"n": 1}')
    (root / "inbox").mkdir()
    (root / "inbox" / "coder").symlink_to(outside)
    doc = Doc(KEY, {}, "x")
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.get(KEY),
        lambda: store.exists(KEY),
        lambda: store.create("inbox/coder/new", {}),
        lambda: store.create("inbox/coder/deep/new", {}),
        lambda: store.replace(doc, {}),
        lambda: store.delete(doc),
        lambda: store.move(doc, "waiting/t-1", {}),
        lambda: store.keys("inbox/coder"),
        lambda: list(store.list("inbox/coder")),
        lambda: store.feed("inbox/coder").poll(),
    )
    for act in acts:
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "refused"
    source = store.create("waiting/t-9", {})
    with pytest.raises(BusError):
        store.move(source, "inbox/coder/t-9", {})
    assert list(store.folders("inbox")) == []
    assert {p.name: p.read_bytes() for p in outside.iterdir()} == {"t-1.json": b'{"n": 1}'}


@posix
def test_a_folder_that_becomes_a_link_is_refused_by_a_store_that_knew_it(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    store.create(KEY, {"n": 1})
    (root / "inbox" / "coder").rename(tmp_path / "outside")
    (root / "inbox" / "coder").symlink_to(tmp_path / "outside")
    with pytest.raises(BusError) as error:
        store.get(KEY)
    assert error.value.code == "refused"


@posix
def test_a_file_link_that_leaves_the_bus_is_refused_and_left_out_of_lists(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    good = store.create("inbox/coder/good", {"n": 1})
    secret = tmp_path / "secret.json"
    secret.write_bytes(b'{"secret": 1}')
    (root / "inbox" / "coder" / "t-1.json").symlink_to(secret)
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.get(KEY),
        lambda: store.replace(Doc(KEY, {}, "x"), {}),
        lambda: store.delete(Doc(KEY, {}, "x")),
    )
    for act in acts:
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "refused"
    assert list(store.list("inbox/coder")) == [good]
    assert isinstance(dict(store.feed("inbox/coder").poll())[KEY], Unreadable)
    assert secret.read_bytes() == b'{"secret": 1}'


@posix
def test_links_within_the_bus_are_followed(store: FileStore, root: Path) -> None:
    doc = store.create("inbox/coder/t-1", {"n": 1})
    (root / "inbox" / "alias").symlink_to("coder")
    (root / "inbox" / "coder" / "t-2.json").symlink_to("t-1.json")
    by_folder, by_file = store.get("inbox/alias/t-1"), store.get("inbox/coder/t-2")
    assert by_folder is not None
    assert by_file is not None
    assert by_folder.rev == by_file.rev == doc.rev
    assert list(store.folders("inbox")) == ["alias", "coder"]


@posix
def test_a_bus_folder_reached_by_a_link_works(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    linked = FileStore(tmp_path / "link", durable=False)
    doc = linked.create(KEY, {"n": 1})
    assert linked.get(KEY) == doc
    linked.close()


def test_state_and_archive_may_lie_elsewhere(tmp_path: Path, root: Path) -> None:
    (root / ".bus").rename(tmp_path / "state")
    store = FileStore(root, tmp_path / "state", tmp_path / "archive", durable=False)
    doc = store.create("inbox/coder/t-1", {"n": 1})
    doc = store.move(doc, "archive/2026-03/t-1", {"n": 2})
    store.create(".bus/ledger/20260307/t-1", {})
    assert (tmp_path / "archive" / "2026-03" / "t-1.json").exists()
    assert (tmp_path / "state" / "ledger" / "20260307" / "t-1.json").exists()
    assert sorted(p.name for p in root.iterdir()) == ["inbox"]
    store.close()


def test_a_file_read_while_it_grows_is_told_apart_from_the_whole(store: FileStore, root: Path) -> None:
    path = put(root, "t-1.json", b'{"n": 1')
    with pytest.raises(Unreadable):
        store.get(KEY)
    with path.open("ab") as file:
        file.write(b"}")
    found = store.get(KEY)
    assert found is not None
    assert found.value == {"n": 1}
