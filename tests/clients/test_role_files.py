"""Role files: each in the form that its client reads, in both languages, and true to the tools there are."""

import importlib
import itertools
import json
import pkgutil
import re
import shlex
import tomllib
import typing
from pathlib import Path

import pytest

from agent_bus import features
from agent_bus.clients import PARTS, PROJECT, SCOPES, USER, Home
from agent_bus.clients.registry import known as known_clients
from agent_bus.clients.roles import RoleFile, hook_entry, is_our_hook, render, wanted
from agent_bus.clients.roles.block import BEGIN, END
from agent_bus.clients.roles.known import digest, unchanged
from agent_bus.clients.roles.places import PLACES
from agent_bus.commands import Command, commands
from agent_bus.errors import HTTP_STATUS, BusError
from agent_bus.parameters import check_value

HOME, WORK = Path("/u/me").absolute(), Path("/w/my project").absolute()
ROLES = ("", *render.ROLES)
SOURCES = sorted(path.stem for path in (Path(render.__file__).parent / "texts" / "en").iterdir())
LIMITS = {"using-agent-bus": 6000, **dict.fromkeys(render.COMMANDS[""], 1200)}
WORDS = {
    *"bus instruction context comment in_review pending_approval dead_letter completed failed blocked".split(),
    *"mcp__bus__receive_task next_tasks stale_attempt".split(),
}
SHELL = {"agent-bus resume", "--tools core,queue", "agent-bus report TASK STATUS SUMMARY --worker NAME"}


def get(client: str, scope: str, role: str = "", language: str = "en", **environ: str) -> list[RoleFile]:
    return wanted(client, scope, Home(HOME, environ, "linux"), WORK, PARTS, role, language)


EVERYTHING = {
    (client, scope, role, language): get(client, scope, role, language)
    for client, scope, role, language in itertools.product(PLACES, SCOPES, ROLES, render.LANGUAGES)
}
FILES = [file for files in EVERYTHING.values() for file in files]


def registry() -> dict[str, Command]:
    for module in pkgutil.iter_modules(features.__path__):
        importlib.import_module(f"{features.__name__}.{module.name}")
    return {name: one for name, one in commands().items() if one.group in ("core", "queue")}


def said(name: str, language: str = "en") -> list[str]:
    """What stands between backticks in a neutral text."""
    return re.findall("`([^`]+)`", render.source(name, language).body)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The keys of a file's head, each a plain YAML scalar or one in double quotes, and the rest."""
    assert text.startswith("---\n")
    head, _, rest = text[4:].partition("\n---\n\n")
    found = {}
    for line in head.split("\n"):
        key, colon, value = line.partition(": ")
        assert colon
        assert re.fullmatch("[a-zA-Z-]+", key)
        if value.startswith('"'):
            value = json.loads(value)
        else:  # nothing that YAML would read as more than a plain scalar
            assert not re.search(r": | #|^[-?:,\[\]{}#&*!|>'%@`]|\s$|:$", value), value
        found[key] = value
    return found, rest


def names(client: str, scope: str, role: str = "") -> list[str]:
    base = HOME if scope == USER else WORK
    return [file.path.relative_to(base).as_posix() for file in get(client, scope, role)]


def test_claude_code_gets_a_skill_a_sub_agent_commands_and_a_hook() -> None:
    assert names("claude-code", PROJECT, "worker") == [
        ".claude/skills/using-agent-bus/SKILL.md",
        ".claude/agents/bus-worker.md",
        ".claude/commands/bus-work.md",
        ".claude/settings.json",
    ]
    assert names("claude-code", USER) == names("claude-code", PROJECT)
    assert ".claude/agents/bus-worker.md" not in names("claude-code", USER, "reviewer")


@pytest.mark.parametrize(
    ("client", "user", "project"),
    [
        ("codex", [".codex/AGENTS.md", ".agents/skills/{}/SKILL.md"], ["AGENTS.md", ".agents/skills/{}/SKILL.md"]),
        ("gemini", [".gemini/GEMINI.md", ".gemini/commands/bus/review.toml"],
         ["GEMINI.md", ".gemini/commands/bus/review.toml"]),
        ("qwen", [".qwen/QWEN.md", ".qwen/commands/bus/review.toml"], ["QWEN.md", ".qwen/commands/bus/review.toml"]),
        ("antigravity", [], ["AGENTS.md"]),
        ("cursor", [".cursor/commands/{}.md"], [".cursor/rules/agent-bus.mdc", ".cursor/commands/{}.md"]),
        ("vscode", [".config/Code/User/prompts/{}.prompt.md"], ["AGENTS.md", ".github/prompts/{}.prompt.md"]),
        ("windsurf", [".codeium/windsurf/global_workflows/{}.md"],
         [".windsurf/rules/agent-bus.md", ".windsurf/workflows/{}.md"]),
        ("opencode", [".config/opencode/AGENTS.md", ".config/opencode/command/{}.md"],
         ["AGENTS.md", ".opencode/command/{}.md"]),
        ("kimi", [".kimi-code/AGENTS.md", ".kimi-code/skills/{}/SKILL.md"],
         ["AGENTS.md", ".kimi-code/skills/{}/SKILL.md"]),
        ("claude-desktop", [], []),
    ],
)  # fmt: skip
def test_each_client_has_its_places(client: str, user: list[str], project: list[str]) -> None:
    assert names(client, USER, "reviewer") == [path.format("bus-review") for path in user]
    assert names(client, PROJECT, "reviewer") == [path.format("bus-review") for path in project]


