"""install, uninstall, snippet and the list, on files of all clients."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from agent_bus.clients import JSONC, TOML, Home, documents, jsonc, registry
from tests.clients.conftest import Desk

ELEVEN = (
    "antigravity", "claude-code", "claude-desktop", "codex", "cursor", "gemini", "kimi", "opencode", "qwen", "vscode",
    "windsurf",
)  # fmt: skip
HERE = tuple(name for name in ELEVEN if name != "claude-desktop" or os.name == "nt")
CLAUDE, CODEX, GEMINI = ".claude.json", ".codex/config.toml", ".gemini/settings.json"


def user_file(desk: Desk, name: str) -> Path:
    path = registry.load(name).user_path(Home(desk.home))
    assert path is not None
    return path


def others(name: str, newline: str, mark: str) -> str:
    """A file of the client as a user keeps it: two servers, odd indentation, and remarks where its format has them."""
    client = registry.load(name)
    if client.format == TOML:
        text = 'model = "m" # mine\n\n[mcp_servers.one]\n  command = "a"\n# about two\n[mcp_servers.two]\ncommand="b"\n'
    else:
        servers = {"one": {"command": "a"}, "two": {"command": "b", "args": ["x y"]}}
        text = json.dumps({"before": [1, {}], client.servers[0]: servers, "after": "ü"}, indent=3, ensure_ascii=False)
        if client.format == JSONC:
            text = "// a remark\n" + text.replace('"x y"', '"x y", // last').replace('"after"', '/* of mine */ "after"')
    return mark + text.replace("\n", newline)


@pytest.mark.req("clients:1")
def test_claude_code_gets_the_entry_in_the_file_that_it_reads(desk: Desk) -> None:
    assert desk.whats("install", "claude-code") == ["added"]
    path = desk.home / CLAUDE
    args = ["mcp", "--root", str(desk.root), "--agent", "claude-code"]
    entry = {"type": "stdio", "command": str(desk.program), "args": args, "env": {}, "timeout": 120000}
    assert json.loads(path.read_text()) == {"mcpServers": {"bus": {**entry, "alwaysLoad": True}}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(desk.everything()) == [CLAUDE]


@pytest.mark.req("clients:2")
def test_codex_and_gemini_get_what_they_need(desk: Desk) -> None:
    assert desk.whats("install", "codex", "gemini") == ["added", "added"]
    codex = tomllib.loads((desk.home / CODEX).read_text())["mcp_servers"]["bus"]
    assert codex["default_tools_approval_mode"] == "approve"
    assert (codex["startup_timeout_sec"], codex["tool_timeout_sec"]) == (30, 120)
    assert codex["args"][-1] == "codex"
    assert "trust" not in json.loads((desk.home / GEMINI).read_text())["mcpServers"]["bus"]


@pytest.mark.req("clients:3")
@pytest.mark.parametrize("name", HERE)
def test_a_second_install_changes_nothing(desk: Desk, name: str) -> None:
    assert desk.whats("install", name) == ["added"]
    before = desk.everything(), user_file(desk, name).stat().st_mtime_ns
    assert desk.whats("install", name) == ["unchanged"]
    assert (desk.everything(), user_file(desk, name).stat().st_mtime_ns) == before


@pytest.mark.req("clients:4", "clients:5")
@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize(("newline", "mark"), [("\n", ""), ("\r\n", "\ufeff")], ids=["lf", "crlf-bom"])
def test_everything_else_in_the_file_stays_and_uninstall_gives_it_back(
    desk: Desk, name: str, newline: str, mark: str
) -> None:
    path, text = user_file(desk, name), others(name, newline, mark)
    desk.file(path.relative_to(desk.home).as_posix(), text)
    assert desk.whats("install", name) == ["added"]
    after = path.read_bytes().decode()
    rest = iter(after)
    assert all(char in rest for char in text), "a character of the user is gone, or moved"
    client = registry.load(name)
    found = documents.parse(after, client.format)
    assert set(documents.value(found, client.place(found))) == {"one", "two", "bus"}
    assert after.count("\r\n") == (after.count("\n") if mark else 0)
    assert len(list(path.parent.glob("*.bak"))) == 1
    assert desk.whats("uninstall", name) == ["removed"]
    assert path.read_bytes().decode() == text


@pytest.mark.req("clients:6")
@pytest.mark.parametrize("name", HERE)
def test_what_we_made_goes_again_with_its_folders(desk: Desk, name: str) -> None:
    desk.run("install", name)
    assert desk.whats("uninstall", name) == ["removed"]
    assert list(desk.home.rglob("*")) == []


@pytest.mark.req("clients:7")
@pytest.mark.parametrize(
    ("name", "path", "text", "line"),
    [
        ("claude-code", CLAUDE, '{\n  "a": 1,\n  "b" 2\n}\n', "line 3"),
        ("claude-code", CLAUDE, '{\n  "a": 1, // remark\n  "b": 2\n}\n', "line 2"),
        ("claude-code", CLAUDE, '{\n  "a": 1,\n}\n', "line 3"),
        ("claude-code", CLAUDE, '{\n  "mcpServers": []\n}\n', "line 2"),
        ("claude-code", CLAUDE, '{\n  "mcpServers": {},\n  "mcpServers": {}\n}\n', "line 3"),
        ("claude-code", CLAUDE, "[]\n", "line 1"),
        ("gemini", GEMINI, '{\n  "mcpServers": {"bus": {"command": "agent-bus"}, "bus": {}}\n}\n', "line 2"),
        ("codex", CODEX, "[mcp_servers.a]\nb = 1\n[mcp_servers.a]\n", "line 3"),
        ("codex", CODEX, "a = 1\nmcp_servers = {}\n", "line 2"),
        ("codex", CODEX, "[mcp_servers]\nbus = {command = 'agent-bus'}\n", "line 2"),
        ("codex", CODEX, "a = 1\nmcp_servers.bus.command = 'agent-bus'\n", "line 2"),
        ("codex", CODEX, b"a = '\xff'\n", "line 1"),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_the_others_are_done(
    desk: Desk, name: str, path: str, text: str | bytes, line: str
) -> None:
    file = desk.file(path, text)
    before = file.read_bytes()
    code, out = desk.run("install", name, "cursor")
    assert code == 1
    assert line in out
    if isinstance(text, str):
        assert str(desk.root).replace('"', '\\"') in out, "the entry to add by hand is shown"
    assert file.read_bytes() == before
    assert "added" in out
    assert (desk.home / ".cursor/mcp.json").is_file()


@pytest.mark.req("clients:9")
def test_a_link_stays_and_its_target_is_edited(desk: Desk, tmp_path: Path) -> None:
    target = desk.file("dotfiles/claude.json", "{}\n")
    (desk.home / CLAUDE).symlink_to(target)
    assert desk.whats("install", "claude-code") == ["added"]
    assert (desk.home / CLAUDE).is_symlink()
    assert "bus" in json.loads(target.read_text())["mcpServers"]
    assert desk.whats("uninstall", "claude-code") == ["removed"]
    assert target.read_text() == "{}\n"
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (desk.home / CLAUDE).unlink()
    (desk.home / CLAUDE).symlink_to(outside)
    code, out = desk.run("install", "claude-code")
    assert (code, outside.read_text()) == (1, "{}")
    assert "--force" in out
    assert desk.whats("install", "claude-code", "--force") == ["added"]
    assert "bus" in outside.read_text()


@pytest.mark.req("clients:10")
def test_a_read_only_file_or_folder_is_refused_and_nothing_is_left_behind(desk: Desk) -> None:
    file = desk.file(CLAUDE, "{}")
    file.chmod(0o444)
    folder = desk.home / ".codex"
    folder.mkdir()
    folder.chmod(0o555)
    try:
        code, out = desk.run("install", "claude-code", "codex")
        assert code == 1
        assert out.count("read-only") == 2
        assert desk.everything() == {CLAUDE: b"{}"}
    finally:
        folder.chmod(0o755)


@pytest.mark.req("clients:11")
def test_the_dead_block_in_claudes_settings_is_left_alone_unless_forced(desk: Desk) -> None:
    seed = {"agent-bus": {"command": "py", "args": ["D:\\agents\\agent-bus-mcp\\server.py"]}}
    settings = desk.file(".claude/settings.json", json.dumps({"model": "m", "mcpServers": seed}, indent=2))
    before = settings.read_bytes()
    desk.run("install", "claude-code")
    assert settings.read_bytes() == before
    assert "bus" in json.loads((desk.home / CLAUDE).read_text())["mcpServers"]
    assert desk.whats("install", "claude-code", "--force") == ["unchanged", "removed"]
    assert json.loads(settings.read_text()) == {"model": "m"}
    assert len(list(settings.parent.glob("*.bak"))) == 1


def test_other_servers_in_the_dead_block_stay(desk: Desk) -> None:
    both = {"agent-bus": {"command": "/x/agent-bus"}, "else": {"command": "e"}}
    settings = desk.file(".claude/settings.json", json.dumps({"mcpServers": both}))
    desk.run("install", "claude-code", "--force")
    assert json.loads(settings.read_text()) == {"mcpServers": {"else": {"command": "e"}}}


@pytest.mark.req("clients:12")
def test_an_entry_under_another_name_is_updated_where_it_is_with_the_users_keys(desk: Desk) -> None:
    old = {"command": "/old/agent-bus", "args": ["mcp"], "disabled": True, "env": {"A": "1"}, "timeout": 900000}
    file = desk.file(CLAUDE, json.dumps({"mcpServers": {"agent-bus": old}}, indent=2))
    assert desk.whats("install", "claude-code") == ["updated"]
    servers = json.loads(file.read_text())["mcpServers"]
    assert list(servers) == ["agent-bus"]
    found = servers["agent-bus"]
    assert found["command"] == str(desk.program)
    assert (found["disabled"], found["env"], found["timeout"]) == (True, {"A": "1"}, 900000)
    toml = desk.file(
        CODEX, '[mcp_servers.agent-bus]  # mine\ncommand = "/old/agent-bus"\ntool_timeout_sec = 600 # long\n'
    )
    assert desk.whats("install", "codex") == ["updated"]
    assert "# mine" in toml.read_text()
    assert "tool_timeout_sec = 600 # long" in toml.read_text()
    assert list(tomllib.loads(toml.read_text())["mcp_servers"]) == ["agent-bus"]


@pytest.mark.req("clients:12:named")
def test_a_name_is_not_given_to_an_entry_that_has_another(desk: Desk) -> None:
    desk.run("install", "claude-code", "codex")
    before = desk.everything()
    for client in ("claude-code", "codex"):
        code, out = desk.run("install", client, "--name", "bus2")
        assert code == 1
        assert f"agent-bus uninstall {client}" in out
    assert desk.everything() == before


@pytest.mark.req("clients:12:variables")
@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "opencode"])
def test_variables_of_a_user_are_not_lost_to_an_address_unasked(desk: Desk, name: str) -> None:
    url = ("--http", "http://127.0.0.1:8200/mcp")
    desk.run("install", name)
    path = user_file(desk, name)
    if name == "codex":
        path.write_text(path.read_text() + '\n[mcp_servers.bus.env]\nMINE = "1"\n')
    else:
        key = "environment" if name == "opencode" else "env"
        path.write_text(path.read_text().replace(f'"{key}": {{}}', f'"{key}": {{"MINE": "1"}}'))
    before = path.read_bytes()
    code, out = desk.run("install", name, *url)
    assert code == 1
    assert "MINE" in out
    assert desk.whats("install", name) == ["unchanged"]
    assert path.read_bytes() == before
    assert desk.whats("install", name, *url, "--force") == ["updated"]
    assert b"MINE" not in path.read_bytes()
    assert [b"MINE" in old.read_bytes() for old in path.parent.glob("*.bak")] == [True], "the copy has them"
    assert desk.whats("install", name) == ["updated"]


def test_the_seeds_server_is_replaced_only_by_force(desk: Desk) -> None:
    seed = {"command": "py", "args": ["/home/a/agent-bus-mcp/server.py"]}
    file = desk.file(CLAUDE, json.dumps({"mcpServers": {"agent-bus": seed}}))
    code, out = desk.run("install", "claude-code")
    assert code == 1
    assert "--force" in out
    assert desk.whats("install", "claude-code", "--force")[0] == "updated"
    assert list(json.loads(file.read_text())["mcpServers"]) == ["agent-bus"]


@pytest.mark.req("clients:13")
def test_another_program_keeps_its_name(desk: Desk) -> None:
    file = desk.file(CLAUDE, '{"mcpServers": {"bus": {"command": "omnibus"}}}')
    before = file.read_bytes()
    code, out = desk.run("install", "claude-code")
    assert code == 1
    assert "--name" in out
    assert file.read_bytes() == before
    assert desk.whats("install", "claude-code", "--name", "bus2") == ["added"]


@pytest.mark.req("clients:14")
def test_a_dry_run_shows_the_change_without_secrets_and_writes_nothing(desk: Desk) -> None:
    secret = '{\n  "mcpServers": {\n    "x": {"command": "x", "env": {"API_KEY": "sk-hidden"}}\n  }\n}\n'
    for name in HERE:
        desk.file(user_file(desk, name).relative_to(desk.home).as_posix(), "" if name == "codex" else secret)
    before = desk.everything()
    code, out = desk.run("install", *HERE, "--dry-run")
    assert code == 0
    assert out.count("+++ ") == len(HERE)
    assert "sk-hidden" not in out
    assert desk.everything() == before
    assert not (desk.root / ".bus" / "clients").exists()


@pytest.mark.req("clients:15")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["claude-code", "--scope", "project"], "--project"),
        (["claude-desktop", "--scope", "project", "--project", "."], "no project scope"),
        (["claud"], "claude-code"),
        ([], "say all"),
        (["codex", "--name", "Bus_1"], "--name must be"),
        (["codex", "--with", "rolls"], "roles"),
    ],
)
def test_wrong_use_says_what_would_be_right(desk: Desk, words: list[str], said: str) -> None:
    code, out = desk.run("install", *words)
    assert code == 2
    assert said in out
    assert desk.everything() == {}


@pytest.mark.req("clients:16")
def test_each_client_has_its_own_shape(desk: Desk) -> None:
    desk.run("install", "vscode", "opencode")
    command = [str(desk.program), "mcp", "--root", str(desk.root), "--agent", "opencode"]
    assert list(json.loads(user_file(desk, "vscode").read_text())) == ["servers"]
    plain = json.loads((desk.home / ".config/opencode/opencode.json").read_text())["mcp"]["bus"]
    assert plain == {"type": "local", "command": command, "environment": {}, "enabled": True, "timeout": 120000}
    new = desk.file(".config/opencode/opencode.json", '{"mcp": {"servers": {}}} // new\n')
    desk.run("install", "opencode")
    entry = jsonc.parse(new.read_text(), True).value["mcp"]["servers"]["bus"]
    assert entry["disabled"] is False
    assert entry["timeout"] == {"startup": 30000, "request": 120000}
    assert "args" not in entry
    desk.run("install", "antigravity", "--http", "http://127.0.0.1:8200/mcp")
    found = json.loads((desk.home / ".gemini/config/mcp_config.json").read_text())["mcpServers"]["bus"]
    assert found["serverUrl"] == "http://127.0.0.1:8200/mcp"
    assert found["headers"]["Authorization"].startswith("Bearer ")


def test_a_token_is_named_not_written_where_the_client_can_read_a_variable(desk: Desk, tmp_path: Path) -> None:
    url = ("--http", "http://127.0.0.1:8200/mcp")
    desk.run("install", "claude-code", "codex", "gemini", "cursor", "opencode", *url)
    token = next((tmp_path / "state").glob("*/http-token")).read_text().strip()
    assert token not in b"".join(desk.everything().values()).decode()
    assert tomllib.loads((desk.home / CODEX).read_text())["mcp_servers"]["bus"]["bearer_token_env_var"]
    assert "${AGENT_BUS_HTTP_TOKEN}" in (desk.home / CLAUDE).read_text()
    code, out = desk.run("install", "kimi", "--scope", "project", "--project", str(desk.home), *url)
    assert code == 1
    assert "token" in out
    assert desk.run("install", "claude-desktop", *url)[0] == 1
    assert desk.whats("install", "codex") == ["updated"], "back to a program"
    assert "url" not in tomllib.loads((desk.home / CODEX).read_text())["mcp_servers"]["bus"]


@pytest.mark.req("clients:26")
def test_an_installation_that_will_not_last_is_refused_with_the_line_to_run(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, out = desk.run("install", "claude-code")
    assert code == 1
    assert "pipx install ." in out
    assert desk.everything() == {}
    assert desk.whats("install", "claude-code", "--force") == ["added"]


@pytest.mark.req("clients:28")
def test_the_list_shows_what_is_here_and_writes_nothing(desk: Desk) -> None:
    desk.run("install", "claude-code", "codex")
    desk.file(".cursor/mcp.json", "{ broken")
    before = desk.everything()
    found = {one["client"]: one for one in desk.json("install", "--list")["clients"]}
    assert set(found) == set(ELEVEN)
    assert [name for name, one in found.items() if one["found"]] == ["claude-code", "codex", "cursor"]
    assert found["codex"]["files"][0]["entries"] == [
        {"name": "bus", "agent": "codex", "root": str(desk.root), "whose": "ours"}
    ]
    assert "line 1" in found["cursor"]["files"][0]["problem"]
    code, out = desk.run("install", "--list")
    assert code == 0
    assert "codex" in out
    assert desk.everything() == before


def test_all_means_those_that_are_here(desk: Desk) -> None:
    code, out = desk.run("install", "all")
    assert code == 1
    assert "no client was found" in out
    (desk.home / ".codex").mkdir()
    (desk.home / ".kimi").mkdir()
    assert [file["client"] for file in desk.json("install", "all")["files"]] == ["codex", "kimi"]
    assert (desk.home / ".kimi/mcp.json").is_file()


def test_approve_writes_the_rules_of_claude_code_and_only_ours_are_taken_out(desk: Desk) -> None:
    project = desk.home / "project"
    (project / ".git").mkdir(parents=True)
    theirs = '{\n  "permissions": {\n    "allow": ["mcp__bus", "Bash(ls)"]\n  }\n}\n'
    settings = desk.file(".claude/settings.json", theirs)
    assert desk.whats("install", "claude-code", "--with", "approve") == ["added", "unchanged"]
    desk.run("uninstall", "claude-code")
    assert settings.read_text() == theirs, "the rule was the user's own"
    where = ("--scope", "project", "--project", str(project))
    assert desk.whats("install", "claude-code", "--with", "approve", *where) == ["added"] * 3
    found = json.loads((project / ".claude/settings.json").read_text())
    assert found == {"permissions": {"allow": ["mcp__bus"]}, "enabledMcpjsonServers": ["bus"]}
    assert desk.run("uninstall", "claude-code", *where)[0] == 0
    assert [path.name for path in project.rglob("*")] == [".git"]
    desk.run("install", "gemini", "--with", "approve")
    assert json.loads((desk.home / GEMINI).read_text())["mcpServers"]["bus"]["trust"] is True


def test_without_a_manifest_our_entry_is_known_by_what_it_starts(desk: Desk) -> None:
    text = others("claude-code", "\n", "")
    file = desk.file(CLAUDE, text)
    desk.run("install", "claude-code")
    for record in (desk.root / ".bus" / "clients").rglob("*.json"):
        record.unlink()
    assert desk.whats("uninstall", "claude-code") == ["removed"]
    assert file.read_text() == text
    assert len(list(desk.home.glob("*.bak"))) == 2, "without the manifest a copy is kept"


def test_what_others_wrote_since_stays_at_uninstall(desk: Desk) -> None:
    desk.run("install", "claude-code")
    file = desk.home / CLAUDE
    found = json.loads(file.read_text())
    found["numStartups"] = 3
    file.write_text(json.dumps(found))
    assert desk.whats("uninstall", "claude-code") == ["removed"]
    assert json.loads(file.read_text()) == {"mcpServers": {}, "numStartups": 3}


def test_uninstall_all_takes_every_entry_and_says_nothing_of_the_rest(desk: Desk) -> None:
    desk.run("install", "claude-code", "codex", "cursor")
    assert desk.whats("uninstall", "--all") == ["removed"] * 3
    assert desk.everything() == {}
    assert desk.json("uninstall", "--all")["files"] == []
    assert desk.run("uninstall")[0] == 2


def test_an_entry_names_the_settings_file_if_it_is_not_the_usual_one(desk: Desk, tmp_path: Path) -> None:
    config = tmp_path / "my bus.toml"
    config.write_text("")
    desk.run(
        "install", "codex", "--config", str(config), "--agent", "coder", "--role", "orchestrator", "--tools", "all"
    )
    args = tomllib.loads((desk.home / CODEX).read_text())["mcp_servers"]["bus"]["args"]
    assert args[3:] == ["--agent", "coder", "--role", "orchestrator", "--tools", "all", "--config", str(config)]
    code, out = desk.run("install", "codex", "--tools", "cor")
    assert code == 1
    assert "core" in out


def test_a_snippet_is_what_install_would_write(desk: Desk) -> None:
    for name in ("claude-code", "codex", "opencode"):
        text = desk.json("snippet", name)["text"]
        desk.run("install", name)
        assert user_file(desk, name).read_text() == text
    code, out = desk.run("snippet", "claude-desktop")
    assert code == 0
    assert "mcpServers" in out


def test_the_messages_are_in_the_users_language(desk: Desk) -> None:
    assert "追加" in desk.run("install", "codex", "--language", "ja")[1]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8200/mcp/", "http://localhost:8200/mcp", "https://bus.example.com/mcp"]
)
def test_an_entry_by_address_is_known_again(desk: Desk, url: str) -> None:
    desk.run("install", "codex", "gemini", "--http", url)
    assert desk.whats("install", "codex", "gemini", "--http", url) == ["unchanged", "unchanged"]
    assert desk.whats("install", "codex", "gemini") == ["updated", "updated"]
    assert desk.whats("uninstall", "codex", "gemini") == ["removed", "removed"]


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/mcp",
        "http://a:b@127.0.0.1:8200/mcp",
        "http://127.0.0.1:99999/mcp",
        "127.0.0.1",
        "ftp://x/y",
    ],
)
def test_a_token_is_given_to_this_machine_alone(desk: Desk, url: str) -> None:
    code, out = desk.run("install", "kimi", "--http", url)
    assert code == 1
    assert "127.0.0.1:8200/mcp" in out
    assert desk.everything() == {}


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_a_token_is_not_written_into_a_file_that_others_can_read(desk: Desk) -> None:
    file = desk.file(".kimi-code/mcp.json", "{}")
    file.chmod(0o644)
    code, out = desk.run("install", "kimi", "--http", "http://127.0.0.1:8200/mcp")
    assert code == 1
    assert "chmod 600" in out
    assert desk.run("snippet", "kimi", "--http", "http://127.0.0.1:8200/mcp")[0] == 0, "it writes into no file"
    file.chmod(0o600)
    assert desk.whats("install", "kimi", "--http", "http://127.0.0.1:8200/mcp") == ["added"]


def test_sub_tables_of_our_entry_stay(desk: Desk) -> None:
    desk.run("install", "codex")
    path = desk.home / CODEX
    own = '\n[mcp_servers.bus.env]\nA = "b"\n\n[mcp_servers.bus.tools.receive_task]\napproval_mode = "prompt"\n'
    path.write_text(path.read_text() + own)
    assert desk.whats("install", "codex", "--role", "orchestrator") == ["updated"]
    assert path.read_text().endswith(own)
    assert tomllib.loads(path.read_text())["mcp_servers"]["bus"]["args"][-1] == "orchestrator"
    assert desk.whats("uninstall", "codex") == ["removed"]


def test_a_dry_run_makes_no_token(desk: Desk, tmp_path: Path) -> None:
    desk.run("install", "antigravity", "--http", "http://127.0.0.1:8200/mcp", "--dry-run")
    assert list((tmp_path / "state").glob("*/http-token")) == []


def test_what_the_server_would_refuse_is_refused(desk: Desk) -> None:
    code, out = desk.run("install", "codex", "--agent", "a b")
    assert code == 1
    assert "--agent" in out
    desk.root.rename(desk.root.with_name("elsewhere"))
    code, out = desk.run("install", "codex")
    assert code == 1
    assert "agent-bus init" in out
    assert desk.everything() == {}


def test_what_is_to_be_added_by_hand_fits_the_file(desk: Desk) -> None:
    desk.file(".claude/settings.json", '{"permissions": []}')
    code, out = desk.run("install", "claude-code", "--with", "approve")
    assert code == 1
    assert "mcp__bus" in out
    assert "mcpServers" not in out


def test_a_broken_client_of_a_third_party_is_named_and_the_others_go_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = (EntryPoint("acme", "no_such_module.acme", registry.GROUP), EntryPoint("nil", "os:sep", registry.GROUP))
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    registry._load.cache_clear()
    try:
        code, out = desk.run("install", "codex")
        assert code == 0
        assert "acme" in out
        assert "ModuleNotFoundError" in out
        assert "nil" in out
    finally:
        registry._load.cache_clear()
