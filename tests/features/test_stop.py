"""The emergency stop: what it holds, what goes on, and who ends it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bus.app import open_bus
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.errors import BusError
from agent_bus.faces.toolbox import offered
from agent_bus.jobs import reaper
from agent_bus.operations import agents, stop
from agent_bus.store import atomic
from tests.tools.buses import BOSS, CODER
from tests.tools.desk import Desk, Server, refused

CHAIN = '{"next_tasks": [{"target": "tester", "instruction": "test it"}]}'


@pytest.mark.req("core:36")
def test_while_stopped_nothing_starts_and_reports_and_reading_go_on(boss: Desk, coder: Desk, person: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.dispatch_task("coder", "y")
    gated = boss.dispatch_task("coder", "delete the production database")["task_id"]
    lease_id = coder.receive_task()["lease_id"]
    boss.emergency_stop("smoke")
    words = ("boss", "2026-03-07T12:00:00", "smoke")
    with refused("stopped", *words):
        boss.dispatch_task("coder", "z")
    with refused("stopped", *words):
        coder.receive_task()
    with refused("stopped", *words):
        person.approve(gated)
    with refused("stopped"):
        boss.retry_task(cancelled(boss))
    boss.share_context(f"task-chain-{task_id}", CHAIN)
    assert coder.update_status(state="working", current_task_id=task_id)["stopped"] is True
    assert coder.submit_report(task_id, summary="done", lease_id=lease_id)["task_state"] == "completed"
    assert len(boss.get_reports(task_id=task_id)["reports"]) == 1
    assert boss.system_health()["stopped"]["reason"] == "smoke"
    assert "stopped" in boss.get_task(gated)["why"]
    assert boss.list_tasks()["tasks"]


def cancelled(boss: Desk) -> str:
    """The second task, ended."""
    [task_id] = [t["task_id"] for t in boss.list_tasks(state="pending")["tasks"]]
    assert boss.cancel_task(task_id)["task_state"] == "cancelled"
    return str(task_id)


@pytest.mark.req("core:36")
@pytest.mark.parametrize("by", ["again", "reaper"])
def test_a_verdict_is_taken_while_stopped_and_its_chain_runs_after_resume(
    bus: Bus, boss: Desk, coder: Desk, person: Desk, by: str
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    boss.share_context(f"task-chain-{task_id}", CHAIN)
    coder.receive_task()
    coder.submit_report(task_id, summary="done")
    boss.emergency_stop()
    done = boss.acknowledge_report(task_id)
    assert (done["already"], done["dispatched"]) == (False, [])
    reaper.sweep(bus, bus.now())
    assert bus.store.keys("inbox/tester") == []
    person.resume()
    if by == "again":
        assert len(boss.acknowledge_report(task_id)["dispatched"]) == 1
    else:
        reaper.sweep(bus, bus.now())
    assert len(bus.store.keys("inbox/tester")) == 1
    assert not bus.store.exists(f"reports/pending/{task_id}")


@pytest.mark.parametrize("at", ["stopped", "killed"])
def test_a_chain_written_after_the_verdict_runs_after_resume_or_by_the_reaper(
    bus: Bus, boss: Desk, coder: Desk, person: Desk, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    coder.submit_report(task_id, summary="done")
    boss.acknowledge_report(task_id)
    if at == "stopped":
        boss.emergency_stop()
        assert boss.share_context(f"task-chain-{task_id}", CHAIN)["dispatched"] == []
        person.resume()
    else:
        with monkeypatch.context() as patch:
            patch.setattr("agent_bus.operations.chains.run", killed)
            with pytest.raises(KeyboardInterrupt):
                boss.share_context(f"task-chain-{task_id}", CHAIN)
    assert bus.store.keys("inbox/tester") == []
    for _ in range(2):
        reaper.sweep(bus, bus.now())
    assert len(bus.store.keys("inbox/tester")) == 1


def killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.req("core:36")
def test_a_stop_during_a_claim_undoes_it(bus: Bus, boss: Desk, coder: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    looks = iter([False, True, True, True])
    with monkeypatch.context() as patch:
        patch.setattr(stop, "is_stopped", lambda _: next(looks))
        with refused("stopped"):
            coder.receive_task()
    value = boss.task(task_id)
    assert (value["status"], value.get("crashes", 0)) == ("pending", 0)


@pytest.mark.req("core:36")
def test_the_reaper_takes_nothing_while_stopped_and_resume_gives_it_back_uncounted(
    bus: Bus, boss: Desk, coder: Desk, person: Desk, clock: ManualClock
) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    alive = boss.dispatch_task("chef", "y")["task_id"]
    Desk(bus, CODER).receive_task()
    Desk(bus).receive_task("chef", worker="chef")
    boss.edit(f"inbox/coder/{task_id}", lease=dead(boss, task_id))
    boss.emergency_stop()
    assert reaper.sweep(bus, bus.now()).recovered == []
    assert person.resume()["requeued"] == [task_id]
    value = boss.task(task_id)
    assert (value["status"], value.get("crashes", 0)) == ("pending", 0)
    assert boss.task(alive)["status"] == "in_progress"
    boss.emergency_stop()
    assert person.resume(requeue=True)["requeued"] == [alive]


def dead(boss: Desk, task_id: str) -> dict[str, object]:
    held = boss.task(task_id)["lease"]
    return {**held, "called_at": boss.bus.stamp(), "holder": {**held["holder"], "boot": "an earlier one"}}


@pytest.mark.req("core:37")
def test_a_stop_outlives_every_process_until_a_person_resumes(live: Bus, server: Callable[..., Server]) -> None:
    boss = Desk(live, BOSS)
    boss.dispatch_task("coder", "x")
    first = server()
    first.emergency_stop(reason="smoke")
    first.close()
    second = server()
    with refused("stopped", "coder", "smoke"):
        second.receive_task()
    assert "resume" not in offered("", "worker")
    person = server(type(BOSS)(role="operator", person=True))
    assert person.resume()["resumed"] is True
    assert person.resume()["resumed"] is False
    assert second.receive_task()["task"]["instruction"] == "x"


@pytest.mark.req("core:37")
def test_the_agents_have_their_states_back_after_resume(boss: Desk, coder: Desk, person: Desk) -> None:
    coder.update_status(state="working")
    boss.emergency_stop()
    assert [a["state"] for a in boss.get_all_status()["agents"]] == ["stopped"]
    assert person.resume()["agents"] == ["coder"]
    assert [a["state"] for a in boss.get_all_status()["agents"]] == ["working"]


@pytest.mark.req("core:38")
def test_a_stop_is_written_even_if_a_status_cannot_be(disk: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    boss = Desk(disk, BOSS)
    for agent in ("coder", "chef"):
        Desk(disk).update_status(agent, "working")
    real = agents.set_status

    def read_only(bus: Bus, agent: str, changes: dict[str, object]) -> dict[str, object]:
        if agent == "coder":
            raise BusError("unavailable", "the bus folder cannot be used: Read-only file system.")
        return real(bus, agent, changes)

    with monkeypatch.context() as patch:
        patch.setattr(agents, "set_status", read_only)
        stopped = boss.emergency_stop("smoke")
    assert stopped["agents"] == ["chef"]
    [failed] = stopped["failed"]
    assert "coder" in failed
    assert "Read-only" in failed
    assert disk.layout is not None
    assert disk.layout.stop_file.exists()
    with refused("stopped"):
        boss.dispatch_task("coder", "x")


@pytest.mark.req("core:38")
def test_a_stop_needs_no_free_disk(disk: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_temp", full)
        stopped = Desk(disk, BOSS).emergency_stop("smoke")
        assert stop.read(disk) is not None
    assert stopped["failed"] == []
    with refused("stopped", "smoke"):
        Desk(disk, BOSS).dispatch_task("coder", "x")


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00\x00"])
def test_a_stop_file_is_a_stop_whatever_it_holds(disk: Bus, content: str) -> None:
    assert disk.layout is not None
    disk.layout.stop_file.write_text(content, encoding="utf-8")
    with refused("stopped"):
        Desk(disk, BOSS).dispatch_task("coder", "x")
    assert Desk(disk).system_health()["stopped"] is not None
    assert Desk(disk).resume()["resumed"] is True
    Desk(disk, BOSS).dispatch_task("coder", "x")


def test_a_note_in_the_vault_stops_the_bus_without_any_daemon(disk: Bus, tmp_path: Path) -> None:
    note = tmp_path / "bus" / "commands" / "STOP.md"
    note.parent.mkdir()
    note.write_text("stop", encoding="utf-8")
    with refused("stopped", "STOP.md"):
        Desk(disk, BOSS).dispatch_task("coder", "x")
    Desk(disk).resume()
    assert not note.exists()
    Desk(disk, BOSS).dispatch_task("coder", "x")


def test_a_folder_that_is_opened_again_is_still_stopped(disk: Bus, clock: ManualClock) -> None:
    Desk(disk, BOSS).emergency_stop()
    again = open_bus(disk.settings, BOSS, clock)
    with refused("stopped"):
        Desk(again).dispatch_task("coder", "x")
    again.close()
