"""Files in quarantine: looked at, brought back, thrown away."""

import threading
from pathlib import Path

import pytest

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.operations import find, quarantine, rescue
from tests.tools.buses import BOSS, CODER
from tests.tools.desk import Desk, refused

ID = "t-20260307-120000-001"


@pytest.fixture
def inbox(disk: Bus, tmp_path: Path) -> Path:
    """coder's inbox with one task."""
    Desk(disk, BOSS).dispatch_task("coder", "good")
    return tmp_path / "bus" / "inbox" / "coder"


def put_aside(disk: Bus, path: Path, content: bytes) -> rescue.Kept:
    path.write_bytes(content)
    assert quarantine.judge(disk, f"inbox/coder/{path.stem}")
    [one] = rescue.kept(disk)
    return one


def test_a_broken_file_comes_back_once_it_is_mended(disk: Bus, inbox: Path) -> None:
    other = "t-20260307-110000-002"
    good = (inbox / f"{ID}.json").read_bytes().replace(ID.encode(), other.encode())
    one = put_aside(disk, inbox / f"{other}.json", good[:50])
    assert (one.key, one.reason[:7], len(one.id)) == (f"inbox/coder/{other}", "no JSON", 22)
    assert rescue.need(disk, one.id) == rescue.need(disk, one.id[:10]) == one
    with refused("corrupt", "no JSON", "Mend"):
        rescue.restore(disk, one)
    one.path.write_bytes(good)
    rescue.restore(disk, one)
    assert rescue.kept(disk) == []
    assert not one.path.with_suffix(".reason").exists()
    assert Desk(disk, CODER).receive_task()["task"]["task_id"] == other


def test_what_would_run_twice_does_not_come_back(disk: Bus, inbox: Path) -> None:
    good = (inbox / f"{ID}.json").read_bytes()
    one = put_aside(disk, inbox / f"{ID} 2.json", good)
    with refused("corrupt", "no task id"):
        rescue.restore(disk, one)
    rescue.drop(disk, one)
    assert rescue.kept(disk) == []
    Desk(disk, CODER).receive_task()
    Desk(disk, CODER).submit_report(ID, summary="done")
    again = put_aside(disk, inbox / f"{ID}.json", good)
    with refused("refused", ID, "new task"):
        rescue.restore(disk, again)
    assert rescue.kept(disk) == [again]


def test_nobody_touches_the_task_between_the_look_and_the_restore(
    disk: Bus, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "t-20260307-110000-002"
    good = (inbox / f"{ID}.json").read_bytes().replace(ID.encode(), other.encode())
    one = put_aside(disk, inbox / f"{other}.json", b"")
    one.path.write_bytes(good)
    said: list[str] = []

    def another(name: str) -> None:
        try:
            with disk.store.lock(name, wait_s=0):
                said.append("free")
        except BusError as error:
            said.append(error.code)

    def look(bus: Bus, task_id: str) -> find.Found | None:
        thread = threading.Thread(target=another, args=(task_id,))
        thread.start()
        thread.join(10)
        return find_quietly(bus, task_id)

    find_quietly = find.find_quietly
    monkeypatch.setattr(find, "find_quietly", look)
    rescue.restore(disk, one)
    assert said == ["busy"]
    assert (inbox / f"{other}.json").exists()


def test_an_id_of_none_or_of_several_is_refused(disk: Bus, inbox: Path) -> None:
    with refused("not_found", "quarantine list"):
        rescue.need(disk, "2026")
    with refused("not_found", "quarantine list"):
        rescue.need(disk, "")
    for number in (2, 3):
        (inbox / f"t-20260307-110000-00{number}.json").write_bytes(b"")
        assert quarantine.judge(disk, f"inbox/coder/t-20260307-110000-00{number}")
    with refused("invalid", "whole id"):
        rescue.need(disk, "2026")
