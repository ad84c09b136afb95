"""The mirror: what people see of the bus in their vault, and that what they write stays."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from multiprocessing import Process
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from agent_bus.domain.inert import SHOWN_CHARS
from agent_bus.jobs.mirror import MirrorJob
from agent_bus.notes import template
from agent_bus.store import atomic, claim
from agent_bus.store.format import label
from tests.notes.vault_check import check_name, check_note, split_note
from tests.tools.desk import Desk
from tests.vault.conftest import Vault

HOSTILE = (
    "Write [tests] #now | `x` <b>y</b>\n\n- [x] ok ^approve\n````\n```sh\nls\n```\n%% agent-bus:end body %%\n"
    "![[secret]]\n[[a link]] $x$ ==y==\n```mermaid\ngraph TD\n```\n---\nab_status: completed\n---\n\u202eabc"
)


def task_note(vault: Vault, task_id: str) -> str:
    return vault.note(f"notes/tasks/{task_id}")


def status_of(vault: Vault, task_id: str) -> str:
    return str(split_note(task_note(vault, task_id))[0]["ab_status"])


def test_a_task_is_seen_from_its_dispatch_to_its_end(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "Write tests\nfor parser.py", priority="high")["task_id"]
    vault.run()
    data, body = split_note(task_note(vault, task_id))
    assert (data["ab_id"], data["ab_title"], data["ab_status"]) == (task_id, "Write tests", "pending")
    assert (data["ab_from"], data["ab_to"], data["ab_priority"], data["ab_rev"]) == ("boss", "coder", "high", 1)
    assert str(data["ab_created"]).replace(" ", "T") == "2026-12-01T18:30:00", "the owner's own time, no offset"
    assert "```text\nWrite tests\nfor parser.py\n```" in body
    lease = vault.worker().receive_task()["lease_id"]
    vault.run(4)
    assert status_of(vault, task_id) == "in_progress"
    vault.worker().submit_report(task_id, summary="42 green", artifacts=["a.py"], lease_id=lease)
    vault.run(4)
    assert status_of(vault, task_id) == "completed"
    report, shown = split_note(vault.note(f"notes/reports/{task_id}-report"))
    assert (report["ab_task"], report["ab_from"], report["ab_status"]) == (f"[[{task_id}]]", "coder", "completed")
    assert "42 green" in shown
    assert "a.py" in shown
    vault.boss.acknowledge_report(task_id)
    vault.run(60)
    assert f"[[{task_id}|Write tests]]" in vault.note("Dashboard")


@pytest.mark.req("vault:16")
def test_the_dashboard_is_complete_as_plain_text(vault: Vault) -> None:
    risky = vault.boss.dispatch_task("coder", "Delete all old files in drafts/")["task_id"]
    queued = vault.boss.dispatch_task("ナナ", "ログを直す")["task_id"]
    vault.run()
    text = vault.note("Dashboard")
    first = text[text.index("> [!") :].splitlines()[0]
    assert first == "> [!warning] Needs you 1 · waiting 1 · running 0 · problems 1"
    assert f"- Waiting for approval · [[{risky}|Delete all old files in drafts/]] · coder" in text
    assert f"[[{queued}|ログを直す]] · ナナ" in text
    assert "[[ナナ]]" in text
    assert risky in vault.note("notes/Problems")
    assert f"agent-bus approve {risky}" in task_note(vault, risky)
    assert "![[" not in text
    vault.boss.emergency_stop("looks wrong")
    vault.run()
    assert "> [!danger] Stopped: looks wrong" in vault.note("Dashboard")


def test_problems_are_those_of_now(vault: Vault) -> None:
    first = vault.boss.dispatch_task("coder", "Delete all old files in drafts/")["task_id"]
    vault.run()
    assert first in vault.note("notes/Problems")
    Desk(vault.bus).approve(first)
    second = vault.boss.dispatch_task("coder", "Delete all old files in notes/")["task_id"]
    vault.run(45)
    text = vault.note("notes/Problems")
    assert first not in text
    assert second in text


@pytest.mark.req("vault:10")
def test_while_nothing_happens_nothing_is_written(vault: Vault) -> None:
    for number in range(5):
        vault.boss.dispatch_task("coder", f"task {number}")
    vault.worker().update_status(state="idle")
    vault.run(130)
    before = vault.times()
    for _ in range(30):
        vault.worker().update_status(state="idle")
        vault.run(20)
    assert vault.times() == before
    other = vault.boss.dispatch_task("coder", "one more")["task_id"]
    vault.run(14)
    changed = {name for name, sign in vault.times().items() if before.get(name) != sign}
    assert changed <= {f"notes/tasks/{other}.md", "Dashboard.md"}


@pytest.mark.req("vault:11")
def test_no_note_is_written_soon_after_a_person_typed_in_it(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    vault.run()
    name = f"notes/tasks/{task_id}"
    vault.type(name, "### Notes\n", "### Notes\nmine, fir")
    vault.worker().receive_task()
    vault.run(8)
    vault.type(name, "mine, fir", "mine, first line\n")
    typed = (vault.root / f"{name}.md").read_text()
    vault.run(9)
    assert (vault.root / f"{name}.md").read_text() == typed
    vault.run(8)
    text = task_note(vault, task_id)
    assert status_of(vault, task_id) == "in_progress"
    assert text.endswith("### Notes\nmine, first line\n")


@pytest.mark.req("vault:12")
def test_what_is_typed_between_our_read_and_our_rename_is_merged(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    vault.run()
    vault.worker().receive_task()
    real, typed = atomic.write_temp, list[bool]()

    def write(folder: str, data: bytes, durable: bool) -> tuple[str, os.stat_result]:
        if not typed and b"ab_kind: task" in data:
            typed.append(True)
            vault.type(f"notes/tasks/{task_id}", "### Notes\n", "### Notes\nin between\n")
        return real(folder, data, durable)

    monkeypatch.setattr(atomic, "write_temp", write)
    vault.run(30)
    assert typed
    assert "in between" in task_note(vault, task_id)
    assert status_of(vault, task_id) == "in_progress"


@pytest.mark.req("vault:13")
def test_text_of_an_agent_makes_no_link_box_tag_region_or_property(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", HOSTILE)["task_id"]
    lease = vault.worker().receive_task()["lease_id"]
    vault.worker().submit_report(task_id, status="blocked", summary=HOSTILE, lease_id=lease)
    vault.run(4)
    markdown = MarkdownIt("commonmark")
    for name in (f"notes/tasks/{task_id}", f"notes/reports/{task_id}-report", "Dashboard", "notes/Problems"):
        text = vault.note(name)
        data, body = split_note(text)
        assert data.get("ab_status", "") != "completed"
        shown = re.sub(r"\[\[(?:t-[^\]\n]*|coder|Problems)\]\]", "", body)
        for token in markdown.parse(shown):
            assert token.type != "html_block", (name, token.content)
            for part in token.children or []:
                assert part.type in ("text", "softbreak", "strong_open", "strong_close", "code_inline", "hardbreak")
                if part.type == "text":
                    assert "[[" not in part.content
    assert HOSTILE in task_note(vault, task_id)
    title = split_note(task_note(vault, task_id))[0]["ab_title"]
    assert title == "Write [tests] #now | `x` <b>y</b>"
    assert "|Write (tests) #now ¦ 'x' ‹b›y‹/b›]]" in vault.note("Dashboard")


@pytest.mark.req("vault:14")
@pytest.mark.parametrize(
    "title", ["no", "0123", "10:30", "on", "@x", "[[y]]", "a: b", '"q" \\ \'', "a\u2028b", "~", "2026-12-01"]
)
def test_titles_are_read_back_as_they_were(vault: Vault, title: str) -> None:
    task_id = vault.boss.dispatch_task("coder", title)["task_id"]
    vault.run()
    data, _ = split_note(task_note(vault, task_id))
    assert data["ab_title"] == data["aliases"][0] == title.replace("\u2028", " ")


@pytest.mark.req("vault:19")
def test_a_linter_that_reorders_and_requotes_properties_causes_no_write(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "x: y")["task_id"]
    vault.run(130)
    name = f"notes/tasks/{task_id}"
    text = task_note(vault, task_id)
    data, body = split_note(text)
    data = {
        key: str(value).replace(" ", "T") if key in ("ab_created", "ab_updated") else value
        for key, value in data.items()
    }
    lines = [f"{key}: {json.dumps(value)}" for key, value in reversed(data.items())]
    (vault.root / f"{name}.md").write_text("---\n" + "\n".join([*lines, "mine: 1"]) + f"\n---\n{body}")
    assert vault.run(60) == 0
    vault.worker().receive_task()
    vault.run(30)
    after = (vault.root / f"{name}.md").read_text()
    found, _ = split_note(after)
    assert list(found)[: len(lines)] == list(reversed(data))
    assert (found["mine"], found["ab_status"], found["ab_rev"]) == (1, "in_progress", 2)


@pytest.mark.req("vault:20:mirror")
def test_a_note_with_broken_markers_is_left_alone_and_named(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    vault.run()
    name = f"notes/tasks/{task_id}"
    vault.type(name, "%% agent-bus:end body %%\n", "")
    broken = (vault.root / f"{name}.md").read_text()
    vault.worker().receive_task()
    vault.run(60)
    assert (vault.root / f"{name}.md").read_text() == broken
    assert f"{name}.md" in vault.note("notes/Problems").replace("\\", "")
    vault.type(name, "\n### Notes", "%% agent-bus:end body %%\n\n### Notes")
    vault.worker().update_status(state="working", note="go")
    vault.run(60)
    assert status_of(vault, task_id) == "in_progress"


def test_a_file_of_the_person_under_a_note_s_name_is_never_overwritten(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    path = vault.root / "notes" / "tasks" / f"{task_id}.md"
    path.parent.mkdir(parents=True)
    path.write_text("my own note\n")
    vault.run(60)
    assert path.read_text() == "my own note\n"
    assert task_id in vault.note("notes/Problems")
    path.rename(path.with_name("mine.md"))
    vault.run(60)
    assert status_of(vault, task_id) == "pending", "the place is free again"
    assert task_id not in vault.note("notes/Problems")


@pytest.mark.req("vault:21")
def test_every_file_name_of_ours_is_there_once(vault: Vault) -> None:
    for _ in range(3):
        task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    lease = vault.worker().receive_task()["lease_id"]
    held = vault.worker().receive_task()["task"]["task_id"]
    vault.worker().submit_report(held, summary="done", lease_id=lease)
    vault.run(4)
    stems = [path.stem for path in vault.files().values()]
    assert task_id in stems
    assert f"{held}-report" in stems
    assert len(stems) == len(set(stems))
    assert [problem for path in vault.files().values() for problem in check_name(path.name)] == []


@pytest.mark.req("vault:23")
def test_thirty_changes_in_a_moment_are_few_writes(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    writes = {task_id: 0, "Dashboard": 0}
    signs: dict[str, tuple[int, int]] = {}
    for _ in range(15):
        lease = vault.worker().receive_task()["lease_id"]
        vault.worker().release_task(task_id, lease_id=lease)
        vault.clock.advance(0.06)
        vault.run()
        for name, sign in vault.times().items():
            stem = Path(name).stem
            if stem in writes and signs.get(name) != sign:
                writes[stem], signs[name] = writes[stem] + 1, sign
    vault.run(20)
    assert writes[task_id] <= 2
    assert writes["Dashboard"] <= 2
    assert split_note(task_note(vault, task_id))[0]["ab_attempt"] == vault.boss.task(task_id)["attempt"]


@pytest.mark.req("vault:26")
def test_a_huge_text_is_cut_with_a_pointer_in_a_fence_that_holds(vault: Vault) -> None:
    huge = "`" * 150_000 + "x" * 50_000
    task_id = vault.boss.dispatch_task("coder", huge)["task_id"]
    vault.run()
    text = task_note(vault, task_id)
    assert len(text.encode()) < 512 * 1024
    assert f"agent-bus get {task_id}" in text
    assert "`" * SHOWN_CHARS in text
    assert check_note(text) == []


@pytest.mark.req("vault:9")
def test_long_names_of_agents_get_notes_of_their_own(vault: Vault) -> None:
    one, two = "あ" * 64, "あ" * 40 + "い" * 24
    for name in (one, two):
        vault.boss.dispatch_task(name, "x")
    vault.run()
    stems = [path.stem for path in (vault.root / "notes" / "agents").iterdir()]
    assert len(stems) == 2
    for stem in stems:
        assert len(stem.encode()) <= 120
        assert re.search(r"-[0-9a-f]{8}$", stem)
        assert f"[[{stem}|" in vault.note("Dashboard")


def die_at(root: str, call: int) -> None:
    """Runs a mirror and is killed at the so manieth call that touches a note or its ledger."""
    found = Vault(Path(root))
    left = [call]

    def trap(event: str, args: tuple[object, ...]) -> None:
        if event in ("open", "os.rename", "os.link", "os.remove") and re.search(r"notes|\.bus.tmp", str(args)):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(trap)
    found.run()


@pytest.mark.req("vault:1")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_mirror_killed_anywhere_leaves_whole_notes_and_knows_its_own(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "y" * 40_000)["task_id"]
    path = vault.root / "notes" / "tasks" / f"{task_id}.md"
    codes: list[int | None] = []
    while 0 not in codes and len(codes) < 60:
        one = Process(target=die_at, args=(str(vault.root), len(codes) * 3))
        one.start()
        one.join(30)
        codes.append(one.exitcode)
        if path.exists():
            assert check_note(path.read_text()) == []
    assert codes[-1] == 0
    assert len(codes) > 5
    vault.worker().receive_task()
    vault.run(4)
    assert status_of(vault, task_id) == "in_progress", "nobody waits for a person who was not there"


def test_it_is_off_until_somebody_installed_the_vault(tmp_path: Path) -> None:
    root = tmp_path / "bus"
    root.mkdir()
    found = Vault(root, mirror="auto")
    found.boss.dispatch_task("coder", "x")
    found.run(4)
    assert found.files() == {}
    (root / "Dashboard.md").write_text("---\nab_kind: dashboard\nab_id: dashboard\n---\nmine\n")
    found.run(30)
    assert "mine" in found.note("Dashboard")
    assert len(found.files()) >= 3
    found.bus.close()


def test_an_installed_dashboard_is_filled_at_once(vault: Vault) -> None:
    vault.boss.dispatch_task("coder", "x")
    installed = "---\nab_kind: dashboard\nab_id: dashboard\nab_rev: 0\n---\n## Tables\nmine\n"
    (vault.root / "Dashboard.md").write_text(installed)
    vault.run()
    text = vault.note("Dashboard")
    assert "waiting 1" in text
    assert text.endswith("## Tables\nmine\n")


def test_what_ended_while_nobody_looked_is_shown_at_the_next_start(vault: Vault) -> None:
    task_id = vault.boss.dispatch_task("coder", "x")["task_id"]
    vault.run()
    lease = vault.worker().receive_task()["lease_id"]
    vault.worker().submit_report(task_id, summary="done", lease_id=lease)
    vault.boss.acknowledge_report(task_id)
    vault.job = MirrorJob()
    vault.run()
    assert status_of(vault, task_id) == "completed"


def test_notes_are_in_the_language_of_the_setting(tmp_path: Path) -> None:
    root = tmp_path / "bus"
    root.mkdir()
    found = Vault(root, "ja")
    found.boss.dispatch_task("coder", "古いファイルを削除してください")
    found.run()
    assert "要対応 1" in found.note("Dashboard")
    assert "承認待ち" in found.note("Dashboard")
    found.bus.close()


def test_an_installed_dashboard_keeps_its_language_and_names_the_owner_that_others_obey(vault: Vault) -> None:
    assert vault.bus.layout is not None
    installed = template.shipped().files("ja", vault.root.name)["Dashboard.md"].decode()
    (vault.root / "Dashboard.md").write_text(installed, encoding="utf-8")
    vault.boss.dispatch_task("coder", "x")
    assert vault.run(30) > 0
    text = vault.note("Dashboard")
    assert "ab_lang: ja" in text
    assert "要対応" in text
    assert installed.split("end status %%")[1] == text.split("end status %%")[1]
    said = claim.read(vault.root)
    assert said == claim.Claim(label(vault.bus.layout.read_format()["owner"]), 1)
    vault.boss.dispatch_task("coder", "y")  # what we wrote there ourselves makes nobody read-only


def test_on_a_host_that_is_no_longer_the_owner_nothing_is_written(vault: Vault) -> None:
    assert vault.bus.layout is not None
    vault.boss.dispatch_task("coder", "x")
    vault.run(30)
    path = vault.bus.layout.format_file
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"owner": {"host": "h-1", "name": "attic"}}))
    (vault.root / "inbox" / "coder" / "t-20261201-093000-009.json").write_text("{}")
    assert vault.run(120) == 0


@pytest.mark.req("vault:2")
def test_every_path_is_a_name_that_every_system_takes_and_titles_stand_unchanged(vault: Vault) -> None:
    titles = ['a/b: "x" #1 [y]', "CON", "ガ", "日" * 200, "🚀 launch", "  spaces\ttabs  "]
    for title in titles:
        vault.boss.dispatch_task("ガ", title)
    vault.run(20)
    for name, path in vault.files().items():
        assert check_name(path.name) == [], name
        assert len(f"09_AgentSync/{name}") <= 200
    found = {str(split_note(path.read_text())[0].get("ab_title")) for path in vault.root.glob("notes/tasks/t-*.md")}
    assert found == {'a/b: "x" #1 [y]', "CON", "ガ", "日" * 79 + "…", "🚀 launch", "spaces tabs"}
    for path in vault.root.glob("notes/tasks/t-*.md"):
        data = split_note(path.read_text())[0]
        assert data["aliases"] == [data["ab_title"]]


@pytest.mark.req("vault:6")
def test_nothing_but_notes_and_documents_is_seen_outside_the_hidden_folder(vault: Vault) -> None:
    for number in range(20):
        task_id = vault.boss.dispatch_task("coder", f"task {number}")["task_id"]
        lease = vault.worker().receive_task()["lease_id"]
        vault.worker().submit_report(task_id, summary="done", lease_id=lease)
        vault.boss.acknowledge_report(task_id)
        vault.run(2)
    seen = [path for path in vault.root.rglob("*") if path.is_file() and ".bus" not in path.parts]
    assert {path.suffix for path in seen} == {".md", ".json"}
    assert [path.name for path in seen if path.name.startswith((".", "~")) or "tmp" in path.name] == []


@pytest.mark.req("vault:7")
def test_a_change_is_seen_however_a_program_saves_and_reading_is_none(vault: Vault) -> None:
    ids = [str(vault.boss.dispatch_task("coder", f"task {n}")["task_id"]) for n in range(3)]
    vault.run(40)
    renamed, created, appended = (vault.root / "notes" / "tasks" / f"{one}.md" for one in ids)
    fresh = renamed.read_text().replace("ab_priority: normal", "ab_priority: high")
    (vault.root / "notes" / "new.md").write_text(fresh)
    os.replace(vault.root / "notes" / "new.md", renamed)
    text = created.read_text().replace("ab_priority: normal", "ab_priority: low")
    created.unlink()
    created.write_text(text)
    with appended.open("a") as file:
        file.write("\nmine\n- [x] not a control\n")
    vault.run(30)
    assert [vault.boss.task(one)["priority"] for one in ids] == ["high", "low", "normal"]
    steps = [vault.boss.task(one)["step"] for one in ids]
    for _ in range(50):
        assert renamed.read_text()
    assert vault.run(30) == 0
    assert [vault.boss.task(one)["step"] for one in ids] == steps


@pytest.mark.req("vault:47")
def test_a_look_at_notes_that_have_not_changed_opens_none(vault: Vault) -> None:
    folder = vault.root / "notes" / "tasks"
    folder.mkdir(parents=True)
    for number in range(500):
        text = f"---\nab_kind: task\nab_id: t-20261130-{number:06d}-001\nab_rev: 1\n---\n"
        (folder / f"t-20261130-{number:06d}-001.md").write_text(text)
    vault.run(20)
    opened: list[str] = []

    def watch(event: str, args: tuple[object, ...]) -> None:
        if watching and event == "open" and str(args[0]).endswith(".md"):
            opened.append(str(args[0]))

    watching = [True]
    sys.addaudithook(watch)
    vault.run(40)
    watching.clear()
    assert [one for one in opened if "notes/tasks" in one] == []


def test_a_note_that_is_too_large_keeps_no_other_one_back(vault: Vault) -> None:
    first = str(vault.boss.dispatch_task("coder", "x")["task_id"])
    vault.run()
    path = vault.root / "notes" / "tasks" / f"{first}.md"
    path.write_text(path.read_text() + "y" * 3_000_000)
    vault.job = MirrorJob()
    vault.worker().receive_task()
    other = str(vault.boss.dispatch_task("coder", "z")["task_id"])
    vault.run(60)
    assert status_of(vault, other) == "pending"
    assert "cannot be read or written" in vault.note("notes/Problems")
    assert len(path.read_text()) > 3_000_000


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_the_byte_order_mark_of_a_note_stay(vault: Vault, mark: bytes) -> None:
    task_id = str(vault.boss.dispatch_task("coder", "x")["task_id"])
    vault.run()
    path = vault.root / "notes" / "tasks" / f"{task_id}.md"
    text = path.read_bytes().replace(b"### Notes\n", b"### Notes\nmine\n")
    path.write_bytes(mark + text.replace(b"\n", b"\r\n"))
    vault.worker().receive_task()
    vault.run(40)
    after = path.read_bytes()
    assert after.startswith(mark + b"---\r\n")
    assert b"ab_status: in_progress\r\n" in after
    assert after.count(b"\n") == after.count(b"\r\n")
    assert after.endswith(b"### Notes\r\nmine\r\n")
    written = path.stat().st_mtime_ns
    vault.run(60)
    assert path.stat().st_mtime_ns == written
