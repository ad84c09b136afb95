"""Feeds on files: what hints do not tell, a full look finds; and the hint log itself."""

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_bus.store import feed as feed_module
from agent_bus.store.files import FileStore
from agent_bus.store.hints import HintLog
from agent_bus.store.port import Doc

PREFIX = "inbox/coder"
KEY = f"{PREFIX}/t-1"


def values(answer: Sequence[tuple[str, object]]) -> dict[str, object]:
    return {key: found.value if isinstance(found, Doc) else found for key, found in answer}


def write(root: Path, name: str, text: str) -> Path:
    path = root / "inbox" / "coder" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def drop_hints(root: Path) -> None:
    for path in (root / ".bus" / "hints").iterdir():
        path.write_bytes(b"")


def test_a_full_look_finds_what_was_done_by_hand(store: FileStore, root: Path) -> None:
    feed = store.feed(PREFIX)
    assert values(feed.poll()) == {}
    path = write(root, "t-1", '{"n": 1}')
    assert values(feed.poll()) == {}
    assert values(feed.poll(full=True)) == {KEY: {"n": 1}}
    path.write_text('{"n": 22}', encoding="utf-8")
    assert values(feed.poll(full=True)) == {KEY: {"n": 22}}
    path.unlink()
    assert values(feed.poll(full=True)) == {KEY: None}
    assert values(feed.poll(full=True)) == {}


def test_a_full_look_reads_only_what_changed(store: FileStore, root: Path) -> None:
    for n in range(5):
        os.utime(write(root, f"t-{n}", "{}"), (1_700_000_000, 1_700_000_000))
    feed = store.feed(PREFIX)
    assert len(feed.poll(full=True)) == 5
    assert feed.poll(full=True) == []
    write(root, "t-3", '{"n": 1}')
    assert values(feed.poll(full=True)) == {f"{PREFIX}/t-3": {"n": 1}}


@pytest.mark.parametrize("mtime", [0, 1, 4_000_000_000])
def test_a_file_with_an_odd_time_is_told_and_its_edits_are_seen(store: FileStore, root: Path, mtime: int) -> None:
    path = write(root, "t-1", '{"n": 1}')
    os.utime(path, (mtime, mtime))
    feed = store.feed(PREFIX)
    assert values(feed.poll(full=True)) == {KEY: {"n": 1}}
    path.write_text('{"n": 2}', encoding="utf-8")
    os.utime(path, (mtime, mtime + 1))
    assert values(feed.poll(full=True)) == {KEY: {"n": 2}}


def test_an_edit_within_one_tick_of_the_clock_is_found_by_the_next_full_look(store: FileStore, root: Path) -> None:
    path = write(root, "t-1", '{"n": 1}')
    now = time.time_ns()
    os.utime(path, ns=(now, now))
    feed = store.feed(PREFIX)
    assert values(feed.poll(full=True)) == {KEY: {"n": 1}}
    path.write_text('{"n": 2}', encoding="utf-8")
    os.utime(path, ns=(now, now))
    assert values(feed.poll(full=True)) == {KEY: {"n": 2}}