def test_variables_that_move_a_clients_folder_move_its_role_files() -> None:
    moved = str(Path("/elsewhere/c").absolute())
    for client, variable in (("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME"), ("kimi", "KIMI_CODE_HOME")):
        file = get(client, USER, **{variable: moved})[0]
        assert file.path.is_relative_to(moved), client


def test_every_client_has_places_or_is_known_to_have_none() -> None:
    assert set(known_clients()) - set(PLACES) <= {"claude-desktop"}
    assert set(PLACES) <= set(known_clients())


def test_only_the_parts_that_were_asked_for_come() -> None:
    home = Home(HOME)
    assert [file.kind for file in wanted("claude-code", USER, home, None, ["hook"], "", "en")] == ["hook"]
    assert wanted("claude-code", USER, home, None, [], "", "en") == []
    assert [file.kind for file in wanted("codex", PROJECT, home, WORK, ["roles", "hook"], "", "en")] == ["block"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("claud", USER, WORK, ["roles"], "", "en"), "Use claude-code"),
        (("codex", "global", WORK, ["roles"], "", "en"), "Known are user, project"),
        (("codex", USER, WORK, ["role"], "", "en"), "Known are roles, commands, hook, approve"),
        (("codex", USER, WORK, ["roles"], "boss", "en"), "Known are worker, orchestrator, reviewer"),
        (("codex", USER, WORK, ["roles"], "", "fr"), "Known are en, ja"),
        (("codex", PROJECT, None, ["roles"], "", "en"), "Name the project's folder"),
    ],
)
def test_a_wrong_word_is_refused_with_the_right_ones(
    call: tuple[str, str, Path | None, list[str], str, str], words: str
) -> None:
    client, scope, project, parts, role, language = call
    with pytest.raises(BusError, match=words) as caught:
        wanted(client, scope, Home(HOME), project, parts, role, language)
    assert caught.value.code == "invalid"


@pytest.mark.parametrize("name", SOURCES)
def test_each_text_is_in_both_languages_names_the_same_tools_and_is_short(name: str) -> None:
    for language in render.LANGUAGES:
        source = render.source(name, language)
        assert len(source.body) <= LIMITS.get(name, 2500)
        assert bool(source.hint) == (name in LIMITS and name != "using-agent-bus")
        assert source.body.count("{{arguments}}") == bool(source.hint)
        assert len(source.description) <= 400
        assert not re.search(r"!`|!\{|@|\$|'''", source.body), "a client would read it as a command or a file"
    assert set(said(name)) == set(said(name, "ja"))
    assert re.search("[ぁ-ん]", render.source(name, "ja").body)


@pytest.mark.parametrize(("role", "language"), list(itertools.product(render.ROLES, render.LANGUAGES)))
def test_a_role_text_is_within_its_limit_and_has_the_rules_for_everybody(role: str, language: str) -> None:
    text = render.role_text(role, language)
    assert len(text) <= 2500
    for word in ("`wait_s` 45" if language == "en" else "`wait_s` に 45", "`blocked`", "`stopped`", "`instruction`"):
        assert word in text


@pytest.mark.parametrize("name", SOURCES)
def test_every_tool_and_parameter_that_a_text_names_exists(name: str) -> None:
    tools = registry()
    parameters = {parameter.name for tool in tools.values() for parameter in tool.parameters}
    answers = {field for tool in tools.values() for field in typing.get_type_hints(tool.verb)["return"].model_fields}
    for words in said(name):
        call = re.fullmatch(r"(\w+)\((.*)\)", words)
        if call:
            given = {part.split("=")[0] for part in call[2].split(", ")}
            assert given <= {parameter.name for parameter in tools[call[1]].parameters}, words
        elif "=" in words:
            assert words.split("=")[0] in parameters, words
        else:
            assert words in {*tools, *parameters, *answers, *WORDS, *SHELL, *HTTP_STATUS}, words
    if name in ("common", "worker", "bus-work"):
        queue = {tool.name for tool in tools.values() if tool.group == "queue"}
        assert not queue & set(re.findall(r"\w+", render.source(name, "en").body)), "a worker's server has core alone"


