"""What people decide in the notes of tasks: taken once, for what was asked, and never from a half-typed note."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_bus.errors import BusError
from agent_bus.jobs.mirror import MirrorJob
from agent_bus.notes import ledger
from agent_bus.operations import vault_channel
from tests.notes.vault_check import split_note
from tests.vault.conftest import Vault

RISKY = "Please review this: delete all old files in drafts/"


def name_of(task_id: str) -> str:
    return f"notes/tasks/{task_id}"


def tick(vault: Vault, task_id: str, box: str, mark: str = "[x]") -> None:
    text = vault.note(name_of(task_id))
    line = next(one for one in text.splitlines() if one.endswith(f"^{box}"))
    vault.type(name_of(task_id), line, line.replace("[ ]", mark))


def fill(vault: Vault, task_id: str, key: str, value: str) -> None:
    text = (vault.root / f"{name_of(task_id)}.md").read_text()
    line = next(one for one in text.splitlines() if one.startswith(f"{key}:"))
    vault.type(name_of(task_id), line, f"{key}: {value}")


def answer(vault: Vault, task_id: str, text: str) -> None:
    vault.type(name_of(task_id), "### Reply\n", f"### Reply\n{text}\n")


def front(vault: Vault, task_id: str) -> dict[str, Any]:
    return split_note(vault.note(name_of(task_id)))[0]


def waiting(vault: Vault, text: str = RISKY) -> str:
    task_id = str(vault.boss.dispatch_task("coder", text)["task_id"])
    vault.run()
    return task_id


def blocked(vault: Vault) -> str:
    task_id = str(vault.boss.dispatch_task("coder", "Write tests")["task_id"])
    lease = vault.worker().receive_task()["lease_id"]
    vault.worker().submit_report(task_id, status="blocked", summary="Which database?", lease_id=lease)
    vault.run(4)
    return task_id


def in_review(vault: Vault) -> str:
    task_id = str(vault.boss.dispatch_task("coder", "Write tests")["task_id"])
    lease = vault.worker().receive_task()["lease_id"]
    vault.worker().submit_report(task_id, summary="Wrote them", needs_review=True, lease_id=lease)
    vault.run(4)
    return task_id


def log_of(vault: Vault, task_id: str) -> list[str]:
    text = vault.note(name_of(task_id))
    _, _, rest = text.partition("%% agent-bus:begin log")
    return [line for line in rest.partition("%% agent-bus:end log")[0].splitlines() if line.startswith("- ")]


@pytest.fixture
def free(tmp_path: Path) -> Any:
    """A vault in which everything may be decided."""
    made: list[Vault] = []

    def make(level: Literal["none", "normal", "all"] = "all", **more: Any) -> Vault:
        root = tmp_path / f"vault {len(made)}" / "09_AgentSync"
        root.mkdir(parents=True)
        made.append(Vault(root, authority=level, **more))
        return made[-1]

    yield make
    for one in made:
        one.bus.close()


@pytest.mark.req("vault:27")
def test_a_ticked_approval_lets_the_task_run_once(free: Any) -> None:
    vault = free("normal", protected=())
    task_id = waiting(vault)
    assert front(vault, task_id)["ab_req"]
    tick(vault, task_id, "approve")
    vault.run(2)
    assert vault.boss.task(task_id)["status"] == "pending_approval", "nobody decides in the middle of typing"
    vault.run(6)
    task = vault.boss.task(task_id)
    assert (task["status"], task["approval"]["channel"]) == ("pending", "vault:unverified")
    assert log_of(vault, task_id) == []
    vault.run(14)
    assert log_of(vault, task_id) == ["- 2026-12-01 18:30 approved (vault edit, unverified) → Waiting for a worker"]
    data = front(vault, task_id)
    assert (data["ab_status"], data["ab_req"], data["ab_approve"]) == ("pending", "", False)
    assert "- [ ] Approve ^approve" in vault.note(name_of(task_id))
    vault.job = MirrorJob()
    vault.run(60)
    assert [one["event"] for one in vault.boss.task(task_id)["history"]].count("approve") == 1
    assert len(log_of(vault, task_id)) == 1


@pytest.mark.req("vault:28")
def test_what_contradicts_itself_or_cannot_be_read_decides_nothing(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    fill(vault, task_id, "ab_approve", "true")
    tick(vault, task_id, "reject")
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == "pending_approval"
    assert "Two different decisions are set here" in vault.note(name_of(task_id))
    fill(vault, task_id, "ab_decision", "[")
    broken = (vault.root / f"{name_of(task_id)}.md").read_text().split("\n---\n")[0]
    vault.run(20)
    text = (vault.root / f"{name_of(task_id)}.md").read_text()
    assert text.split("\n---\n")[0] == broken
    assert "The properties of this note cannot be read" in text
    fill(vault, task_id, "ab_decision", '""')
    vault.type(name_of(task_id), "- [x] Reject", "- [ ] Reject")
    vault.run(30)
    assert vault.boss.task(task_id)["status"] == "pending"
    assert [one["event"] for one in vault.boss.task(task_id)["history"]].count("approve") == 1
    assert "cannot be read" not in vault.note(name_of(task_id))


@pytest.mark.req("vault:29")
@pytest.mark.parametrize(
    ("level", "status"), [("none", "pending_approval"), ("normal", "pending_approval"), ("all", "pending")]
)
def test_what_is_about_deletion_is_approved_here_only_at_the_highest_level(free: Any, level: str, status: str) -> None:
    vault = free(level)
    task_id = waiting(vault)
    tick(vault, task_id, "approve")
    vault.run(30)
    assert vault.boss.task(task_id)["status"] == status
    [line] = log_of(vault, task_id)
    assert (f"`agent-bus approve {task_id}` at a terminal" in line) == (level != "all")


@pytest.mark.req("vault:30")
def test_an_older_version_that_comes_back_decides_nothing_and_is_put_right(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    path = vault.root / f"{name_of(task_id)}.md"
    first = path.read_bytes()
    tick(vault, task_id, "approve")
    ticked = path.read_bytes()
    vault.run(30)
    lease = vault.worker().receive_task()["lease_id"]
    vault.run(6)
    vault.worker().submit_report(task_id, status="blocked", summary="Which?", lease_id=lease)
    vault.run(30)
    for old in (first, ticked):
        path.write_bytes(old)
        vault.run(40)
        assert front(vault, task_id)["ab_status"] == "blocked"
        assert vault.boss.task(task_id)["status"] == "blocked"
    assert [one["event"] for one in vault.boss.task(task_id)["history"]].count("approve") == 1


@pytest.mark.req("vault:31")
def test_an_answer_is_sent_when_it_is_ticked_and_once(free: Any) -> None:
    vault = free("normal")
    task_id = blocked(vault)
    answer(vault, task_id, "PostgreSQL.\n## Why\nWe have it.")
    vault.run(60)
    assert vault.boss.task(task_id)["status"] == "blocked"
    tick(vault, task_id, "send")
    same = (vault.root / f"{name_of(task_id)}.md").read_bytes()
    for _ in range(3):
        (vault.root / f"{name_of(task_id)}.md").write_bytes(same)
        vault.run(6)
    task = vault.boss.task(task_id)
    assert (task["status"], task["comment"]["text"]) == ("pending", "PostgreSQL.\n## Why\nWe have it.")
    vault.run(30)
    text = vault.note(name_of(task_id))
    assert "```text\nPostgreSQL.\n## Why\nWe have it.\n```" in text.partition("begin log")[2]
    assert "### Reply\n\n- [ ] Send ^send" in text
    assert [one["event"] for one in vault.boss.task(task_id)["history"]].count("retry") == 1


def test_what_is_typed_on_after_an_answer_was_sent_stays(free: Any) -> None:
    vault = free("normal")
    task_id = blocked(vault)
    answer(vault, task_id, "SQLite")
    tick(vault, task_id, "send")
    vault.run(8)
    assert vault.boss.task(task_id)["status"] == "pending"
    vault.type(name_of(task_id), "SQLite\n", "SQLite, and one more thing\n")
    vault.run(40)
    text = vault.note(name_of(task_id))
    assert "### Reply\nSQLite, and one more thing\n\n- [ ] Send ^send" in text
    assert vault.boss.task(task_id)["comment"]["text"] == "SQLite"


@pytest.mark.req("vault:37")
def test_a_stop_is_cleared_from_the_dashboard_only_with_its_nonce_and_at_the_highest_level(free: Any) -> None:
    for level, old, resumed in (("normal", False, False), ("all", True, False), ("all", False, True)):
        vault = free(level)
        vault.boss.emergency_stop("first")
        vault.run()
        nonce = split_note(vault.note("Dashboard"))[0]["ab_req"]
        if old:
            vault.desk.resume()
            vault.boss.emergency_stop("second")
            vault.run(20)
            assert split_note(vault.note("Dashboard"))[0]["ab_req"] not in ("", nonce)
            now = split_note(vault.note("Dashboard"))[0]["ab_req"]
            vault.type("Dashboard", f"ab_req: {now}", f"ab_req: {nonce}")
        vault.type("Dashboard", "- [ ] Clear the stop", "- [x] Clear the stop")
        vault.run(40)
        assert (vault.boss.system_health()["stopped"] is None) == resumed, (level, old)
        assert "- [ ] Clear the stop ^clear-stop" in vault.note("Dashboard")


def test_stop_all_on_the_dashboard_stops_at_first_sight_and_once(free: Any) -> None:
    vault = free("none")
    vault.boss.dispatch_task("coder", "x")
    vault.run()
    vault.type("Dashboard", "- [ ] Stop all", "- [x] Stop all")
    vault.job.tick(vault.bus, vault.clock.now())
    assert "Dashboard" in vault.boss.system_health()["stopped"]["reason"]
    vault.desk.resume()
    vault.job = MirrorJob()
    vault.run(4)
    assert vault.boss.system_health()["stopped"] is None
    vault.run(30)
    assert "- [ ] Stop all agents ^stop-all" in vault.note("Dashboard")


@pytest.mark.req("vault:38")
@pytest.mark.parametrize("mark", ["［ｘ］", "[X]", "[-]", "[?]", "[/]", "[ ]"])
def test_a_tick_is_an_x_in_any_width_and_nothing_else(free: Any, mark: str) -> None:
    vault = free("all")
    task_id = waiting(vault)
    text = (vault.root / f"{name_of(task_id)}.md").read_text()
    vault.type(name_of(task_id), "- [ ] Approve", f"- {mark} Approve")
    assert text != (vault.root / f"{name_of(task_id)}.md").read_text() or mark == "[ ]"
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == ("pending" if mark in ("［ｘ］", "[X]") else "pending_approval")


@pytest.mark.req("vault:38:words")
@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("承認", "pending"),
        ("ＯＫ", "pending"),
        ("却下", "rejected"),
        ("cancel", "cancelled"),
        ("maybe", "pending_approval"),
    ],
)
def test_words_decide_in_two_languages_and_an_unknown_one_is_named(free: Any, word: str, status: str) -> None:
    vault = free("all")
    task_id = waiting(vault)
    fill(vault, task_id, "ab_decision", f'"{word}"')
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == status
    assert ("use approve, reject or cancel" in vault.note(name_of(task_id))) == (word == "maybe")


@pytest.mark.req("vault:40")
def test_priority_is_the_person_s_and_the_state_is_not(free: Any) -> None:
    vault = free("normal")
    task_id = str(vault.boss.dispatch_task("coder", "x")["task_id"])
    vault.run()
    fill(vault, task_id, "ab_priority", "high")
    fill(vault, task_id, "ab_status", "completed")
    vault.run(30)
    assert (vault.boss.task(task_id)["priority"], vault.boss.task(task_id)["status"]) == ("high", "pending")
    assert (front(vault, task_id)["ab_status"], front(vault, task_id)["ab_priority"]) == ("pending", "high")
    assert sum("put back" in line for line in log_of(vault, task_id)) == 1
    vault.worker().receive_task()
    vault.run(6)
    fill(vault, task_id, "ab_status", "cancelled")
    vault.run(40)
    events = [one["event"] for one in vault.boss.task(task_id)["history"]]
    assert events.count("cancel_requested") == 1


@pytest.mark.req("vault:42")
def test_a_report_is_sent_back_only_with_words(free: Any) -> None:
    vault = free("normal")
    task_id = in_review(vault)
    tick(vault, task_id, "reject")
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == "in_review"
    assert "write under Reply what to say or what to change" in vault.note(name_of(task_id))
    answer(vault, task_id, "Also test the errors")
    vault.run(30)
    task = vault.boss.task(task_id)
    assert (task["status"], task["comment"]["text"]) == ("pending", "Also test the errors")
    assert [one["event"] for one in task["history"]].count("rework") == 1


def test_a_report_is_accepted_by_a_tick(free: Any) -> None:
    vault = free("normal")
    task_id = in_review(vault)
    tick(vault, task_id, "approve")
    vault.run(30)
    assert vault.boss.task(task_id)["status"] == "completed"


@pytest.mark.req("vault:20")
def test_from_a_note_with_broken_markers_nothing_is_taken_until_they_are_whole(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    tick(vault, task_id, "approve")
    vault.type(name_of(task_id), "%% agent-bus:end body %%\n", "")
    vault.run(40)
    assert vault.boss.task(task_id)["status"] == "pending_approval"
    vault.type(name_of(task_id), "\n### Decision", "%% agent-bus:end body %%\n\n### Decision")
    vault.run(30)
    assert vault.boss.task(task_id)["status"] == "pending"


def test_from_the_second_approval_of_a_note_on_a_tick_is_not_enough(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    tick(vault, task_id, "approve")
    vault.run(30)
    path = next((vault.root / "inbox" / "coder").glob("*.json"))
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "instruction": f"{RISKY} and delete the backups"}))
    vault.worker().receive_task()
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == "pending_approval"
    tick(vault, task_id, "approve")
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == "pending_approval"
    req = front(vault, task_id)["ab_req"]
    assert f"`approve {req}`" in vault.note(name_of(task_id))
    fill(vault, task_id, "ab_decision", f"approve {req}")
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == "pending"


@pytest.mark.req("vault:49")
def test_when_the_ledger_is_lost_nothing_that_stands_in_a_note_counts(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    tick(vault, task_id, "approve")
    vault.bus.store.delete(ledger.read(vault.bus, "task", task_id))
    vault.job = MirrorJob()
    vault.run(40)
    assert vault.boss.task(task_id)["status"] == "pending_approval"
    vault.type(name_of(task_id), "- [x] Approve", "- [ ] Approve")
    vault.run(20)
    tick(vault, task_id, "approve")
    vault.run(20)
    assert vault.boss.task(task_id)["status"] == "pending"


def test_while_the_bus_is_stopped_only_what_ends_work_is_taken(free: Any) -> None:
    vault = free("all")
    first, second = waiting(vault), waiting(vault, f"{RISKY} again")
    vault.boss.emergency_stop("wait")
    vault.run(4)
    tick(vault, first, "approve")
    tick(vault, second, "cancel")
    vault.run(40)
    assert vault.boss.task(first)["status"] == "pending_approval"
    assert vault.boss.task(second)["status"] == "cancelled"
    vault.desk.resume()
    vault.run(20)
    assert vault.boss.task(first)["status"] == "pending"


def test_too_many_decisions_at_once_close_the_channel_until_a_person_opens_it(free: Any) -> None:
    vault = free("all", max_acts=2)
    tasks = [str(vault.boss.dispatch_task("coder", f"task {n}")["task_id"]) for n in range(5)]
    vault.run()
    for task_id in tasks:
        tick(vault, task_id, "cancel")
    vault.run(30)
    states = [vault.boss.task(one)["status"] for one in tasks]
    assert states.count("cancelled") == 3
    assert "agent-bus vault unpause" in vault.note("Dashboard")
    assert vault_channel.open_again(vault.bus)
    vault.run(30)
    assert [vault.boss.task(one)["status"] for one in tasks].count("cancelled") == 5


@pytest.mark.req("vault:25")
def test_a_note_that_was_moved_and_renamed_is_written_and_read_where_it_is(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    usual = vault.root / f"{name_of(task_id)}.md"
    place = vault.root.parent / "My work" / "x.md"
    place.parent.mkdir()
    usual.rename(place)
    vault.run(40)
    text = place.read_text()
    place.write_text(text.replace("- [ ] Approve", "- [x] Approve"))
    vault.run(40)
    assert vault.boss.task(task_id)["status"] == "pending"
    assert "ab_status: pending\n" in place.read_text()
    assert "approved (vault edit, unverified)" in place.read_text()
    vault.job = MirrorJob()
    vault.worker().receive_task()
    vault.run(10)
    assert "ab_status: in_progress" in place.read_text()
    assert not usual.exists()
    (place.parent / "copy.md").write_text(place.read_text())
    vault.bus.store.replace(
        (doc := vault.bus.store.get(f".bus/vault/notes/task/{task_id}")), {**doc.value, "path": name_of(task_id)}
    )
    vault.boss.cancel_task(task_id)
    vault.run(60)
    assert not usual.exists()
    assert "keep one of them" in vault.note("notes/Problems")


def test_a_decision_that_could_not_be_written_down_is_taken_at_the_next_look(
    free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = free("all")
    task_id = waiting(vault)
    tick(vault, task_id, "approve")
    real, refused = ledger.change, list[str]()

    def change(bus: Any, kind: str, *rest: Any) -> None:
        if kind == "task" and len(refused) < 2:
            refused.append(kind)
            raise BusError("unavailable", "the disk is full.", "Make room.")
        real(bus, kind, *rest)

    monkeypatch.setattr(ledger, "change", change)
    vault.run(40)
    assert len(refused) == 2
    assert vault.boss.task(task_id)["status"] == "pending"
    assert len(log_of(vault, task_id)) == 1
    assert [one["event"] for one in vault.boss.task(task_id)["history"]].count("approve") == 1


def test_damaged_documents_of_the_vault_s_side_stop_nothing(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    for place in (f"requests/{task_id}", f"notes/task/{task_id}"):
        (vault.root / ".bus" / "vault" / f"{place}.json").write_text("{half")
    vault.job = MirrorJob()
    vault.run(40)
    assert front(vault, task_id)["ab_req"]
    tick(vault, task_id, "approve")
    vault.run(40)
    assert vault.boss.task(task_id)["status"] == "pending"


def test_nothing_is_written_over_a_version_that_has_just_come_back(free: Any) -> None:
    vault = free("normal")
    task_id = str(vault.boss.dispatch_task("coder", "x")["task_id"])
    vault.run()
    path = vault.root / f"{name_of(task_id)}.md"
    vault.type(name_of(task_id), "### Notes\n", "### Notes\nmine\n")
    typed = path.read_bytes()
    vault.run(14)
    lease = vault.worker().receive_task()["lease_id"]
    vault.run(4)
    assert front(vault, task_id)["ab_status"] == "in_progress"
    path.write_bytes(typed)
    vault.worker().submit_report(task_id, summary="done", lease_id=lease)
    vault.run(8)
    assert path.read_bytes() == typed
    vault.run(8)
    assert front(vault, task_id)["ab_status"] == "completed"
    assert "mine" in vault.note(name_of(task_id))


def test_a_tick_in_a_copy_of_a_note_counts_for_nothing_and_the_copy_is_named(free: Any) -> None:
    vault = free("all")
    task_id = waiting(vault)
    text = vault.note(name_of(task_id)).replace("- [ ] Approve", "- [x] Approve")
    copy = vault.root / "notes" / "tasks" / f"{task_id} 2.md"
    copy.write_text(text)
    vault.run(40)
    assert vault.boss.task(task_id)["status"] == "pending_approval"
    assert copy.read_text() == text
    assert "is a copy of the note" in vault.note("notes/Problems")
    copy.unlink()
    vault.run(40)
    assert "is a copy of the note" not in vault.note("notes/Problems")
