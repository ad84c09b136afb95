"""What is started for each CLI (docs/launcher.md "CLIs")."""

import json
import tomllib
from pathlib import Path

import pytest

from agent_bus.errors import BusError
from agent_bus.launchers import registry
from tests.launchers.starts import SERVER, SESSION, make_start

SENTENCE = "Read the file .agent-bus/r-t-20260307-101500-001-1.md and do what it says."
NEW = {
    "claude": "-p --session-id S --allowedTools mcp__bus --disallowedTools AskUserQuestion"
    " --permission-mode acceptEdits --permission-prompts none --output-format stream-json --verbose",
    "codex": "exec --json --skip-git-repo-check -C /w -s workspace-write -",
    "gemini": "-p  --allowed-mcp-server-names bus --session-id S --approval-mode auto_edit --skip-trust -o stream-json",
    "qwen": "--session-id S --approval-mode auto-edit -o stream-json",
    "agy": "--output-format stream-json --print-timeout 7200s --mode accept-edits -p SENTENCE",
    "cursor": "-p --output-format stream-json --workspace /w --trust --approve-mcps SENTENCE",
    "opencode": "run --format json --dir /w --auto SENTENCE",
    "kimi": "--output-format stream-json --auto -p SENTENCE",
    "command": "",
}
RESUMED = {
    "claude": "-p --resume S --allowedTools mcp__bus --disallowedTools AskUserQuestion --permission-mode acceptEdits"
    " --permission-prompts none --output-format stream-json --verbose",
    "codex": "exec --json --skip-git-repo-check -C /w -s workspace-write resume S -",
    "gemini": "-p  --allowed-mcp-server-names bus -r S --approval-mode auto_edit --skip-trust -o stream-json",
    "qwen": "-r S --approval-mode auto-edit -o stream-json",
    "agy": "--output-format stream-json --print-timeout 7200s --mode accept-edits --conversation S -p SENTENCE",
    "cursor": "-p --output-format stream-json --workspace /w --trust --approve-mcps --resume S SENTENCE",
    "opencode": "run --format json --dir /w --auto -s S SENTENCE",
    "kimi": "--output-format stream-json --auto -S S -p SENTENCE",
    "command": "",
}
LEVELS = {
    "claude": {"read": "dontAsk", "edit": "acceptEdits", "full": "bypassPermissions"},
    "codex": {"read": "read-only", "edit": "workspace-write", "full": "--dangerously-bypass-approvals-and-sandbox"},
    "gemini": {"read": "default", "edit": "auto_edit", "full": "yolo"},
    "qwen": {"read": "plan", "edit": "auto-edit", "full": "yolo"},
    "agy": {"read": "plan", "edit": "accept-edits", "full": "--dangerously-skip-permissions"},
    "cursor": {"edit": "--trust", "full": "--force"},
    "opencode": {"edit": "--auto", "full": "--auto"},
    "kimi": {"read": "--plan", "edit": "--auto", "full": "--yolo"},
    "command": {"full": "/bin/x"},
}
BY_FILE = {"agy", "cursor", "opencode", "kimi"}


def words(argv: str) -> list[str]:
    """The table's argv."""
    named = {"S": SESSION, "SENTENCE": SENTENCE}
    return [named.get(word, word) for word in argv.split(" ")] if argv else []


def after(argv: tuple[str, ...], flag: str) -> str:
    """The word behind a flag."""
    return argv[argv.index(flag) + 1]


def test_the_table_names_every_launcher() -> None:
    assert sorted(NEW) == sorted(RESUMED) == sorted(LEVELS) == registry.names()


@pytest.mark.parametrize("name", NEW)
def test_a_new_run_has_the_flags_of_the_table(name: str, tmp_path: Path) -> None:
    launcher = registry.load(name)
    command = launcher.command(make_start(launcher, tmp_path))
    assert list(command.argv) == ["/bin/x", *words(NEW[name])]
    assert command.stdin_prompt == (name not in BY_FILE)


@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_run_names_its_session_and_never_the_newest_one(name: str, tmp_path: Path) -> None:
    launcher = registry.load(name)
    command = launcher.command(make_start(launcher, tmp_path, session_id=SESSION, resume=True))
    assert list(command.argv) == ["/bin/x", *words(RESUMED[name])]
    assert not {"--continue", "--last", "-c", "latest"} & set(command.argv)


@pytest.mark.parametrize(("name", "level"), [(n, level) for n, levels in LEVELS.items() for level in levels])
def test_each_level_that_a_cli_keeps_has_its_flag(name: str, level: str, tmp_path: Path) -> None:
    launcher = registry.load(name)
    command = launcher.command(make_start(launcher, tmp_path, permission=level))
    assert LEVELS[name][level] in command.argv
    others = {flag for other, flag in LEVELS[name].items() if other != level} - {LEVELS[name][level], "--trust"}
    assert not others & set(command.argv)


@pytest.mark.parametrize(
    ("name", "level", "advice"),
    [
        ("opencode", "read", "use edit or full"),
        ("cursor", "read", "use edit or full"),
        ("command", "read", "only full is possible"),
        ("command", "edit", "only full is possible"),
    ],
)
def test_a_level_that_a_cli_cannot_keep_is_refused_with_the_ones_it_can(
    name: str, level: str, advice: str, tmp_path: Path
) -> None:
    launcher = registry.load(name)
    with pytest.raises(BusError, match=advice) as error:
        launcher.command(make_start(launcher, tmp_path, permission=level))
    assert error.value.code == "refused"
    assert level not in launcher.permissions