def test_every_value_that_a_text_passes_is_one_that_the_tool_takes() -> None:
    tools = registry()
    seen = 0
    for name in SOURCES:
        for tool, inside in re.findall(r"`(\w+)\(([^`]*)\)`", render.source(name, "en").body):
            known = {parameter.name: parameter for parameter in tools[tool].parameters}
            for key, text, number in re.findall(r'(\w+)=(?:"(\w+)"|(\d+))', inside):
                check_value(known[key], text or int(number))
                seen += 1
    assert seen > 10


@pytest.mark.req("clients:25")
def test_every_file_has_the_form_that_its_client_reads() -> None:
    assert len(FILES) > 200
    for file in FILES:
        name, place = file.path.name, file.path.as_posix()
        if file.kind == "hook":
            assert (name, file.text) == ("settings.json", "")
        elif file.kind == "block":
            assert file.text.startswith(f"{BEGIN}\n# agent-bus\n")
            assert file.text.endswith(f"\n{END}")
            assert name in ("AGENTS.md", "GEMINI.md", "QWEN.md")
            assert len(file.text.encode()) < 16_000
        elif name.endswith(".toml"):
            found = tomllib.loads(file.text)
            assert set(found) == {"description", "prompt"}
            assert "{{args}}" in found["prompt"]
            assert file.path.parent.name == "bus"
        elif "/.cursor/commands/" in place:
            assert not file.text.startswith("---")
        else:
            check_front_matter(file.text, place)
        assert "{{arguments}}" not in file.text
        assert "\r" not in file.text
        assert file.kind != "file" or file.text.endswith("\n")


def check_front_matter(text: str, place: str) -> None:
    keys, body = front_matter(text)
    assert keys.pop("description")
    assert 300 < len(body) < 12_000
    if "/skills/" in place:
        assert keys == {"name": place.split("/")[-2]}
    elif "/agents/" in place:
        assert keys == {"name": "bus-worker"}
    elif "/.claude/commands/" in place:
        assert keys.pop("argument-hint").startswith("[")
        assert keys == ({"disable-model-invocation": "true"} if "bus-stop" in place else {})
        assert "$ARGUMENTS" in body
    elif "/command/" in place:
        assert keys == {}
        assert "$ARGUMENTS" in body
    elif "/rules/" in place:
        assert keys == ({"alwaysApply": "true"} if place.endswith(".mdc") else {"trigger": "always_on"})
    else:
        assert keys == ({"agent": "agent"} if place.endswith(".prompt.md") else {})


def test_clients_of_one_project_share_one_block() -> None:
    for role, language in itertools.product(ROLES, render.LANGUAGES):
        texts = {f.text for c in PLACES for f in EVERYTHING[c, PROJECT, role, language] if f.path.name == "AGENTS.md"}
        assert len(texts) == 1


@pytest.mark.req("clients:23")
def test_a_text_of_ours_is_known_and_an_edited_one_is_not() -> None:
    for file in FILES:
        if file.text:
            assert unchanged(file.text)
            assert not unchanged(file.text.replace("`", "'", 1))
    text = FILES[0].text
    assert unchanged("\ufeff" + text.replace("\n", "\r\n"))
    assert not unchanged("")
    assert unchanged("of an earlier release", {digest("of an earlier release")})


@pytest.mark.req("clients:24")
def test_the_hook_names_the_executable_and_is_known_again() -> None:
    entry = hook_entry("/u/me/my tools/agent-bus", windows=False)
    (hook,) = entry["hooks"]
    assert shlex.split(hook["command"]) == ["/u/me/my tools/agent-bus", "hook", "stop"]
    assert (hook["type"], hook["timeout"]) == ("command", 10)
    windows = hook_entry(r"C:\my tools\agent-bus.exe", windows=True)
    assert windows["hooks"][0]["command"] == "'C:/my tools/agent-bus.exe' hook stop"
    assert is_our_hook(entry)
    assert is_our_hook(windows)


@pytest.mark.parametrize(
    "member",
    [
        None,
        {},
        {"hooks": "x"},
        {"hooks": [{"type": "command", "command": "agent-bus hook"}]},
        {"hooks": [{"type": "command", "command": "other hook stop"}]},
        {"hooks": [{"type": "command", "command": "agent-bus 'hook stop"}]},
        {"hooks": [{"type": "prompt"}]},
        {"hooks": [{"command": "agent-bus hook stop"}, {"command": "mine"}]},
    ],
)
def test_a_hook_of_the_user_is_none_of_ours(member: object) -> None:
    assert not is_our_hook(member)
