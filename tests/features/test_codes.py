"""Every error code that the core can give, each from a call that earns it; and its status over HTTP."""

import json
import threading
from pathlib import Path

import pytest

from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.errors import HTTP_STATUS, BusError
from agent_bus.operations import finish
from agent_bus.settings import Settings
from agent_bus.store.port import Stale
from tests.tools.buses import BOSS, CODER
from tests.tools.desk import Desk, refused

NOWHERE = "t-20260307-120000-999"


def test_the_codes_have_the_statuses_of_the_protocol() -> None:
    protocol = {
        "invalid": 400, "not_found": 404, "conflict": 409, "not_yours": 403, "refused": 403, "stopped": 423,
        "busy": 503, "timeout": 504, "too_large": 413, "unavailable": 507, "corrupt": 500, "internal": 500,
    }  # fmt: skip
    assert HTTP_STATUS | protocol == HTTP_STATUS
    with pytest.raises(ValueError, match="unknown error code"):
        BusError("oops", "x")


def test_invalid_not_found_conflict_and_too_large(boss: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    with refused("invalid", "state", "must be"):
        boss.update_status(state="asleep")
    with refused("not_found", NOWHERE):
        boss.get_task(NOWHERE)
    with refused("conflict", "pending"):
        boss.acknowledge_report(task_id)
    with refused("too_large", "501", "500"):
        boss.cancel_task(task_id, "x" * 501)


def test_not_yours_and_refused(bus: Bus, boss: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    with refused("not_yours", "boss"):
        boss.update_status("coder")
    with refused("not_yours", "coder"):
        Desk(bus, Caller(agent="coder")).receive_task(worker="chef#2")
    with refused("not_yours"):
        Desk(bus, Caller(agent="chef")).cancel_task(task_id)
    boss.edit(f"inbox/coder/{task_id}", status="dead_letter")
    with refused("refused", "a person"):
        boss.retry_task(task_id)


def test_busy_when_a_lock_is_not_to_be_had(bus: Bus, boss: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    real = type(bus.store).lock
    monkeypatch.setattr(type(bus.store), "lock", lambda s, n, pool="doc", wait_s=0.1: real(s, n, pool, 0.1))
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with bus.store.lock(task_id):
            held.set()
            release.wait(20)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert held.wait(20)
        with refused("busy"):
            boss.cancel_task(task_id)
    finally:
        release.set()
        other.join()
    assert boss.cancel_task(task_id)["task_state"] == "cancelled"


def test_busy_when_others_are_always_first(boss: Desk, coder: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()

    def stale(*_: object, **__: object) -> None:
        raise Stale

    with monkeypatch.context() as patch:
        patch.setattr(finish, "commit", stale)
        with refused("busy", task_id):
            coder.submit_report(task_id, summary="s")


def test_corrupt_names_the_file(disk: Bus, tmp_path: Path) -> None:
    task_id = Desk(disk, BOSS).dispatch_task("coder", "x")["task_id"]
    (tmp_path / "bus" / "inbox" / "coder" / f"{task_id}.json").write_text("{", encoding="utf-8")
    for act in (Desk(disk).get_task, Desk(disk).cancel_task, Desk(disk).acknowledge_report):
        with refused("corrupt", task_id):
            act(task_id)


def test_a_folder_that_is_missing_or_none_of_ours(tmp_path: Path) -> None:
    with refused("not_found", "agent-bus init"):
        open_bus(Settings(root=str(tmp_path / "nowhere")))
    with refused("not_found", "AGENT_BUS_ROOT"):
        open_bus(Settings())
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mum.txt").write_text("x", encoding="utf-8")
    with refused("refused", "agent-bus init"):
        open_bus(Settings(root=str(tmp_path / "letters")))
    (tmp_path / "bus" / ".bus").mkdir(parents=True)
    newer = {"schema": 99, "owner": {"host": "h", "name": "n"}}
    (tmp_path / "bus" / ".bus" / "format.json").write_text(json.dumps(newer), encoding="utf-8")
    with refused("refused", "99"):
        Desk(open_bus(Settings(root=str(tmp_path / "bus")), BOSS)).dispatch_task("coder", "x")


def test_a_refusal_of_a_writing_verb_is_a_line_in_the_journal(bus: Bus, boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    with refused("conflict"):
        coder.submit_report(task_id, summary="s")
    with refused("not_found"):
        boss.get_task(NOWHERE)
    last = bus.journal.read()[-1]
    assert (last["event"], last["verb"], last["outcome"], last["task_id"]) == (
        "refused", "submit_report", "conflict", task_id,
    )  # fmt: skip


def test_every_change_is_a_line_in_the_journal(bus: Bus, boss: Desk, person: Desk) -> None:
    coder = Desk(bus, CODER)
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    coder.submit_report(task_id, summary="s", needs_review=True)
    boss.acknowledge_report(task_id, "rework", "c")
    boss.cancel_task(task_id)
    boss.acknowledge_report(task_id)
    gated = boss.dispatch_task("coder", "delete all files")["task_id"]
    person.reject(gated)
    boss.share_context("k", "v")
    boss.emergency_stop()
    person.resume()
    events = [line["event"] for line in bus.journal.read()]
    assert events == [
        "task.dispatched", "task.started", "report.needs_review", "task.rework", "task.cancelled",
        "report.acknowledged", "task.approval_needed", "task.rejected", "context.shared", "bus.stopped", "bus.resumed",
    ]  # fmt: skip


def test_shared_context_is_written_over_only_at_the_revision_that_was_read(boss: Desk) -> None:
    first = boss.share_context("k", "one")["rev"]
    second = boss.share_context("k", "two", expected_rev=first)["rev"]
    with refused("conflict", second):
        boss.share_context("k", "three", expected_rev=first)
    with refused("conflict", "does not exist"):
        boss.share_context("other", "x", expected_rev=first)
    entry = boss.get_shared_context("K")["entries"][0]
    assert (entry["data"], entry["author"], entry["rev"]) == ("two", "boss", second)
    with refused("too_large", "262145", "262144"):
        boss.share_context("k", "x" * (256 * 1024 + 1))
    for key in ("../x", "", ".x", "CON", "a" * 121):
        with refused("invalid", "key"):
            boss.share_context(key, "x")
