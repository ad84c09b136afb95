"""Folders made by others: by the seed's own server, by another host, or by us and then robbed of the machine's side."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bus import host
from agent_bus.app import open_bus
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.faces.cli import main
from agent_bus.jobs import reaper
from agent_bus.operations import find, ledger
from agent_bus.settings import Settings
from tests.tools.buses import BOSS, CODER, PERSON
from tests.tools.desk import Desk, refused

FIRST, SECOND, HELD, RISKY, DONE = (f"t-20260101-090000-00{n}" for n in range(1, 6))


def seed_task(task_id: str, to: str, **more: Any) -> dict[str, Any]:
    """A task as the seed's server writes it."""
    return {
        "task_id": task_id,
        "from": "antigravity",
        "to": to,
        "instruction": f"work on {task_id}",
        "priority": "normal",
        "context": {"new_project": True},
        "status": "pending",
        "created_at": "2026-01-01T18:00:00.123456",
        **more,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder as the seed leaves it."""
    root = tmp_path / "bus"
    for name in (
        "inbox/coder",
        "inbox/Claude-Code",
        "reports/pending",
        "reports/processed",
        "status",
        "shared_context",
    ):
        (root / name).mkdir(parents=True)
    put(root, f"inbox/coder/{FIRST}", seed_task(FIRST, "coder", mood="blue"), crlf=True)
    put(root, f"inbox/coder/{HELD}", seed_task(HELD, "coder", status="in_progress"))
    put(root, f"inbox/coder/{RISKY}", seed_task(RISKY, "coder", instruction="delete the production database"))
    put(root, f"inbox/Claude-Code/{SECOND}", seed_task(SECOND, "Claude-Code", priority="high"))
    report = {"task_id": DONE, "worker": "coder", "status": "completed", "summary": "old", "artifacts": []}
    put(root, f"reports/pending/{DONE}", report | {"completed_at": "2026-01-01T18:10:00", "needs_review": False})
    put(root, "shared_context/bare", {"just": "data"})
    put(root, "status/coder", {"agent": "Coder", "state": "idle", "last_updated": "2026-01-01T18:00:00"})
    return root


def put(root: Path, key: str, value: dict[str, Any], crlf: bool = False) -> None:
    text = json.dumps(value, indent=2)
    data = text.replace("\n", "\r\n").encode("utf-8-sig") if crlf else text.encode()
    root.joinpath(*f"{key}.json".split("/")).write_bytes(data)


@pytest.fixture
def old(root: Path, clock: ManualClock) -> Iterator[Bus]:
    """The bus over it."""
    opened = open_bus(Settings(root=str(root), durability="none"), clock=clock)
    yield opened
    opened.close()


def bytes_of(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.json") if ".bus" not in p.parts}


def test_opening_and_reading_a_seed_made_folder_changes_no_byte(root: Path, old: Bus) -> None:
    before = bytes_of(root)
    desk = Desk(old, BOSS)
    assert {t["task_id"] for t in desk.list_tasks()["tasks"]} == {FIRST, SECOND, HELD, RISKY}
    assert [t["task_id"] for t in desk.list_tasks(agent_name="coder", state="in_progress")["tasks"]] == [HELD]
    assert desk.get_task(FIRST)["state"] == "pending"
    assert [r["summary"] for r in desk.get_reports()["reports"]] == ["old"]
    assert desk.get_shared_context("bare")["entries"][0]["data"] == {"just": "data"}
    assert {a["agent"] for a in desk.get_all_status()["agents"]} >= {"Coder"}
    assert desk.system_health()["stopped"] is None
    assert bytes_of(root) == before


def test_a_seed_made_task_works_end_to_end_and_keeps_what_we_do_not_know(root: Path, old: Bus) -> None:
    boss, coder = Desk(old, BOSS), Desk(old, CODER)
    got = coder.receive_task()
    assert (got["task"]["task_id"], got["task"]["mood"], got["task"]["context"]) == (
        FIRST,
        "blue",
        {"new_project": True},
    )
    assert boss.folder(RISKY) == "inbox"
    assert ledger.state(old, FIRST) == ledger.LIVE
    assert coder.submit_report(FIRST, "coder", "completed", "done")["task_state"] == "completed"
    value = boss.task(FIRST)
    assert (value["mood"], value["created_at"]) == ("blue", "2026-01-01T18:00:00.123456")
    assert list(value)[:8] == list(seed_task(FIRST, "coder"))[:8]
    assert boss.acknowledge_report(FIRST)["already"] is False


def test_a_seed_made_task_passes_the_gate_before_it_runs(old: Bus) -> None:
    boss, coder = Desk(old, BOSS), Desk(old, CODER)
    coder.receive_task()
    coder.submit_report(FIRST, summary="done")
    assert coder.receive_task()["task"] is None
    assert boss.places(RISKY) == [f"approvals/{RISKY}"]
    assert "delete" in boss.get_task(RISKY)["why"]
    Desk(old, PERSON).approve(RISKY)
    assert coder.receive_task()["task"]["task_id"] == RISKY


def test_a_seed_made_task_in_progress_takes_the_report_of_its_worker(old: Bus) -> None:
    cli = Desk(old)
    done = cli.submit_report(HELD, "coder", "completed", "done")
    assert done["task_state"] == "completed"
    assert cli.submit_report(HELD, "coder", "completed", "done")["duplicate"] is True
    with refused("conflict", "done"):
        cli.submit_report(HELD, "coder", "failed", "else")


def test_a_seed_made_task_in_progress_gets_a_lease_and_comes_back_after_it(old: Bus, clock: ManualClock) -> None:
    boss = Desk(old, BOSS)
    reaper.sweep(old, old.now())
    value = boss.task(HELD)
    assert (value["status"], value["attempt"], value["lease"]["worker"]) == ("in_progress", 1, "coder")
    for _ in range(7):
        clock.advance(100)
        reaper.sweep(old, old.now())
    assert boss.task(HELD)["status"] == "pending"


def test_a_report_of_an_adopted_lease_counts(old: Bus) -> None:
    reaper.sweep(old, old.now())
    assert Desk(old).submit_report(HELD, "coder", "completed", "done")["accepted"] is True


@pytest.mark.parametrize("by", ["receive", "reaper"])
@pytest.mark.parametrize("spelling", ["Claude-Code", "claude-code"])
def test_a_folder_in_another_spelling_is_adopted(root: Path, old: Bus, by: str, spelling: str) -> None:
    boss = Desk(old, BOSS)
    if by == "reaper":
        assert SECOND in reaper.sweep(old, old.now()).settled
    got = Desk(old).receive_task(spelling)
    assert got["task"]["task_id"] == SECOND
    assert boss.places(SECOND) == [f"inbox/claude-code/{SECOND}"]
    assert boss.task(SECOND)["to"] == "Claude-Code"
    assert Desk(old).submit_report(SECOND, spelling, summary="done")["task_state"] == "completed"
    assert boss.dispatch_task("CLAUDE-CODE", "x")["status"] == "pending"
    assert old.store.keys("inbox/claude-code") != []
    assert Desk(old).system_health()["quarantine"] == 0


def test_a_task_held_in_a_folder_of_another_spelling_is_taken_back_too(root: Path, old: Bus) -> None:
    put(root, f"inbox/Claude-Code/{SECOND}", seed_task(SECOND, "Claude-Code", status="in_progress"))
    reaper.sweep(old, old.now())
    assert Desk(old).task(SECOND)["lease"]["worker"] == "Claude-Code"


def test_what_is_no_task_in_a_folder_of_another_spelling_is_put_aside(root: Path, old: Bus) -> None:
    (root / "inbox" / "Claude-Code" / f"{DONE}.json").write_text("{", encoding="utf-8")
    assert reaper.sweep(old, old.now()).quarantined == [f"inbox/Claude-Code/{DONE}"]


def test_a_file_system_that_takes_both_spellings_for_one_makes_no_second_copy(
    old: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(old.store).exists
    folded = {"inbox/claude-code/" + SECOND}
    monkeypatch.setattr(type(old.store), "exists", lambda s, k: k in folded or real(s, k))
    assert find.elsewhere(old, f"inbox/claude-code/{SECOND}") == ""
    assert find.elsewhere(old, f"inbox/Claude-Code/{SECOND}") == ""
    assert find.elsewhere(old, f"inbox/coder/{SECOND}") == f"inbox/Claude-Code/{SECOND}"


def test_an_acknowledged_seed_made_report_without_a_task_is_not_found(old: Bus) -> None:
    with refused("not_found", DONE):
        Desk(old, BOSS).acknowledge_report(DONE)
    reaper.sweep(old, old.now())
    assert old.store.exists(f"reports/pending/{DONE}")


def test_a_folder_that_has_lost_its_machine_side_starts_stopped_and_runs_nothing_twice(
    disk: Bus, tmp_path: Path, clock: ManualClock
) -> None:
    boss, coder = Desk(disk, BOSS), Desk(disk, CODER)
    done, left = (boss.dispatch_task("coder", n)["task_id"] for n in ("done", "open"))
    coder.receive_task()
    coder.submit_report(done, summary="s")
    shutil.rmtree(tmp_path / "bus" / ".bus")
    again = open_bus(disk.settings, clock=clock)
    desk = Desk(again)
    with refused("stopped", "lost"):
        desk.receive_task("coder")
    assert (ledger.state(again, done), ledger.state(again, left)) == (ledger.DONE, ledger.LIVE)
    assert Desk(again, PERSON).takeover()["stopped"] is True
    Desk(again, PERSON).resume()
    assert desk.receive_task("coder")["task"]["task_id"] == left
    again.close()


@pytest.fixture
def foreign(disk: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bus:
    """A bus whose folder belongs to another host; one task is queued, one held, one gated."""
    boss = Desk(disk, BOSS)
    boss.dispatch_task("coder", "held")
    Desk(disk, CODER).receive_task()
    boss.dispatch_task("coder", "x")
    boss.dispatch_task("coder", "delete all files")
    path = tmp_path / "bus" / ".bus" / "format.json"
    value = json.loads(path.read_bytes())
    value["owner"] = {"host": "h-another", "name": "their-laptop"}
    path.write_text(json.dumps(value), encoding="utf-8")
    return disk


def test_on_another_host_reading_works_and_writing_names_the_owner(foreign: Bus, tmp_path: Path) -> None:
    boss, coder, person = Desk(foreign, BOSS), Desk(foreign, CODER), Desk(foreign, PERSON)
    held, queued, gated = (t["task_id"] for t in boss.list_tasks()["tasks"])
    before = bytes_of(tmp_path / "bus")
    for act in (
        lambda: boss.dispatch_task("coder", "x"),
        lambda: coder.receive_task(),
        lambda: coder.submit_report(held, summary="s"),
        lambda: boss.acknowledge_report(held),
        lambda: coder.update_status(state="working"),
        lambda: boss.share_context("k", "v"),
        lambda: boss.cancel_task(queued),
        lambda: coder.release_task(held),
        lambda: boss.retry_task(queued),
        lambda: person.approve(gated),
        lambda: person.reject(gated),
        lambda: boss.emergency_stop(),
        lambda: reaper.sweep(foreign, foreign.now()),
    ):
        with refused("refused", "their-laptop", "takeover"):
            act()
    assert bytes_of(tmp_path / "bus") == before
    assert boss.get_task(held)["state"] == "in_progress"
    assert boss.get_reports()["reports"] == []
    assert boss.get_shared_context()["entries"] == []
    assert boss.get_all_status()["agents"]
    assert any("their-laptop" in p for p in boss.system_health()["problems"])


@pytest.mark.req("vault:5")
def test_a_bus_that_the_dashboard_gives_to_another_host_is_read_only_until_a_takeover(
    disk: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, root = Desk(disk, BOSS), tmp_path / "bus"
    boss.dispatch_task("coder", "x")
    note = root / "Dashboard.md"
    note.write_text("---\nab_host: attic-00000000\nab_epoch: 4\nab_lang: en\n---\nMine.\n", encoding="utf-8")
    before = bytes_of(root)
    named = ("refused", "attic-00000000", "agent-bus vault takeover")
    with refused(*named):
        boss.dispatch_task("coder", "y")
    with refused(*named):
        Desk(disk, CODER).receive_task()
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(host.state_folder()))
    assert main(["--root", str(root), "up"]) == 1
    assert "attic-00000000" in capsys.readouterr().err
    assert len(boss.list_tasks()["tasks"]) == 1
    assert bytes_of(root) == before
    assert Desk(disk, PERSON).takeover()["epoch"] == 5
    assert note.read_text(encoding="utf-8").startswith('---\nab_host: "')
    assert note.read_text(encoding="utf-8").endswith('"\nab_epoch: 5\nab_lang: en\n---\nMine.\n')
    assert boss.dispatch_task("coder", "y")["status"] == "pending"
    note.write_text("---\nab_host: attic-00000000\nab_epoch: 4\n---\n", encoding="utf-8")  # an old one comes back
    assert boss.dispatch_task("coder", "z")["status"] == "pending"
    assert Desk(disk, PERSON).takeover()["already"] is True


def test_a_takeover_makes_this_host_the_owner(foreign: Bus) -> None:
    taken = Desk(foreign, PERSON).takeover()
    assert (taken["former_owner"], taken["stopped"]) == ("their-laptop", False)
    assert Desk(foreign, BOSS).dispatch_task("coder", "x")["status"] == "pending"
    assert foreign.layout is not None
    assert foreign.layout.read_format()["former_owners"][-1]["name"] == "their-laptop"
    assert foreign.layout.read_format()["owner"]["host"] == host.host_id()


def test_a_takeover_mends_a_format_file_that_cannot_be_read(disk: Bus, tmp_path: Path) -> None:
    (tmp_path / "bus" / ".bus" / "format.json").write_text("{", encoding="utf-8")
    with refused("corrupt", "format.json"):
        Desk(disk, BOSS).dispatch_task("coder", "x")
    Desk(disk, PERSON).takeover()
    assert Desk(disk, BOSS).dispatch_task("coder", "x")["status"] == "pending"