def test_a_lost_hint_is_found_by_a_full_look_and_by_the_timer(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = store.feed(PREFIX)
    feed.poll()
    other = FileStore(root, durable=False)
    doc = other.create(KEY, {"n": 1})
    drop_hints(root)
    assert values(feed.poll()) == {}
    assert values(feed.poll(full=True)) == {KEY: {"n": 1}}
    other.replace(doc, {"n": 2})
    drop_hints(root)
    assert values(feed.poll()) == {}
    monkeypatch.setattr(feed_module, "RESCAN_S", 0.0)
    assert values(feed.poll()) == {KEY: {"n": 2}}
    other.close()


def test_hints_go_on_after_somebody_cleaned_their_folder(store: FileStore, root: Path) -> None:
    other = FileStore(root, durable=False)
    feed = store.feed(PREFIX)
    feed.poll()
    doc = other.create(KEY, {"n": 1})
    assert values(feed.poll()) == {KEY: {"n": 1}}
    for path in (root / ".bus" / "hints").iterdir():
        path.unlink()
    other.replace(doc, {"n": 2})
    assert values(feed.poll()) == {KEY: {"n": 2}}
    other.close()


def test_a_poll_that_fails_loses_nothing(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = store.feed(PREFIX)
    feed.poll()
    store.create(KEY, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "get", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            feed.poll()
    assert values(feed.poll()) == {KEY: {"n": 1}}


def test_polls_of_many_threads_tell_each_change_to_each_feed(store: FileStore, root: Path) -> None:
    other = FileStore(root, durable=False)
    feeds = [store.feed(PREFIX) for _ in range(4)]
    told: list[set[str]] = [set() for _ in feeds]
    done = threading.Event()

    def follow(place: int) -> None:
        while True:
            last = done.is_set()
            told[place] |= {key for key, _ in feeds[place].poll()}
            if last:
                return

    threads = [threading.Thread(target=follow, args=(place,)) for place in range(len(feeds))]
    for thread in threads:
        thread.start()
    for n in range(300):
        other.create(f"{PREFIX}/t-{n}", {})
    done.set()
    for thread in threads:
        thread.join(timeout=20)
    assert [len(keys) for keys in told] == [300] * len(feeds)
    other.close()


def test_a_hint_that_another_thread_is_handing_out_is_waited_for(
    store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = store.feed(PREFIX), store.feed(PREFIX)
    for feed in (one, other):
        feed.poll()
    writer = FileStore(root, durable=False)
    writer.create(KEY, {"n": 1})
    reading, go_on, real = threading.Event(), threading.Event(), HintLog.read
    told: list[object] = []

    def read(log: HintLog) -> list[str]:
        keys = real(log)
        if keys:
            reading.set()
            assert go_on.wait(20)
        return keys

    monkeypatch.setattr(HintLog, "read", read)
    first = threading.Thread(target=one.poll)
    second = threading.Thread(target=lambda: told.extend(other.poll()))
    first.start()
    assert reading.wait(20)
    second.start()
    second.join(timeout=0.1)  # it would be through by now if it did not wait
    go_on.set()
    first.join(timeout=20)
    second.join(timeout=20)
    assert len(told) == 1
    writer.close()


def test_a_feed_that_nobody_holds_costs_nothing(store: FileStore) -> None:
    store.feed(PREFIX)
    assert len(store._feeds) == 0


# --- the log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    monkeypatch.setattr(time, "time", lambda: moment)


def test_a_reader_follows_from_hour_to_hour(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 1_772_877_500.0)
    writer, reader = HintLog(str(folder)), HintLog(str(folder))
    writer.append("a/1")
    assert reader.read() == ["a/1"]
    writer.append("a/2")
    at(monkeypatch, 1_772_877_500.0 + 3600)
    writer.append("a/3")
    at(monkeypatch, 1_772_877_500.0 + 7200)
    writer.append("a/4")
    assert reader.read() == ["a/2", "a/3", "a/4"]
    assert reader.read() == []
    writer.append("a/5")
    assert reader.read() == ["a/5"]
    writer.close()


def test_a_clock_set_back_tells_too_much_but_not_too_little(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 1_772_877_500.0)
    writer, reader = HintLog(str(folder)), HintLog(str(folder))
    writer.append("a/1")
    assert reader.read() == ["a/1"]
    at(monkeypatch, 1_772_877_500.0 - 7200)
    writer.append("a/2")
    assert "a/2" in reader.read()
    writer.append("a/3")
    assert reader.read() == ["a/3"]
    writer.close()


def test_a_torn_line_at_the_end_of_an_hour_does_not_garble_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 1_772_877_500.0)
    writer, reader = HintLog(str(folder)), HintLog(str(folder))
    writer.append("a/1")
    (file,) = folder.iterdir()
    with file.open("ab") as raw:
        raw.write(b"a/torn")
    at(monkeypatch, 1_772_877_500.0 + 3600)
    writer.append("a/2")
    assert reader.read() == ["a/1", "a/2"]
    writer.close()


def test_sweep_keeps_this_hour_and_the_newest_whatever_the_clock_once_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("20260301-00", "20260301-01", "20260301-02", "20990101-00", "20990101-01", "20990101-02", "notes.txt"):
        (folder / name).write_bytes(b"")
    at(monkeypatch, 1_772_877_500.0)
    log = HintLog(str(folder))
    log.append("a/1")
    log.sweep()
    left = {path.name for path in folder.iterdir()}
    assert "20260301-00" not in left
    assert {"20260301-01", "20260301-02", "20260307-09", "20990101-02", "notes.txt"} <= left
    log.close()


def test_a_hint_that_is_no_name_is_dropped(store: FileStore, root: Path) -> None:
    feed = store.feed(PREFIX)
    feed.poll()
    store.create("waiting/t-1", {})
    (file,) = (root / ".bus" / "hints").iterdir()
    with file.open("ab") as raw:
        raw.write(f"{PREFIX}/..\n{PREFIX}/a.\n{PREFIX}/\n\xff\n".encode("latin-1"))
    assert feed.poll() == []
