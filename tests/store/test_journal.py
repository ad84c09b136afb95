"""The journal on disk: in order, never in the way."""

import json
import logging
import os
from datetime import UTC, datetime, timedelta
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from agent_bus.store.journal import FileJournal, MemoryJournal
from agent_bus.store.locks import Locks
from tests.store import workers
from tests.store.pool import run_all
from tests.store.workers import NOON, PROCESSES

DAY = "2026-03-07.jsonl"


def open_journal(root: Path) -> FileJournal:
    return FileJournal(root / ".bus" / "journal", Locks(str(root / ".bus" / "locks")))


@pytest.fixture
def journal(root: Path) -> FileJournal:
    return open_journal(root)


def raw_lines(root: Path, day: str = DAY) -> list[bytes]:
    return (root / ".bus" / "journal" / day).read_bytes().splitlines()


def test_ids_go_up_by_one_and_lines_keep_their_order(journal: FileJournal, root: Path) -> None:
    for n in range(3):
        journal.write(NOON, {"at": "x", "n": n})
    assert [json.loads(line) for line in raw_lines(root)] == [
        {"id": f"20260307-0000000{n + 1}", "at": "x", "n": n} for n in range(3)
    ]
    open_journal(root).write(NOON, {"n": 3})
    journal.write(NOON, {"n": 4})
    assert [line["id"][-1] for line in journal.read()] == ["1", "2", "3", "4", "5"]


def test_eight_processes_lose_no_line_and_ids_are_in_order(
    pool: Pool, journal: FileJournal, root: Path, gate: Path
) -> None:
    run_all(pool, workers.write_lines, root, gate, 200)
    lines = [json.loads(line) for line in raw_lines(root)]
    assert [line["id"] for line in lines] == [f"20260307-{n:08d}" for n in range(1, 200 * PROCESSES + 1)]
    assert sorted((line["by"], line["n"]) for line in lines) == [(by, n) for by in range(PROCESSES) for n in range(200)]


@pytest.mark.parametrize("torn", [b'{"id":"20260307-00000003","ev', b"\0" * 100, b"{", b'{"id":5}'])
def test_a_torn_last_line_is_closed_and_its_number_not_given_again(
    journal: FileJournal, root: Path, torn: bytes
) -> None:
    journal.write(NOON, {"n": 1})
    journal.write(NOON, {"n": 2})
    with (root / ".bus" / "journal" / DAY).open("ab") as file:
        file.write(torn)
    journal.write(NOON, {"n": 3})
    assert [line["n"] for line in journal.read() if "n" in line] == [1, 2, 3]
    ids = [line["id"] for line in journal.read() if "n" in line]
    assert ids[:2] == ["20260307-00000001", "20260307-00000002"]
    assert ids[2] > "20260307-00000002"


def test_after_a_long_unreadable_stretch_ids_still_go_up(journal: FileJournal, root: Path) -> None:
    journal.write(NOON, {"n": 1})
    with (root / ".bus" / "journal" / DAY).open("ab") as file:
        file.write(b"x" * 100_000)
    journal.write(NOON, {"n": 2})
    journal.write(NOON, {"n": 3})
    ids = [line["id"] for line in journal.read()]
    assert ids == sorted(set(ids))
    assert len(ids) == 3


def test_each_day_has_its_file_and_read_goes_on_across_days(journal: FileJournal, root: Path) -> None:
    journal.write(NOON, {"n": 1})
    journal.write(NOON + timedelta(days=1), {"n": 2})
    journal.write(NOON + timedelta(days=40), {"n": 3})
    assert [line["id"] for line in journal.read()] == ["20260307-00000001", "20260308-00000001", "20260416-00000001"]
    assert [line["n"] for line in journal.read(since="20260307-00000001")] == [2, 3]
    assert [line["n"] for line in journal.read(since="20260307-00000001", limit=1)] == [2]
    assert [line["n"] for line in journal.read(limit=2)] == [2, 3]
    assert journal.read(since="20260416-00000001") == []


