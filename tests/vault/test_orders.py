"""What people order in `commands/`: notes, lines of the inbox, and stops in every spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_bus.domain.stop_names import is_stop
from agent_bus.errors import BusError
from agent_bus.jobs.mirror import MirrorJob
from tests.notes.vault_check import split_note
from tests.vault.conftest import Vault

ORDER = (
    '---\nab_kind: command\nab_command: dispatch\nab_to: "{to}"\nab_ready: {ready}\nab_made: "{made}"\n---\n{text}\n'
)


def put(vault: Vault, name: str, text: str) -> Path:
    path = vault.root / "commands" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def order(to: str = "coder", text: str = "Write tests", made: str = "", ready: str = "true") -> str:
    return ORDER.format(to=to, text=text, made=made, ready=ready)


def tasks(vault: Vault) -> list[dict[str, Any]]:
    return [vault.boss.task(one["task_id"]) for one in vault.boss.list_tasks()["tasks"]]


@pytest.fixture
def staffed(vault: Vault) -> Vault:
    """A vault with two agents that were seen."""
    for name in ("coder", "claude-code"):
        vault.worker(name).update_status(state="idle")
    return vault


@pytest.mark.req("vault:32")
def test_what_is_no_finished_order_is_left_alone(staffed: Vault) -> None:
    texts = {"Untitled": "", "Idea": order(ready="false"), "Mine": "buy milk\n", "Odd": "---\nab_kind: task\n---\nx\n"}
    paths = [put(staffed, name, text) for name, text in texts.items()]
    staffed.run(620)
    assert [path.read_text() for path in paths] == list(texts.values())
    assert tasks(staffed) == []


@pytest.mark.req("vault:33")
def test_a_ready_note_is_sent_once_and_put_away(staffed: Vault) -> None:
    path = put(staffed, "Tests", order(ready="false", made="2026-12-01 18:00:00"))
    staffed.run(20)
    path.write_text(path.read_text().replace("ab_ready: false", "ab_ready: true"))
    staffed.run(16)
    [task] = tasks(staffed)
    assert (task["from"], task["to"], task["instruction"], task["status"]) == (
        "human",
        "coder",
        "Write tests",
        "pending",
    )
    data, body = split_note(path.read_text())
    assert (data["ab_state"], data["ab_task"]) == ("accepted", f"[[{task['task_id']}]]")
    assert body.startswith("Write tests\n")
    assert "Waiting for a worker" in body
    staffed.job = MirrorJob()
    staffed.run(80)
    assert not path.exists()
    assert "accepted" in (path.parent / "done" / "Tests.md").read_text()
    assert len(tasks(staffed)) == 1


def test_a_risky_order_waits_for_approval_like_any_other(staffed: Vault) -> None:
    put(staffed, "Clean", order(text="delete all old files in drafts/"))
    staffed.run(16)
    assert [task["status"] for task in tasks(staffed)] == ["pending_approval"]


@pytest.mark.req("vault:33:names")
def test_an_unknown_agent_is_refused_with_the_nearest_name_and_taken_when_corrected(staffed: Vault) -> None:
    path = put(staffed, "Tests", order(to="cluade-code"))
    staffed.run(30)
    assert tasks(staffed) == []
    data, body = split_note(path.read_text())
    assert data["ab_state"] == "refused"
    assert "did you mean claude-code?" in body
    before = path.read_bytes()
    staffed.run(120)
    assert path.read_bytes() == before
    path.write_text(path.read_text().replace("cluade-code", "claude-code"))
    staffed.run(16)
    assert [task["to"] for task in tasks(staffed)] == ["claude-code"]
    assert split_note(path.read_text())[0]["ab_state"] == "accepted"


def test_a_refused_order_is_taken_when_it_is_mended(staffed: Vault) -> None:
    made = "2026-12-01 18:00:00"
    path = put(staffed, "Later", order(made=made).replace("ab_ready", "ab_not_before: whenever\nab_ready"))
    staffed.run(20)
    assert "Not done" in path.read_text()
    path.write_text(path.read_text().replace("ab_not_before: whenever", "ab_not_before: 2026-12-02T09:00:00+09:00"))
    staffed.run(20)
    assert [task["status"] for task in tasks(staffed)] == ["scheduled"]
    assert split_note(path.read_text())[0]["ab_state"] == "accepted"


def test_times_without_a_zone_and_links_to_agents_are_understood(staffed: Vault) -> None:
    text = order(to="[[coder]]").replace("ab_ready", "ab_not_before: 2026-12-24T10:15\nab_ready")
    put(staffed, "Later", text)
    staffed.run(20)
    [task] = tasks(staffed)
    assert (task["to"], task["status"], task["not_before"]) == ("coder", "scheduled", "2026-12-24T01:15:00.000Z")


def test_no_order_is_answered_while_somebody_types_in_it(staffed: Vault) -> None:
    path = put(staffed, "Tests", order())
    staffed.run(6)
    assert len(tasks(staffed)) == 1
    assert path.read_text() == order()
    path.write_text(order() + "and a remark\n")
    staffed.run(8)
    assert path.read_text() == order() + "and a remark\n"
    staffed.run(8)
    assert "ab_state" in path.read_text()


@pytest.mark.parametrize(("level", "count"), [("none", 0), ("normal", 2)])
def test_at_the_lowest_level_nothing_is_ordered(tmp_path: Path, level: Any, count: int) -> None:
    root = tmp_path / "09_AgentSync"
    root.mkdir()
    vault = Vault(root, authority=level)
    vault.worker().update_status(state="idle")
    note, inbox = put(vault, "Tests", order()), put(vault, "Inbox", "@coder: Write more\n")
    vault.run(20)
    assert len(tasks(vault)) == count
    assert [("terminal" in one.read_text()) for one in (note, inbox)] == [count == 0, count == 0]
    vault.bus.close()


@pytest.mark.req("vault:34")
def test_the_same_order_twice_is_one_task_and_another_text_under_its_stamp_is_refused(staffed: Vault) -> None:
    made = "2026-12-01 18:00:00"
    first = put(staffed, "Tests", order(made=made))
    staffed.run(16)
    second = put(staffed, "Tests 2", order(made=made))
    third = put(staffed, "Other", order(made=made, text="Something else"))
    staffed.run(16)
    assert len(tasks(staffed)) == 1
    states = [split_note(path.read_text())[0]["ab_state"] for path in (first, second, third)]
    assert states == ["accepted", "duplicate", "refused"]
    unstamped = [put(staffed, f"Plain {n}", order(text="Run them")) for n in range(2)]
    staffed.run(16)
    assert sorted(split_note(path.read_text())[0]["ab_state"] for path in unstamped) == ["accepted", "duplicate"]
    assert len(tasks(staffed)) == 2


@pytest.mark.req("vault:35")
def test_a_stop_note_works_without_a_daemon_and_again_when_it_comes_back(staffed: Vault) -> None:
    put(staffed, "STOP", "")
    with pytest.raises(BusError, match=r"commands/STOP\.md"):
        staffed.boss.dispatch_task("coder", "x")
    with pytest.raises(BusError, match=r"commands/STOP\.md"):
        staffed.worker().receive_task()
    staffed.run()
    staffed.desk.resume()
    assert not (staffed.root / "commands" / "STOP.md").exists()
    assert len(list((staffed.root / "commands" / "done").glob("STOP-*.md"))) == 1
    staffed.run(4)
    assert staffed.boss.dispatch_task("coder", "x")["status"] == "pending"
    put(staffed, "STOP", "")
    staffed.run(2)
    assert staffed.boss.system_health()["stopped"] is not None


@pytest.mark.req("vault:36")
@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("STOP", True), ("stop", True), ("ＳＴＯＰ", True), ("STOP 2", True), ("停止", True), ("停止 3", True),
        ("STOP (Conflicted copy Phone 202612011000)", True), ("STOP.sync-conflict-20261201-100000-ABC", True),
        ("Stop using tabs", False), ("STOPPED", False), ("Nonstop", False), ("停止の手順", False),
    ],
)  # fmt: skip
def test_a_stop_is_known_by_its_name_in_every_spelling(staffed: Vault, name: str, stops: bool) -> None:
    assert is_stop(name) is stops
    put(staffed, name, "whatever")
    staffed.run(2)
    assert (staffed.boss.system_health()["stopped"] is not None) is stops
    if stops:
        staffed.desk.resume()
        staffed.run(4)
        assert staffed.boss.system_health()["stopped"] is None


@pytest.mark.req("vault:39")
def test_a_line_is_a_task_when_it_has_ended_and_is_ticked(staffed: Vault) -> None:
    example = "```text\n- [ ] @coder in a fence\n```\n"
    path = put(staffed, "Inbox", f"{example}@claude-code !high Write tests\n- [ ] @coder no end yet")
    staffed.run(8)
    assert tasks(staffed) == []
    staffed.run(8)
    [task] = tasks(staffed)
    assert (task["to"], task["priority"], task["instruction"]) == ("claude-code", "high", "Write tests")
    done = f"- [x] @claude-code !high Write tests → [[{task['task_id']}]]"
    assert path.read_text() == f"{example}{done}\n- [ ] @coder no end yet"
    staffed.run(620)
    assert "press Enter" in (staffed.root / "notes" / "Problems.md").read_text()
    with path.open("a") as file:
        file.write("\n")
    staffed.run(20)
    assert sorted(one["to"] for one in tasks(staffed)) == ["claude-code", "coder"]


@pytest.mark.req("vault:38:inbox")
def test_wide_signs_name_an_agent_too(staffed: Vault) -> None:
    path = put(staffed, "Inbox", "－ ＠coder\n- ［ ］ ＠claude-code テスト\n- [-] @coder dropped\n- [/] @coder half\n")
    staffed.run(16)
    assert [(task["to"], task["instruction"]) for task in tasks(staffed)] == [("claude-code", "テスト")]
    assert "- [x] ＠claude-code テスト → [[t-" in path.read_text()


@pytest.mark.req("vault:50")
def test_a_line_that_comes_back_or_is_rewritten_is_not_sent_again(staffed: Vault) -> None:
    path = put(staffed, "Inbox", "- [ ] @coder Write tests\n")
    old = path.read_bytes()
    staffed.run(16)
    [task] = tasks(staffed)
    path.write_bytes(old)
    staffed.run(40)
    assert len(tasks(staffed)) == 1
    assert task["task_id"] in (staffed.root / "notes" / "Problems.md").read_text()
    path.write_text("- [ ] @coder !again Write tests\n")
    staffed.run(16)
    assert len(tasks(staffed)) == 2
    ticked = path.read_text()
    path.write_text("- [ ] @coder !again Write tests\n")
    staffed.run(40)
    assert len(tasks(staffed)) == 2, "these very bytes were read before"
    assert "→ [[t-" in ticked


def test_equal_lines_are_each_a_task(staffed: Vault) -> None:
    path = put(staffed, "Inbox", "@coder Write tests\n@coder Write tests\n")
    staffed.run(16)
    assert len(tasks(staffed)) == 2
    assert path.read_text().count("- [x] @coder Write tests → [[t-") == 2


def test_an_unknown_agent_in_a_line_is_named_once(staffed: Vault) -> None:
    path = put(staffed, "Inbox", "@codr Write tests\n")
    staffed.run(40)
    assert path.read_text() == "- [ ] @codr Write tests ⚠ no such agent; did you mean coder?\n"
    path.write_text(path.read_text().replace("@codr", "@coder"))
    staffed.run(16)
    [task] = tasks(staffed)
    assert path.read_text() == f"- [x] @coder Write tests → [[{task['task_id']}]]\n"


def test_a_stop_in_the_inbox_needs_no_rest(staffed: Vault) -> None:
    path = put(staffed, "Inbox", "- stop\n")
    staffed.job.tick(staffed.bus, staffed.clock.now())
    assert "Inbox" in staffed.boss.system_health()["stopped"]["reason"]
    staffed.run(30)
    staffed.desk.resume()
    staffed.run(30)
    assert path.read_text() == "- [x] stop\n"
    assert staffed.boss.system_health()["stopped"] is None


@pytest.mark.req("vault:41")
@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("ab_x: &a 1", "refused"),
        ("ab_x: !!python/object/apply:os.system [ls]", "refused"),
        ("ab_to: coder", "refused"),
        ("", "accepted"),
    ],
)
def test_yaml_that_stands_for_something_else_is_refused_and_nothing_runs(staffed: Vault, line: str, state: str) -> None:
    text = order().replace("ab_ready", f"{line}\nab_ready" if line else "ab_ready")
    path = put(staffed, "Odd", text if line else "\ufeff" + text)
    staffed.run(20)
    shown = path.read_text(encoding="utf-8")
    assert ("> [!failure]" in shown) == (state == "refused")
    assert len(tasks(staffed)) == (state == "accepted")


@pytest.mark.parametrize(
    "name", ["Tests (conflicted copy 2026-12-01)", "Tests.sync-conflict-20261201-1-ABC", "Tests 競合"]
)
def test_a_copy_by_a_synchroniser_is_held_and_named(staffed: Vault, name: str) -> None:
    path = put(staffed, name, order())
    before = path.read_bytes()
    staffed.run(40)
    assert tasks(staffed) == []
    assert path.read_bytes() == before
    assert "synchroniser" in (staffed.root / "notes" / "Problems.md").read_text()


def test_a_note_decides_on_a_task_by_its_nonce(staffed: Vault) -> None:
    task_id = staffed.boss.dispatch_task("coder", "Delete old files in drafts/")["task_id"]
    staffed.run()
    req = split_note(staffed.note(f"notes/tasks/{task_id}"))[0]["ab_req"]
    head = f'---\nab_kind: command\nab_command: reject\nab_task: "[[{task_id}]]"\nab_ready: true\n'
    old = put(staffed, "Old", f"{head}ab_req: aaaaaaaa\n---\nno\n")
    staffed.run(16)
    assert "not what is asked now" in old.read_text()
    put(staffed, "No", f"{head}ab_req: {req}\n---\nToo risky\n")
    staffed.run(16)
    task = staffed.boss.task(task_id)
    assert (task["status"], task["approval"]["channel"]) == ("rejected", "vault:unverified")
