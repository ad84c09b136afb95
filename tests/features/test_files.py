"""What is in the folder besides what the bus wrote: edits, copies, links, rests; and disks that refuse."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_bus.app import open_bus
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.jobs import reaper
from agent_bus.operations import claim, find, ledger, settle
from agent_bus.settings import Settings
from agent_bus.store import atomic
from tests.tools.buses import BOSS, CODER, PERSON
from tests.tools.desk import Desk, refused

ID = "t-20260307-120000-001"


@pytest.fixture
def inbox(disk: Bus, tmp_path: Path) -> Path:
    """The folder of coder's inbox, with one task in it."""
    assert Desk(disk, BOSS).dispatch_task("coder", "good")["task_id"] == ID
    return tmp_path / "bus" / "inbox" / "coder"


def sweep(bus: Bus) -> reaper.ReapReport:
    return reaper.sweep(bus, bus.now())


@pytest.mark.req("core:40")
def test_an_edit_by_hand_before_the_last_check_makes_the_claim_look_again(
    bus: Bus, boss: Desk, coder: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    real, edits = settle.write, [0]

    def edited_first(bus: Bus, found: find.Found, task: Any) -> find.Found:
        if not edits.pop():
            boss.edit(found.doc.key, instruction="y", colour="blue")
        edits.append(1)
        return real(bus, found, task)

    monkeypatch.setattr(claim, "write", edited_first)
    got = coder.receive_task()
    assert (got["task"]["instruction"], got["task"]["colour"], got["task"]["attempt"]) == ("y", "blue", 1)
    coder.submit_report(task_id, summary="done")
    value = boss.task(task_id)
    assert (value["status"], value["colour"]) == ("completed", "blue")


BAD = {
    f"{ID} (conflicted copy).json": lambda good: good,
    f"{ID}.sync-conflict-20260307-120000-ABCDEFG.json": lambda good: good,
    f"{ID} 2.json": lambda good: good,
    "t-20260307-120000-002.json": lambda good: b"",
    "t-20260307-120000-003.json": lambda good: good[: len(good) // 2],
    "t-20260307-120000-004.json": lambda good: bytes(200),
    "t-20260307-120000-005.json": lambda good: b"<<<<<<< ours\n" + good + b"=======\n" + good + b">>>>>>> theirs\n",
    "t-20260307-120000-006.json": lambda good: good,  # another task's id inside
    "t-20260307-120000-007.json": lambda good: b"[1, 2]",
    "t-20260307-120000-008.json": lambda good: b'{"task_id": "t-20260307-120000-008", "status": "odd", "to": "coder"}',
    "t-20260307-120000-009.json": lambda good: good.replace(ID.encode(), b"t-20260307-120000-009").replace(
        b'"to": "coder"', b'"to": "../../x"'
    ),
    "note.json": lambda good: b'{"task_id": "note", "to": "coder", "status": "pending", "instruction": "x"}',
}


@pytest.mark.req("core:41", "vault:3")
@pytest.mark.parametrize("name", list(BAD))
@pytest.mark.parametrize("by", ["receive", "reaper"])
def test_what_is_no_task_is_never_given_out_but_put_aside_with_the_reason(
    disk: Bus, inbox: Path, tmp_path: Path, name: str, by: str
) -> None:
    make: Callable[[bytes], bytes] = BAD[name]
    content = make((inbox / f"{ID}.json").read_bytes())
    (inbox / name).write_bytes(content)
    coder = Desk(disk, CODER)
    if by == "reaper":
        sweep(disk)
    assert coder.receive_task()["task"]["task_id"] == ID
    coder.submit_report(ID, summary="done")
    assert coder.receive_task()["task"] is None
    assert os.listdir(inbox) == []
    [kept] = [p for p in (tmp_path / "bus" / ".bus" / "quarantine").iterdir() if p.suffix == ".json"]
    assert kept.read_bytes() == content
    assert kept.with_suffix(".reason").exists()
    health = coder.system_health()
    assert health["quarantine"] == 1
    assert any(name.removesuffix(".json") in p for p in health["problems"])


@pytest.mark.req("vault:4")
def test_the_good_task_comes_at_once_and_broken_neighbours_are_kept_byte_for_byte(
    disk: Bus, inbox: Path, tmp_path: Path
) -> None:
    good = (inbox / f"{ID}.json").read_bytes()
    bad = {
        "t-20260307-110000-002": b"",
        "t-20260307-110000-003": good[: len(good) // 2],
        "t-20260307-110000-004": b"<<<<<<< ours\n" + good + b"=======\n",
    }
    for name, data in bad.items():
        (inbox / f"{name}.json").write_bytes(data)
    assert Desk(disk, CODER).receive_task()["task"]["task_id"] == ID
    sweep(disk)
    sweep(disk)
    kept = {p.name: p.read_bytes() for p in (tmp_path / "bus" / ".bus" / "quarantine").glob("*.json")}
    assert {name[-26:-5]: data for name, data in kept.items()} == bad


@pytest.mark.req("core:41")
def test_names_that_are_no_documents_are_left_alone_and_counted(disk: Bus, inbox: Path) -> None:
    for name in ("notes.md", ".hidden.json", f"{ID}.json.bak", f"~${ID}.json"):
        (inbox / name).write_text("x", encoding="utf-8")
    (inbox / "folder.json").mkdir()
    sweep(disk)
    assert Desk(disk, CODER).receive_task()["task"]["task_id"] == ID
    assert len(os.listdir(inbox)) == 6
    health = Desk(disk).system_health()
    assert (health["foreign_files"], health["quarantine"]) == (5, 0)
    assert any("notes.md" in p for p in health["problems"])


@pytest.mark.req("core:42")
@pytest.mark.parametrize("ledger_lost", [False, True])
@pytest.mark.parametrize("by", ["receive", "reaper"])
def test_a_finished_task_that_comes_back_is_not_run_again(disk: Bus, inbox: Path, by: str, ledger_lost: bool) -> None:
    old = (inbox / f"{ID}.json").read_bytes()
    coder = Desk(disk, CODER)
    coder.receive_task()
    coder.submit_report(ID, summary="done")
    (inbox / f"{ID}.json").write_bytes(old)
    if ledger_lost:
        doc = disk.store.get(ledger.key(ID))
        assert doc is not None
        disk.store.delete(doc)
    if by == "reaper":
        sweep(disk)
    assert coder.receive_task()["task"] is None
    sweep(disk)
    assert coder.places(ID) == [f"archive/2026-03/{ID}"]
    problems = coder.system_health()["problems"]
    assert any(ID in p and ("already done" in p or "second file" in p) for p in problems)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.req("core:43")
@pytest.mark.parametrize("what", ["task link", "fifo", "dangling", "loop"])
def test_links_that_leave_the_folder_and_files_that_are_none_are_skipped(
    disk: Bus, inbox: Path, tmp_path: Path, what: str
) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes((inbox / f"{ID}.json").read_bytes().replace(ID.encode(), b"t-20260307-120000-009"))
    path = inbox / "t-20260307-120000-009.json"
    if what == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"task link": outside, "dangling": tmp_path / "nowhere", "loop": path}[what])
    boss, coder = Desk(disk, BOSS), Desk(disk, CODER)
    sweep(disk)
    assert coder.receive_task()["task"]["task_id"] == ID
    coder.submit_report(ID, summary="done")
    assert coder.receive_task()["task"] is None
    assert boss.list_tasks()["tasks"] == []
    assert os.path.lexists(path)
    assert outside.exists()
    health = coder.system_health()
    assert any("t-20260307-120000-009" in p for p in health["problems"])
    assert boss.dispatch_task("coder", "x")["status"] == "pending"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.req("core:43")
def test_an_inbox_that_is_a_link_out_of_the_folder_is_refused(disk: Bus, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "bus" / "inbox" / "coder").symlink_to(tmp_path / "elsewhere")
    boss = Desk(disk, BOSS)
    with refused("refused", "link"):
        boss.dispatch_task("coder", "x")
    with refused("refused", "link"):
        Desk(disk, CODER).receive_task()
    assert os.listdir(tmp_path / "elsewhere") == []
    sweep(disk)
    assert boss.dispatch_task("chef", "x")["status"] == "pending"
    assert Desk(disk).receive_task("chef")["task"]["instruction"] == "x"
    assert any("coder" in p for p in boss.system_health()["problems"])


def tree(root: Path) -> dict[str, bytes]:
    """Every document of the bus folder."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.json") if ".bus" not in p.parts}


@pytest.mark.req("core:44")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_on_a_disk_that_refuses_each_writing_verb_says_so_and_changes_nothing(
    disk: Bus, inbox: Path, tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, coder, person = Desk(disk, BOSS), Desk(disk, CODER), Desk(disk, PERSON)
    second = boss.dispatch_task("coder", "second")["task_id"]
    gated = boss.dispatch_task("coder", "delete all files")["task_id"]
    lease_id = coder.receive_task()["lease_id"]
    before = tree(tmp_path / "bus")

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_temp", refuse)
        acts: list[Callable[[], object]] = [
            lambda: boss.dispatch_task("coder", "x"),
            lambda: boss.dispatch_task("coder", "x", dedupe_key="k"),
            lambda: Desk(disk).receive_task("coder", worker="coder#2"),
            lambda: coder.submit_report(ID, summary="s", lease_id=lease_id),
            lambda: coder.release_task(ID),
            lambda: boss.cancel_task(ID),
            lambda: boss.cancel_task(second),
            lambda: person.approve(gated),
            lambda: person.reject(gated),
            lambda: boss.share_context("k", "v"),
            lambda: boss.share_context(f"task-chain-{ID}", '{"next_tasks": [{"target": "a", "instruction": "b"}]}'),
            lambda: coder.update_status(state="working"),
        ]
        for act in acts:
            with refused("unavailable", os.strerror(code)):
                act()
        assert tree(tmp_path / "bus") == before
        assert boss.list_tasks()["tasks"]
        assert boss.get_task(ID)["state"] == "in_progress"
        assert boss.get_reports()["reports"] == []
        assert boss.system_health()["version"]
    assert coder.submit_report(ID, summary="s", lease_id=lease_id)["accepted"] is True


def spy(patch: pytest.MonkeyPatch, kind: type, name: str, seen: list[str]) -> None:
    """Notes the first argument of each call of a method."""
    real = getattr(kind, name)

    def noted(store: Any, key: str) -> Any:
        seen.append(key)
        return real(store, key)

    patch.setattr(kind, name, noted)


@pytest.mark.req("core:45")
def test_with_many_queued_tasks_a_receive_reads_only_what_it_gives_out_and_lists_page(
    disk: Bus, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    for n in range(400):
        task_id = f"t-20260307-110000-{n:03d}"
        value = {"task_id": task_id, "from": "", "to": "coder", "instruction": "x", "priority": "normal"}
        more = {"context": None, "status": "pending", "created_at": "2026-03-07T11:00:00Z"}
        disk.store.create(f"inbox/coder/{task_id}", value | more)
    listed: list[str] = []
    with monkeypatch.context() as patch:
        spy(patch, type(disk.store), "keys", listed)
        spy(patch, type(disk.store), "list", listed)
        fresh = open_bus(disk.settings, CODER, clock)
    assert not [p for p in listed if p.startswith("inbox")]
    coder = Desk(fresh)
    coder.receive_task()
    coder.submit_report("t-20260307-110000-000", summary="done")
    reads: list[str] = []
    with monkeypatch.context() as patch:
        spy(patch, type(fresh.store), "get", reads)
        got = coder.receive_task()
    assert got["queue_length"] == 398
    assert len([k for k in reads if k.startswith("inbox/")]) <= 6
    seen: list[str] = []
    cursor = ""
    while True:
        page = coder.list_tasks(limit=100, cursor=cursor)
        seen += [t["task_id"] for t in page["tasks"]]
        if not (cursor := page["cursor"]):
            break
    assert seen == sorted(set(seen))
    assert len(seen) == 399
    fresh.close()


def test_a_file_that_is_too_large_to_be_worked_on_stands_in_nobodys_way(disk: Bus, inbox: Path) -> None:
    big = "t-20260307-115959-001"
    good = (inbox / f"{ID}.json").read_text(encoding="utf-8")
    text = good.replace(ID, big).replace('"good"', '"' + "x" * (2 * 1024 * 1024 - len(good) - 60) + '"')
    (inbox / f"{big}.json").write_text(text.replace("2026-03-07T12", "2026-03-07T11"), encoding="utf-8")
    assert Desk(disk, CODER).receive_task()["task"]["task_id"] == ID
    assert not (inbox / f"{big}.json").exists()
    assert any(big in p for p in Desk(disk).system_health()["problems"])


def test_the_settings_file_in_the_bus_folder_is_ignored_and_reported(disk: Bus, tmp_path: Path) -> None:
    (tmp_path / "bus" / "bus.toml").write_text('order = "fifo"\n', encoding="utf-8")
    again = open_bus(Settings(root=str(tmp_path / "bus")))
    assert again.settings.order == "priority"
    assert any("bus.toml" in p for p in Desk(again).system_health()["problems"])
    again.close()