@pytest.mark.parametrize("name", sorted(BY_FILE))
def test_a_cli_without_standard_input_gets_the_prompt_as_a_file_named_by_one_fixed_sentence(
    name: str, tmp_path: Path
) -> None:
    launcher = registry.load(name)
    command = launcher.command(make_start(launcher, tmp_path / "runs", work_dir=tmp_path))
    copy = tmp_path / ".agent-bus" / "r-t-20260307-101500-001-1.md"
    assert command.files == {copy: "the prompt: 始める\n"}
    assert command.argv[-1] == SENTENCE


@pytest.mark.parametrize("name", NEW)
def test_the_agents_own_arguments_stand_after_ours_and_its_model_has_its_flag(name: str, tmp_path: Path) -> None:
    launcher = registry.load(name)
    start = make_start(launcher, tmp_path, args=("--extra", "one"), model="best/model-1")
    argv = launcher.command(start).argv
    place = argv.index("--extra")
    assert argv[place + 1] == "one"
    assert not set(argv[place + 2 :]) - {"-", "-p", SENTENCE}
    assert name == "command" or argv[argv.index("best/model-1") - 1] in ("-m", "--model")


def test_claude_gets_our_server_as_a_file_beside_the_prompt(tmp_path: Path) -> None:
    launcher = registry.load("claude")
    command = launcher.command(make_start(launcher, tmp_path, server=SERVER, server_env={"AGENT_BUS_RUN_ID": "r-1"}))
    file = tmp_path / "1.mcp.json"
    assert after(command.argv, "--mcp-config") == str(file)
    entry = json.loads(command.files[file])["mcpServers"]["bus"]
    assert [entry["command"], *entry["args"]] == list(SERVER)
    assert entry["alwaysLoad"] is True
    assert entry["env"] == {"AGENT_BUS_RUN_ID": "r-1"}


def test_claudes_read_level_allows_reading_tools_and_what_the_settings_add(tmp_path: Path) -> None:
    launcher = registry.load("claude")
    argv = launcher.command(make_start(launcher, tmp_path, permission="read", allowed_tools=("Bash(npm test:*)",))).argv
    place = argv.index("--allowedTools")
    assert argv[place + 1 : place + 6] == ("mcp__bus", "Read", "Grep", "Glob", "Bash(npm test:*)")
    assert argv[place + 6].startswith("--")


def test_claude_gets_its_hook_file_and_the_money_that_is_left(tmp_path: Path) -> None:
    launcher = registry.load("claude")
    argv = launcher.command(make_start(launcher, tmp_path, settings_file="/runs/1.settings", budget_usd=1.5)).argv
    assert after(argv, "--settings") == "/runs/1.settings"
    assert after(argv, "--max-budget-usd") == "1.50"


def test_an_optional_flag_that_the_executable_does_not_know_is_not_passed(tmp_path: Path) -> None:
    for name in registry.names():
        launcher = registry.load(name)
        start = make_start(launcher, tmp_path, flags=launcher.required_flags, budget_usd=1.0, settings_file="/s")
        assert not launcher.optional_flags & set(launcher.command(start).argv), name


def test_codex_gets_our_server_as_toml_that_names_variables_and_holds_no_value(tmp_path: Path) -> None:
    launcher = registry.load("codex")
    server = ('/opt/a "b" \\c/agent-bus', "mcp", "--root", "/ボルト 🗂")
    argv = launcher.command(make_start(launcher, tmp_path, server=server, server_env={"AGENT_BUS_X": "sesame"})).argv
    pairs = [argv[n + 1] for n, word in enumerate(argv) if word == "-c"]
    entry = tomllib.loads("\n".join(pairs))["mcp_servers"]["bus"]
    assert [entry["command"], *entry["args"]] == list(server)
    assert (entry["required"], entry["default_tools_approval_mode"]) == (True, "approve")
    assert entry["env_vars"] == ["AGENT_BUS_X"]
    assert not any("sesame" in word for word in argv)


def test_all_of_codexs_flags_stand_before_resume(tmp_path: Path) -> None:
    launcher = registry.load("codex")
    start = make_start(launcher, tmp_path, session_id=SESSION, resume=True, server=SERVER, args=("--extra",))
    assert launcher.command(start).argv[-3:] == ("resume", SESSION, "-")


def test_gemini_without_resume_starts_a_session_of_its_own_naming(tmp_path: Path) -> None:
    launcher = registry.load("gemini")
    flags = launcher.required_flags
    argv = launcher.command(make_start(launcher, tmp_path, resume=True, flags=flags)).argv
    assert not {"-r", "--session-id", SESSION} & set(argv)


def test_opencodes_edit_level_denies_what_the_settings_do_not_allow(tmp_path: Path) -> None:
    launcher = registry.load("opencode")
    edit = launcher.command(make_start(launcher, tmp_path, allowed_tools=("bash",)))
    denied = json.loads(edit.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    assert denied == {"webfetch": "deny", "websearch": "deny", "external_directory": "deny"}
    assert launcher.command(make_start(launcher, tmp_path, permission="full")).env == {}


def test_a_program_gets_its_array_with_session_and_prompt_file_filled_in(tmp_path: Path) -> None:
    launcher = registry.load("command")
    array = ("/bin/x", "--session={session}", "{prompt_file}")
    start = make_start(launcher, tmp_path, executable=array, session_id="s-1", resume=True)
    command = launcher.command(start)
    assert command.argv == ("/bin/x", "--session=s-1", str(tmp_path / "1.prompt"))
    assert command.stdin_prompt is False
