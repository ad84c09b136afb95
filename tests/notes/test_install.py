"""`agent-bus vault install`: what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent_bus.errors import BusError
from agent_bus.notes import obsidian, plan, template
from agent_bus.notes.install import write
from tests.notes import vault_check as check
from tests.notes.conftest import Cli, tree


@pytest.mark.req("vault:43", "vault:15")
def test_a_vault_of_the_users_own_stays_as_it_is_and_a_changed_file_gets_ours_beside_it_once(
    vault: Path, cli: Cli
) -> None:
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "types.json").write_text('{"types": {"status": "text", "due": "date"}}')
    (vault / "My note.md").write_text("---\nstatus: x\ntype: y\ndue: 2026-12-01\n---\n")
    (vault / "09_AgentSync").mkdir()
    (vault / "09_AgentSync" / "Tasks.base").write_text("views:\n  - type: table\n    name: Mine\n")
    before = tree(vault)
    dry = cli("vault", "install", vault, "--dry-run")
    assert tree(vault) == before
    first = cli("vault", "install", vault)
    assert {key: first[key] for key in dry if key != "next"} == {key: dry[key] for key in dry if key != "next"}
    assert first["conflicts"] == ["09_AgentSync/Tasks.new.base"]
    assert first["updated"] == []
    after = tree(vault)
    assert {path: after[path] for path in before} == before
    (vault / "09_AgentSync" / "Tasks.new.base").unlink()
    second = cli("vault", "install", vault)
    assert [second[key] for key in ("created", "updated", "conflicts")] == [[], [], []]
    assert not (vault / "09_AgentSync" / "Tasks.new.base").exists()


@pytest.mark.req("vault:43")
def test_in_a_new_vault_every_path_follows_the_name_and_the_language_and_a_change_of_language_takes_what_is_unchanged(
    vault: Path, cli: Cli
) -> None:
    done = cli("vault", "install", vault, "--name", "08_Bus", "--lang", "ja", "--own")
    assert ".obsidian/types.json" in done["created"]
    assert check.check_tree(vault) == []
    texts = [path.read_text() for path in vault.rglob("*") if path.suffix in (".base", ".canvas", ".md", ".json")]
    assert not any("__BUS__" in text or "09_AgentSync/" in text for text in texts)
    assert 'inFolder("08_Bus/notes/tasks")' in (vault / "08_Bus" / "Tasks.base").read_text()
    assert "ab_lang: ja" in (vault / "08_Bus" / "Dashboard.md").read_text()
    inbox = vault / "08_Bus" / "commands" / "Inbox.md"
    inbox.write_text(inbox.read_text() + "- [ ] @codex テスト\n")
    assert cli("vault", "install", vault, "--name", "08_Bus")["unchanged"]
    assert "ab_lang: ja" in (vault / "08_Bus" / "Dashboard.md").read_text()
    changed = cli("vault", "install", vault, "--name", "08_Bus", "--lang", "en")
    assert "08_Bus/Dashboard.md" in changed["updated"]
    assert changed["conflicts"] == ["08_Bus/commands/Inbox.new.md"]
    assert inbox.read_text().endswith("- [ ] @codex テスト\n")
    assert cli("vault", "install", vault, "--own", "--name", "07_Bus", code=1)["error"]["code"] == "refused"


@pytest.mark.req("vault:45")
def test_a_path_or_name_that_cannot_be_used_is_refused_and_nothing_is_written(vault: Path, cli: Cli) -> None:
    (vault / "file").write_text("x")
    (vault / "link").symlink_to(vault.parent)
    (vault / "linked bus").symlink_to(vault.parent)
    (vault / "half bus").mkdir()
    (vault / "half bus" / "notes").symlink_to(vault.parent)
    cli("vault", "install", vault)
    before = tree(vault)
    for words, code in (
        ((vault / "none",), "not_found"),
        ((vault / "file",), "invalid"),
        ((vault / "link",), "refused"),
        ((vault, "--name", "linked bus"), "refused"),
        ((vault, "--name", "half bus"), "refused"),
        ((vault, "--name", "file"), "invalid"),
        ((vault, "--name", "a:b"), "invalid"),
        ((vault, "--name", ".."), "invalid"),
        ((vault / "09_AgentSync",), "refused"),
        ((vault / "09_AgentSync" / "notes",), "refused"),
    ):
        error = cli("vault", "install", *words, code=1)["error"]
        assert (error["code"], bool(error["hint"])) == (code, True), words
    assert tree(vault) == before


@pytest.mark.req("vault:48")
def test_a_newer_template_updates_what_is_unchanged_and_goes_beside_what_is_not(vault: Path, tmp_path: Path) -> None:
    one, root, record = template.shipped(), vault / "Bus", tmp_path / "bus" / "vault" / "template.json"
    (tmp_path / "bus" / "tmp").mkdir(parents=True)
    write(root, tmp_path / "bus" / "tmp", first := plan.plan(one, root, "en", {}), record)
    assert {step.act for step in first} == {plan.CREATE}
    mine = (root / "Tasks.base").read_text() + "  - type: table\n    name: Mine\n"
    (root / "Tasks.base").write_text(mine)
    (root / "Dashboard.md").write_text((root / "Dashboard.md").read_text().replace("ab_rev: 0", "ab_rev: 7"))
    for path in ("Tasks.base", "README.md"):
        _newer(tmp_path / "two", path)
    two = template.load(tmp_path / "two")
    assert list(plan.older(two, root, "en")) == ["README.md"]
    known = plan.recorded(first)
    steps = {step.path: step.act for step in plan.plan(two, root, "en", known) if step.act != plan.KEEP}
    assert steps == {"README.md": plan.UPDATE, "Tasks.base": plan.OFFER}
    write(root, tmp_path / "bus" / "tmp", plan.plan(two, root, "en", known), record)
    assert (root / "README.md").read_text().endswith("More.\n")
    assert (root / "Tasks.base").read_text() == mine
    assert (root / "Tasks.new.base").read_text().endswith("# More.\n")
    lost = plan.plan(two, root, "en", {})  # without the record nothing worse happens than a second offer
    assert {step.path: step.act for step in lost if step.act != plan.KEEP} == {"Dashboard.md": plan.OFFER}


def test_a_file_that_changes_between_plan_and_write_is_left_alone(vault: Path, tmp_path: Path) -> None:
    root = vault / "Bus"
    steps = plan.plan(template.shipped(), root, "en", {})
    root.mkdir()
    (root / "Agents.base").write_text("somebody was first")
    with pytest.raises(BusError, match=r"Agents\.base has changed"):
        write(root, tmp_path, steps, tmp_path / "vault" / "template.json")
    assert (root / "Agents.base").read_text() == "somebody was first"
    assert list(root.iterdir()) == [root / "Agents.base"]


def test_obsidians_settings_get_our_types_and_bookmarks_once_and_keep_everything_else(
    vault: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obsidian, "runs", lambda: False)
    (vault / ".obsidian").mkdir()
    types = vault / ".obsidian" / "types.json"
    types.write_text('{"types": {"ab_rev": "text", "due": "date"}, "else": 1}')
    done = cli("vault", "install", vault, "--obsidian-settings")
    found = json.loads(types.read_text())
    assert (found["else"], found["types"]["ab_rev"], found["types"]["ab_approve"]) == (1, "text", "checkbox")
    assert ".obsidian/types.json: ab_rev" in done["conflicts"]
    assert [p.name.split(".bak-")[0] for p in vault.glob(".obsidian/*.bak-*")] == ["types.json"]
    before = tree(vault)
    cli("vault", "install", vault, "--obsidian-settings")
    assert tree(vault) == before
    monkeypatch.setattr(obsidian, "runs", lambda: True)
    shutil.rmtree(vault / ".obsidian")
    assert cli("vault", "install", vault, "--obsidian-settings", code=1)["error"]["code"] == "busy"
    assert not (vault / ".obsidian").exists()
    (vault / ".obsidian").mkdir()
    types.write_text("{")
    assert cli("vault", "install", vault, "--obsidian-settings", code=1)["error"]["code"] == "invalid"


def _newer(folder: Path, path: str) -> None:
    """A template whose file has one more line, in both languages."""
    if not folder.exists():
        shutil.copytree(template.shipped().folder, folder)
    for language in template.LANGUAGES:
        file = folder / language / path
        file.write_text(file.read_text() + ("# More.\n" if path.endswith(".base") else "More.\n"))
    (folder / template.MANIFEST).write_text(template.manifest(folder))
