"""Notes of ended tasks become rows of a month; what a person wrote in one is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bus.domain import archive_note
from agent_bus.jobs.mirror import MirrorJob
from tests.vault.conftest import Vault

DAY = 86_400.0


def finish(vault: Vault, text: str) -> str:
    task_id = str(vault.boss.dispatch_task("coder", text)["task_id"])
    vault.run()
    lease = vault.worker().receive_task()["lease_id"]
    vault.worker().submit_report(task_id, summary="done", lease_id=lease)
    vault.boss.acknowledge_report(task_id)
    vault.clock.advance(1)
    return task_id


@pytest.mark.req("vault:22")
def test_what_ended_long_ago_is_a_row_and_what_a_person_wrote_is_kept(vault: Vault) -> None:
    ids = [finish(vault, f"task {number} | [x]") for number in range(3)]
    vault.boss.dispatch_task("coder", "still open")
    vault.run(20)
    own = vault.root / "notes" / "tasks" / f"{ids[1]}.md"
    vault.type(f"notes/tasks/{ids[1]}", "### Notes\n", "### Notes\nremember this\n")
    vault.run(20)
    written = own.read_bytes()
    json_before = {p: p.read_bytes() for p in (vault.root / "archive").rglob("*.json")}
    vault.run(20)
    assert own.exists()
    vault.clock.advance(15 * DAY)
    vault.run(4)
    text = vault.note("notes/archive/2026-12")
    assert [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| t-")] == ids
    assert f"| {ids[0]} | coder | Completed | 2026-12-01 18:30 | task 0 \\| \\[x\\] |" in text
    assert len(list((vault.root / "notes" / "tasks").glob("*.md"))) == 1
    assert list((vault.root / "notes" / "reports").glob("*.md")) == []
    assert (vault.root / "notes" / "archive" / "kept" / f"{ids[1]}.md").read_bytes() == written
    assert {p: p.read_bytes() for p in (vault.root / "archive").rglob("*.json")} == json_before
    vault.run(40)
    before = vault.times()
    vault.job = MirrorJob()
    vault.run(20)
    assert vault.times() == before, "nothing of it is made again"


def test_too_many_notes_are_put_away_earlier_the_ones_that_ended_first(tmp_path: Path) -> None:
    root = tmp_path / "bus"
    root.mkdir()
    vault = Vault(root, max_notes=50)
    ids = []
    for _ in range(70):
        ids.append(finish(vault, "x"))
    vault.run()
    assert len(list((root / "notes" / "tasks").glob("*.md"))) <= 70
    vault.run(140)
    left = sorted(path.stem for path in (root / "notes" / "tasks").glob("t-*.md"))
    assert left == ids[-len(left) :]
    assert len(left) <= 50
    assert len(archive_note.rows(vault.note("notes/archive/2026-12"))) == 70 - len(left)
    vault.bus.close()


def test_a_full_month_goes_on_in_a_second_part() -> None:
    line = archive_note.row("t-20261201-093000-001", "coder", "Completed", "2026-12-01 18:30", "x" * 80)
    many = {f"t-20261201-{number:06d}-001": line for number in range(5000)}
    assert archive_note.fits({})
    assert not archive_note.fits(many)
    assert [archive_note.part("2026-12", number) for number in (1, 2)] == ["2026-12", "2026-12-2"]
