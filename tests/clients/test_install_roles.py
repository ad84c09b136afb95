"""install --with roles, commands and hook: what goes into the users' files, and what stays theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bus.clients.roles.block import BEGIN, END
from tests.clients.conftest import Desk

MINE = "# Rules of this project\r\n\r\n- be kind\r\n"


def project_of(desk: Desk) -> tuple[Path, tuple[str, ...]]:
    project = desk.home / "my project"
    (project / ".git").mkdir(parents=True)
    return project, ("--scope", "project", "--project", str(project))


@pytest.mark.req("clients:22")
@pytest.mark.parametrize("mine", [MINE, "no line end", ""])
def test_our_block_stands_once_and_the_text_outside_stays(desk: Desk, mine: str) -> None:
    project, where = project_of(desk)
    agents = project / "AGENTS.md"
    agents.write_bytes(mine.encode())
    assert desk.whats("install", "codex", *where, "--with", "roles") == ["added", "added"]
    assert desk.whats("install", "codex", *where, "--with", "roles") == ["unchanged", "unchanged"]
    text = agents.read_bytes().decode()
    assert text.startswith(mine)
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert desk.whats("uninstall", "codex", *where) == ["removed", "removed"]
    assert agents.read_bytes().decode() == mine


def test_a_block_that_two_clients_share_goes_with_the_last(desk: Desk) -> None:
    project, where = project_of(desk)
    desk.run("install", "codex", "opencode", *where, "--with", "roles")
    assert (project / "AGENTS.md").read_text().count(BEGIN) == 1
    assert "kept" in desk.whats("uninstall", "codex", *where)
    assert BEGIN in (project / "AGENTS.md").read_text()
    desk.run("uninstall", "opencode", *where)
    assert [path.name for path in project.rglob("*")] == [".git"]


@pytest.mark.req("clients:23")
def test_an_edited_block_stays_and_the_new_text_goes_beside_it(desk: Desk) -> None:
    project, where = project_of(desk)
    agents, beside = project / "AGENTS.md", project / "AGENTS.md.new"
    desk.run("install", "codex", *where, "--with", "roles")
    edited = agents.read_text().replace(END, "- and my own rule\n" + END)
    agents.write_text(edited)
    assert desk.whats("install", "codex", *where, "--with", "roles") == ["unchanged", "kept"]
    assert agents.read_text() == edited
    assert beside.read_text().startswith(BEGIN)
    assert "kept" in desk.whats("uninstall", "codex", *where)
    assert agents.read_text() == edited
    assert not beside.exists()
    _, out = desk.run("uninstall", "codex", *where)
    assert "--force" in out
    assert desk.whats("install", "codex", *where, "--with", "roles", "--force")[:2] == ["added", "updated"]
    assert "my own rule" not in agents.read_text()
    agents.write_text(edited)
    assert desk.whats("uninstall", "codex", *where, "--force") == ["removed", "removed"]
    assert not agents.exists() or BEGIN not in agents.read_text()
    assert edited in [path.read_text() for path in project.glob("AGENTS.md.*.bak")]


def test_a_broken_block_is_refused_with_its_line(desk: Desk) -> None:
    project, where = project_of(desk)
    (project / "AGENTS.md").write_text(f"one\n{BEGIN}\ntwo\n")
    code, out = desk.run("install", "codex", *where, "--with", "roles")
    assert code == 1
    assert "AGENTS.md: line 2" in out
    assert (project / "AGENTS.md").read_text() == f"one\n{BEGIN}\ntwo\n"


@pytest.mark.req("clients:24")
def test_the_stop_hook_stands_once_beside_the_users_own(desk: Desk) -> None:
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, "model": "m"}
    settings = desk.file(".claude/settings.json", json.dumps(theirs, indent=2))
    before = settings.read_bytes()
    assert desk.whats("install", "claude-code", "--with", "hook") == ["added", "added"]
    assert desk.whats("install", "claude-code", "--with", "hook") == ["unchanged", "unchanged"]
    first, second = json.loads(settings.read_text())["hooks"]["Stop"]
    assert first == theirs["hooks"]["Stop"][0]  # type: ignore[index]
    assert second["hooks"][0]["command"].endswith("hook stop")
    assert str(desk.program) in second["hooks"][0]["command"]
    desk.program.rename(desk.program.with_name("agent-bus-old"))
    assert desk.whats("uninstall", "claude-code") == ["removed", "removed"]
    assert settings.read_bytes() == before


def test_commands_of_the_user_are_not_overwritten(desk: Desk) -> None:
    own = desk.file(".claude/commands/bus-work.md", "my own command\n")
    found = desk.json("install", "claude-code", "--with", "commands,roles")["files"]
    assert {Path(file["file"]).name: file["what"] for file in found}["bus-work.md"] == "kept"
    assert own.read_text() == "my own command\n"
    assert (desk.home / ".claude/skills/using-agent-bus/SKILL.md").is_file()
    assert (desk.home / ".claude/agents/bus-worker.md").is_file()
    desk.run("uninstall", "claude-code")
    assert desk.everything() == {".claude/commands/bus-work.md": b"my own command\n"}


@pytest.mark.parametrize(
    "client",
    [
        "antigravity",
        "claude-code",
        "codex",
        "cursor",
        "gemini",
        "kimi",
        "opencode",
        "qwen",
        "vscode",
        "windsurf",
    ],
)
def test_role_files_come_and_go_whole(desk: Desk, client: str) -> None:
    project, where = project_of(desk)
    for scope in ((), where[2:] if client in ("antigravity", "windsurf") else where):
        first = desk.json("install", client, *scope, "--with", "roles,commands", "--language", "ja")["files"]
        assert {file["what"] for file in first} == {"added"}
        again = desk.json("install", client, *scope, "--with", "roles,commands", "--language", "ja")["files"]
        assert {file["what"] for file in again} == {"unchanged"}
        assert desk.run("uninstall", client, *scope)[0] == 0
    assert [path.name for path in project.rglob("*")] == [".git"]
    assert desk.everything() == {}


def test_a_client_without_project_servers_gets_the_role_files_of_a_named_project(desk: Desk) -> None:
    project, where = project_of(desk)
    assert desk.whats("install", "antigravity", "--with", "roles", *where[2:]) == ["added", "added"]
    assert BEGIN in (project / "AGENTS.md").read_text()


def test_a_part_without_a_place_is_said(desk: Desk) -> None:
    code, out = desk.run("install", "codex", "--with", "hook")
    assert code == 0
    assert "hook" in out.splitlines()[-1]