def test_who_is_late_at_midnight_writes_into_the_day_that_has_begun(journal: FileJournal, root: Path) -> None:
    before, after = datetime(2026, 3, 7, 23, 59, 59, tzinfo=UTC), datetime(2026, 3, 8, tzinfo=UTC)
    late = open_journal(root)
    late.write(before, {"n": 1})
    journal.write(after, {"n": 2})
    last = journal.read()[-1]["id"]
    late.write(before, {"n": 3})
    assert [line["n"] for line in journal.read(since=last)] == [3]
    journal.write(after + timedelta(days=1), {"n": 4})
    last = journal.read()[-1]["id"]
    late.write(after, {"n": 5})
    assert [line["n"] for line in journal.read(since=last)] == [5]


@pytest.mark.parametrize(
    "line", [{"text": "\ud800"}, {"x": object()}, {"x": float("nan")}, {"x": b"\xff"}, {}, {"\udfff": 1}]
)
def test_a_line_that_json_cannot_hold_stops_neither_the_caller_nor_later_lines(
    journal: FileJournal, line: dict[str, object]
) -> None:
    journal.write(NOON, line)
    journal.write(NOON, {"n": 2})
    lines = journal.read()
    assert [entry["id"] for entry in lines] == ["20260307-00000001", "20260307-00000002"]
    assert lines[1]["n"] == 2


def test_a_line_that_circles_is_shown_not_refused(journal: FileJournal) -> None:
    line: dict[str, object] = {"event": "odd"}
    line["self"] = line
    journal.write(NOON, line)
    assert journal.read()[0]["event"] == "odd"


def test_a_full_disk_keeps_lines_until_there_is_room(
    journal: FileJournal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal.write(NOON, {"n": 1})
    real, room = os.write, [5]

    def write(handle: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        part, room[0] = data[: room[0]], 0
        return real(handle, part)

    with monkeypatch.context() as patch, caplog.at_level(logging.CRITICAL):
        patch.setattr(os, "write", write)
        for n in (2, 3):
            journal.write(NOON, {"n": n})
    journal.write(NOON, {"n": 4})
    lines = journal.read()
    assert [line["n"] for line in lines] == [1, 2, 3, 4]
    assert [line["id"] for line in lines] == sorted({line["id"] for line in lines})


def test_a_journal_whose_lock_is_held_makes_nobody_wait_twice(
    journal: FileJournal, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    real = Locks.hold

    def hold(self: Locks, name: str, pool: str = "doc", wait_s: float = 5.0) -> object:
        waits.append(wait_s)
        return real(self, name, pool, min(wait_s, 0.01))

    other = Locks(str(root / ".bus" / "locks"))
    with monkeypatch.context() as patch, caplog.at_level(logging.CRITICAL), other.hold("journal", "journal"):
        patch.setattr(Locks, "hold", hold)
        for n in range(3):
            journal.write(NOON, {"n": n})
    assert waits[1:] == [0.0, 0.0]
    journal.write(NOON, {"n": 3})
    assert [line["n"] for line in journal.read()] == [0, 1, 2, 3]
    other.close()


def test_a_file_taken_away_is_begun_anew(journal: FileJournal, root: Path) -> None:
    journal.write(NOON, {"n": 1})
    (root / ".bus" / "journal" / DAY).unlink()
    journal.write(NOON, {"n": 2})
    assert [line["n"] for line in journal.read()] == [2]


def test_sweep_unlinks_only_what_is_older_than_the_days_kept(journal: FileJournal, root: Path) -> None:
    for days in (0, 5, 10):
        journal.write(NOON + timedelta(days=days), {"n": days})
    (root / ".bus" / "journal" / "notes.txt").write_text("mine")
    journal.sweep(NOON + timedelta(days=10), 5)
    assert [line["n"] for line in journal.read()] == [5, 10]
    assert (root / ".bus" / "journal" / "notes.txt").exists()


def test_the_journal_in_memory_answers_alike() -> None:
    journal = MemoryJournal()
    for n in range(3):
        journal.write(NOON, {"n": n})
    assert [line["n"] for line in journal.read(limit=2)] == [1, 2]
    assert [line["n"] for line in journal.read(since="20260307-00000001")] == [1, 2]
