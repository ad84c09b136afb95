"""What the doctor says of the clients' files; nothing is started."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from agent_bus.clients import registry
from agent_bus.clients.found import options
from agent_bus.doctor import Finding, entries, entry, examination
from agent_bus.faces.cli_doctor import words
from agent_bus.settings import Settings
from agent_bus.settings_launch import AgentSettings
from agent_bus.texts import Texts
from tests.doctor.conftest import ABSENT, House, Look, bad


def of_entries(ground: Any) -> list[Finding]:
    return list(chain.from_iterable(entry.look(ground, file, one) for file, one in ground.ours()))


def said(finding: Finding) -> str:
    """All that is said of it, in both languages: every placeholder has its value."""
    return "\n".join("\n".join(words(Texts(language), finding)) for language in ("en", "ja"))


@pytest.mark.req("clients:8:doctor")
def test_entries_of_all_clients_name_one_program_and_one_bus_whatever_its_path_holds(house: House, look: Look) -> None:
    names = [name for name in registry.known() if registry.load(name).path("user", house.home, None)]
    for name in names:
        house.install(name)
    ground = look()
    assert [(f.client.name, options(f.client, e.value)["root"]) for f, e in ground.ours()] == [
        (name, house.settings.root) for name in names
    ]
    assert bad(entries.look(ground)) == []
    assert [f for f in of_entries(ground) if f.level != "ok" and f.case != "timeout"] == []


@pytest.mark.req("clients:11")
def test_servers_in_claude_codes_settings_are_named_with_file_and_fix(house: House, look: Look) -> None:
    settings = house.home.at(".claude/settings.json")
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"mcpServers": {"agent-bus": {"command": "py"}, "other": {}}, "model": "x"}))
    (found,) = [f for f in entries.look(look("claude-code")) if f.id == "entry.place"]
    assert found.level == "fail"
    text = said(found)
    assert str(settings) in text
    assert "agent-bus, other" in text
    assert "agent-bus install claude-code" in text


@pytest.mark.parametrize(
    ("client", "path", "change", "case"),
    [
        ("vscode", None, None, "dead"),
        ("antigravity", ".gemini/antigravity/mcp_config.json", {}, "older"),
        ("opencode", None, {"args": ["mcp"]}, "args"),
        ("windsurf", None, {"args": ABSENT, "command": ABSENT, "url": "http://127.0.0.1:8200/mcp"}, "address"),
    ],
)
def test_what_a_client_does_not_read_is_a_fail(
    house: House, look: Look, client: str, path: str | None, change: dict[str, Any] | None, case: str
) -> None:
    if change is None:
        file = house.path(client)
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"mcpServers": {"bus": {"command": "x"}}}))
    else:
        house.install(client, path=house.home.at(path) if path else None, **change)
    found = [f for f in entries.look(look(client)) if f.id == "entry.place"]
    assert bad(found) == [("entry.place", "fail", case, client)]
    assert said(found[0])


def test_a_file_that_cannot_be_read_is_named_with_its_line(house: House, look: Look) -> None:
    path = house.install("cursor")
    path.write_text('{"mcpServers":\n{"bus": }}')
    found = [f for f in entries.look(look("cursor")) if f.level == "fail"]
    assert [f.id for f in found] == ["entry.parse"]
    assert "line 2" in said(found[0])


@pytest.mark.req("clients:17")
def test_a_program_that_is_gone_elsewhere_or_relative_has_its_own_fix(house: House, look: Look) -> None:
    other = house.plant("another venv", "")
    plain = Path(house.plant("plain", ""))
    plain.chmod(0o600)
    inside = house.folder / "temp" / "agent-bus"
    inside.parent.mkdir()
    inside.write_bytes(plain.read_bytes())
    inside.chmod(0o700)
    wanted = {
        "gone": str(house.folder / "gone" / "agent-bus"),
        "other": other,
        "relative": "agent-bus",
        "unrunnable": str(plain),
        "temporary": str(inside),
    }
    fixes = set()
    for case, program in wanted.items():
        house.install("codex", command=program)
        (found,) = [f for f in of_entries(look("codex")) if f.id == "entry.command"]
        assert (found.level, found.case) == ("fail", case)
        assert program in said(found)
        fixes.add(words(Texts("en"), found)[0].replace(program, "") + words(Texts("en"), found)[2])
    assert len(fixes) == len(wanted)
    link = house.folder / "agent-bus"
    link.symlink_to(house.installation.program)
    house.install("codex", command=str(link))
    assert bad(of_entries(look("codex"))) == []


@pytest.mark.req("clients:20")
def test_two_clients_with_one_agent_would_share_an_inbox(house: House, look: Look) -> None:
    house.install("codex")
    house.install("gemini", agent="Codex")
    found = [f for f in entries.look(look()) if f.id == "entry.agent"]
    assert bad(found) == [("entry.agent", "warn", "shared", "gemini")]
    assert "codex, gemini" in said(found[0])


def test_limits_that_would_cut_or_hide_our_tools_are_named(house: House, look: Look) -> None:
    house.install("codex", default_tools_approval_mode=ABSENT)
    house.install("claude-code", alwaysLoad=ABSENT)
    house.install("kimi", toolTimeoutMs=ABSENT)
    house.install("opencode", timeout=30_000)
    house.install("cursor", key="a-very-long-name-for-an-entry-of-a-bus-that-is-ours")
    house.install("gemini", timeout=59_000)
    house.settings = Settings.model_validate(
        {"root": house.settings.root, "agents": {"gemini": AgentSettings(launcher="gemini")}}
    )
    found = [f for f in of_entries(look()) if f.id == "entry.limits"]
    assert sorted((client, case) for _, level, case, client in bad(found) if level == "warn") == [
        ("claude-code", "always_load"),
        ("codex", "approval"),
        ("cursor", "names"),
        ("gemini", "timeout"),
        ("gemini", "trust"),
        ("kimi", "timeout"),
        ("opencode", "timeout"),
    ]
    assert all("agent-bus install" in said(f) for f in found if f.case)


def test_two_entries_of_one_client_and_two_meanings_of_one_name_are_named(house: House, look: Look) -> None:
    path = house.install("cursor")
    entry_of = house.entry("cursor")
    path.write_text(json.dumps({"mcpServers": {"bus": entry_of, "agent-bus": entry_of}}))
    house.project = house.folder / "project"
    house.install("claude-code")
    house.install("claude-code", path=house.project / ".mcp.json", agent="another")
    found = [f for f in entries.look(look()) if f.id == "entry.double"]
    assert bad(found) == [
        ("entry.double", "warn", "scopes", "claude-code"),
        ("entry.double", "warn", "twice", "cursor"),
    ]
    assert all(said(f) for f in found)


def test_a_bus_that_is_another_one_or_gone_is_named(house: House, look: Look) -> None:
    house.install("codex", args=["mcp", "--root", str(house.folder), "--agent", "codex"])
    house.install("gemini", args=["mcp", "--root", str(house.folder / "gone"), "--agent", "gemini"])
    house.install("qwen", args=["mcp", "--agent", "qwen"])
    found = [f for f in of_entries(look()) if f.id == "entry.root"]
    assert bad(found) == [
        ("entry.root", "warn", "other", "codex"),
        ("entry.root", "fail", "gone", "gemini"),
        ("entry.root", "warn", "unnamed", "qwen"),
    ]
    assert all(said(f) for f in found)


def test_secrets_in_an_environment_block_or_a_projects_file_are_named_but_not_shown(house: House, look: Look) -> None:
    secret = "https://discord.com/api/webhooks/1/verysecret"
    house.project = house.folder / "project"
    house.install("claude-code", env={"HOOK": secret, "MY_TOKEN": "${MY_TOKEN}", "LANG": "C"})
    house.install("cursor", path=house.project / ".cursor/mcp.json", note=secret)
    found = [f for f in of_entries(look()) if f.id == "entry.secret"]
    assert bad(found) == [("entry.secret", "fail", "shown", "claude-code"), ("entry.secret", "fail", "shown", "cursor")]
    assert [f.values["name"] for f in found] == ["HOOK", "note"]
    assert not any("verysecret" in said(f) for f in found)


def test_a_client_that_is_here_without_the_bus_is_told_how_it_gets_it(house: House, look: Look) -> None:
    house.home.at(".cursor").mkdir()
    assert ("entry.found", "warn", "absent", "cursor") in bad(entries.look(look("cursor")))
    found = bad(entries.look(look()))
    assert ("entry.found", "info", "absent", "cursor") in found
    assert ("entry.found", "warn", "nobody", "") in found
    house.install("qwen", disabled=True)
    house.install("kimi", args=["/x/agent-bus-mcp/server.py"], command="python3")
    found = bad(entries.look(look()))
    assert ("entry.found", "info", "off", "qwen") in found
    assert ("entry.found", "warn", "nobody", "") not in found
    (seed,) = [(f, e) for f in look("kimi").files for e in f.entries if e.whose == "seed"]
    assert "--force" in said(next(entry.seed(*seed)))


def test_the_fix_of_a_projects_entry_names_its_scope(house: House, look: Look) -> None:
    house.project = house.folder / "project"
    house.install("cursor", path=house.project / ".cursor/mcp.json", args=[])
    house.install("qwen", args=[])
    found = [f for f in examination.examine(look("cursor", "qwen")) if f.case == "unnamed"]
    fixes = [words(Texts("en"), finding)[2] for finding in found]
    assert fixes == ["agent-bus install cursor --scope project writes --root", "agent-bus install qwen writes --root"]
