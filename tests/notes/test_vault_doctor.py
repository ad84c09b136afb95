"""`agent-bus vault doctor`, `status` and `takeover`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_bus.doctor import catalog
from agent_bus.doctor.vault import look
from agent_bus.domain import notes
from agent_bus.faces import cli_session, cli_vault_look
from agent_bus.locale.vault import VAULT
from agent_bus.notes import settled
from agent_bus.store.layout import Layout
from tests.notes.conftest import Cli, tree


def seen(found: Any) -> set[tuple[str, str]]:
    return {(one["id"], one["level"]) for one in found["findings"]}


@pytest.fixture
def bus(vault: Path, cli: Cli) -> Path:
    """An installed bus folder."""
    cli("vault", "install", vault, "--own", "--lang", "en")
    return vault / "09_AgentSync"


def test_a_fresh_vault_is_well(bus: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cli("vault", "doctor", "--root", bus)
    assert (found["services"], found["findings"], found["epoch"]) == ([], [], 1)
    assert found["owner"].endswith(found["host_id"].removeprefix("h-")[:8])
    (bus.parent / "bus.toml").write_text('[vault]\nauthority = "all"\n')
    monkeypatch.setenv("AGENT_BUS_CONFIG", str(bus.parent / "bus.toml"))
    [advice] = cli("vault", "doctor", "--root", bus)["findings"]
    assert (advice["id"], advice["level"]) == ("authority", "advice")


@pytest.mark.req("vault:46")
def test_two_services_are_an_error_with_advice_for_each_and_nothing_is_changed(
    bus: Path, vault: Path, cli: Cli
) -> None:
    (vault.parent / ".stfolder").mkdir()
    (vault / ".git").mkdir()
    before = tree(vault.parent)
    found = cli("vault", "doctor", "--root", bus, code=1)
    assert ("two_services", "error") in seen(found)
    assert found["services"] == ["git", "Syncthing"]
    advice = [one["fix"] for one in found["findings"] if one["id"] == "service"]
    assert [".gitignore" in advice[0], ".stignore" in advice[1]] == [True, True]
    assert tree(vault.parent) == before
    (vault / ".git").rmdir()
    assert ("two_services", "error") not in seen(cli("vault", "doctor", "--root", bus))


def test_settings_that_hide_notes_copies_names_links_and_broken_markers_are_each_named(
    bus: Path, vault: Path, cli: Cli
) -> None:
    settings = vault / ".obsidian"
    (settings / "core-plugins.json").write_text(json.dumps({"bases": False, "sync": True}))
    (settings / "app.json").write_text(json.dumps({"userIgnoreFilters": ["Attic/", "/AgentSync.notes/", "/(/"]}))
    (settings / "types.json").write_text(json.dumps({"types": {"ab_rev": "text"}}))
    (settings / "community-plugins.json").write_text('["obsidian-livesync"]')
    (bus / "notes" / "tasks" / "t.md").write_text("```\n%% agent-bus:end x %%\n```\n%% agent-bus:begin body rev=1 %%\n")
    (bus / "notes" / "tasks" / "t (conflicted copy).md").write_text("")
    (bus / "notes" / "A [1].md").write_text("")
    (bus / "notes" / "Problems.md").write_text("")
    (bus / "notes" / "PROBLEMS.md").write_text("")
    (bus / "notes" / "link.md").symlink_to(vault)
    (bus / "notes" / "agents" / ".x.md.icloud").write_text("")
    (bus / "notes" / "agents" / ".obsidian").mkdir()
    (bus / "Tasks.new.base").write_text("")
    found = cli("vault", "doctor", "--root", bus, code=1)
    assert seen(found) >= {
        ("bases_off", "error"), ("excluded", "error"), ("two_services", "error"), ("json_synced", "warn"),
        ("types", "warn"), ("markers", "warn"), ("copies", "warn"), ("names", "warn"), ("links", "warn"),
        ("placeholders", "warn"), ("template", "advice"), ("service", "advice"),
    }  # fmt: skip
    filters = [one["what"] for one in found["findings"] if one["id"] == "excluded"]
    assert len(filters) == 1
    assert "/AgentSync.notes/" in filters[0]
    errors = [one["level"] for one in found["findings"]]
    assert errors == sorted(errors, key=["error", "warn", "advice"].index)


def test_a_rival_on_the_dashboard_is_named_by_its_epoch(bus: Path, cli: Cli) -> None:
    note = bus / "Dashboard.md"
    text = note.read_text()
    note.write_text(text.replace('ab_host: ""', "ab_host: attic-00000000").replace("ab_epoch: 0", "ab_epoch: 1"))
    assert ("two_hosts", "error") in seen(cli("vault", "doctor", "--root", bus, code=1))
    note.write_text(text.replace('ab_host: ""', "ab_host: attic-00000000").replace("ab_epoch: 0", "ab_epoch: 2"))
    assert ("not_owner", "error") in seen(cli("vault", "doctor", "--root", bus, code=1))


def test_the_doctor_of_the_bus_has_one_line_for_the_notes_and_none_for_a_bus_without(bus: Path) -> None:
    ground: Any = SimpleNamespace(layout=Layout.of(bus))
    assert [(one.id, one.level) for one in look(ground)] == [("vault", "ok")]
    (bus / "Tasks (conflicted copy).base").write_text("")
    assert [(one.level, one.case) for one in look(ground)] == [("warn", "warnings")]
    (bus.parent / ".obsidian" / "core-plugins.json").write_text('["graph"]')
    assert [(one.level, one.case) for one in look(ground)] == [("fail", "errors")]
    (bus / "Dashboard.md").unlink()
    assert list(look(ground)) == []


def test_without_notes_the_doctor_says_how_to_get_them(vault: Path, cli: Cli) -> None:
    cli("init", vault / "bus")
    error = cli("vault", "doctor", "--root", vault / "bus", code=1)["error"]
    assert (error["code"], "agent-bus vault install" in error["hint"]) == ("not_found", True)
    assert cli("vault", "status", "--root", vault / "bus")["notes"] == ""


def test_status_shows_the_owner_the_notes_and_a_pause_that_a_person_ends(
    bus: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cli("vault", "status", "--root", bus)
    assert (found["epoch"], found["notes"], found["mirror"], found["paused"]) == (1, str(bus), None, "")
    channel = bus / ".bus" / "vault" / "channel.json"
    channel.parent.mkdir(parents=True, exist_ok=True)
    channel.write_text(json.dumps({"state": "paused", "why": "too many"}))
    assert cli("vault", "status", "--root", bus)["paused"] == "too many"
    monkeypatch.setattr(cli_session, "why_no_person", lambda: "no terminal")
    assert cli("vault", "unpause", "--root", bus, code=1)["error"]["code"] == "refused"
    monkeypatch.setattr(cli_session, "why_no_person", lambda: "")
    monkeypatch.setattr(cli_session, "why_below_a_run", lambda: "")
    assert cli("vault", "unpause", "--root", bus) == {"opened": True}
    assert cli("vault", "unpause", "--root", bus) == {"opened": False}
    assert cli("vault", "status", "--root", bus)["paused"] == ""


def test_takeover_is_for_people_and_raises_the_epoch_over_all_that_were_seen(
    bus: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("vault", "takeover", "--yes", "--root", bus, code=1)["error"]["code"] == "refused"
    monkeypatch.setattr(cli_session, "why_no_person", lambda: "")
    monkeypatch.setattr(cli_session, "why_below_a_run", lambda: "")
    assert cli("vault", "takeover", "--yes", "--root", bus)["already"] is True
    note = bus / "Dashboard.md"
    rival = note.read_text().replace('ab_host: ""', "ab_host: attic-00000000").replace("ab_epoch: 0", "ab_epoch: 6")
    note.write_text(rival)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    before = tree(bus.parent)
    cli_vault_look.takeover(cli_session.Session(root=str(bus)), False)
    assert tree(bus.parent) == before
    done = cli("vault", "takeover", "--yes", "--root", bus)
    assert (done["already"], done["epoch"]) == (False, 7)
    assert "ab_epoch: 7" in note.read_text()
    assert json.loads((bus / ".bus" / "format.json").read_bytes())["owner"]["epoch"] == 7
    assert cli("vault", "doctor", "--root", bus)["findings"] == []


def test_what_the_doctor_can_say_has_two_lines_in_each_language() -> None:
    for key, words in VAULT.items():
        if key.startswith("vault.seen."):
            assert [len(text.split("\n")) for text in words] == [2, 2], key
    source = "".join(path.read_text(encoding="utf-8") for path in Path(catalog.__file__).parent.glob("vault*.py"))
    said = [key.split(".")[2:] for key in VAULT if key.startswith("vault.seen.")]
    assert [parts for parts in said if not all(f'"{part}"' in source for part in parts)] == []


@pytest.mark.parametrize(
    ("system", "found", "waits"),
    [
        ("win32", {"st_file_attributes": 0x00400000}, True),
        ("win32", {"st_file_attributes": 0x20}, False),
        ("darwin", {"st_size": 9, "st_blocks": 0}, True),
        ("linux", {"st_size": 9, "st_blocks": 0}, False),
    ],
)
def test_a_file_whose_content_is_elsewhere_is_known(
    monkeypatch: pytest.MonkeyPatch, system: str, found: dict[str, int], waits: bool
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    status: Any = SimpleNamespace(**found)
    assert settled.is_placeholder(status) is waits


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("%% agent-bus:begin a rev=1 %%\nx\n%% agent-bus:end a %%\n", True),
        ("~~~\n%% agent-bus:end a %%\n~~~~\n%% agent-bus:begin a %%\n%% agent-bus:end a %%\n", True),
        ("%% agent-bus:end a %%\n", False),
        ("%% agent-bus:begin a rev=1 %%\n%% agent-bus:begin b rev=1 %%\n", False),
        ("%% agent-bus:begin a rev=1 %%\n%% agent-bus:end a %%\n" * 2, False),
    ],
)
def test_regions_that_do_not_close_repeat_or_nest_are_broken(text: str, whole: bool) -> None:
    if whole:
        assert notes.regions(text)
    else:
        with pytest.raises(notes.BrokenNote):
            notes.regions(text)
