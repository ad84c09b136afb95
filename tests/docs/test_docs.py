"""The documents are complete and true: what they say of the code is compared with the code."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent_bus import __version__, paging
from agent_bus.app import FEATURES
from agent_bus.domain import chain
from agent_bus.domain.task import STATES, TRANSITIONS, Task, place, read_task
from agent_bus.errors import HTTP_STATUS
from agent_bus.faces import guard
from agent_bus.features import context, reports
from agent_bus.operations import orders
from agent_bus.settings import Settings, load_settings
from agent_bus.store import codec, layout
from agent_bus.store import format as disk_format
from tests.docs import checkout
from tests.docs.checkout import PACKAGE, ROOT, read

FENCE = re.compile(r"^(<!-- run -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]+`")
REFERENCE = re.compile(r'(docs/[a-z/-]+\.md)(?:",?)? ?"([A-Z][A-Za-z ]+)"|docs/protocol\.md, "([A-Z][A-Za-z ]+)"')
SOURCES = ("agent_bus", "daemons", "scripts", "docs")
FORBIDDEN = {
    "a path of somebody's machine": r"(?<![\w.])/(?:home|Users|root|work|tmp)/(?!linuxbrew)\w|[A-Z]:[\\/](?:Users)",
    "the host of a registry": r"pypi\.org|pythonhosted|registry\.npmjs|proxy\.golang",
    "a note to oneself": r"\b(?:TODO|FIXME|XXX|HACK)\b",
    "talk about how it was made": r"(?i)\bissue #\d|\bthis session\b|\bas requested\b|\bthe user asked\b",
}
VERBS = """
import json
from agent_bus.app import load_features
from agent_bus.commands import commands
load_features()
print(json.dumps({c.name: [p.name for p in c.parameters] for c in commands().values()}))
"""
FRESH = """
import json, runpy
print(json.dumps(runpy.run_path({path!r}, run_name="gendocs")["pages"]()))
"""
NOTES = """
import json, sys, types
module = types.ModuleType("notes")
sys.modules["notes"] = module
exec(compile({code!r}, "notes.py", "exec"), module.__dict__)
from agent_bus.app import memory_bus
from agent_bus.commands import bind, commands
from agent_bus.offers import prompts, resources
bus = bind(memory_bus())
bus.add_note("release", "one")
note = bus.add_note("release", "two")
entry = bus.get_shared_context("release").entries[0]
read = resources()["bus://notes/{{topic}}"]
print(json.dumps([
    note.lines, entry["data"]["lines"], commands()["add_note"].schema()["required"],
    read.verb(bus._bus, "release").lines, read.complete["topic"](bus._bus),
    prompts()["sum_up"].verb(bus._bus, "release"),
]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("docs")


@pytest.fixture(scope="module")
def verbs(folder: Path) -> dict[str, list[str]]:
    """Every verb of the package with its parameters, asked in a process of its own."""
    found: dict[str, list[str]] = checkout.ask(VERBS, folder)
    return found


def section(name: str, title: str) -> str:
    """The text under a heading of a page, up to the next one of its level or above."""
    (heading,) = re.finditer(rf"^(#+) {re.escape(title)}$", read(name), re.MULTILINE)
    rest = read(name)[heading.end() :]
    return re.split(rf"^#{{1,{len(heading[1])}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables in a text, without the heads."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    marks = [number for number, line in enumerate(lines) if set("".join(line)) <= {"-"}]
    return [[c.strip() for c in line] for n, line in enumerate(lines) if n not in marks and n + 1 not in marks]


def blocks(name: str, language: str, run: bool = False) -> list[str]:
    """The code blocks of a language in a page; `run`: those that are marked as runnable."""
    return [m[3] for m in FENCE.finditer(read(name)) if m[2] == language and (m[1] or not run)]


def anchors(page: str) -> set[str]:
    """The anchors that a page's headings make (GitHub's rule)."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_generated_pages_are_what_the_code_makes_now(folder: Path) -> None:
    fresh = checkout.ask(FRESH.format(path=str(checkout.SCRIPTS / "gendocs")), folder)
    assert len(fresh) == 10
    old = [name for name, text in fresh.items() if read(name) != text]
    assert not old, f"run scripts/gendocs: {', '.join(old)}"


def test_every_tool_and_every_parameter_is_documented(verbs: dict[str, list[str]]) -> None:
    page, readme, words = read("docs/tools.md"), read("README.md"), read("docs/cli.md")
    assert len(verbs) >= 20
    for name, parameters in verbs.items():
        assert f"| `{name}` |" in readme
        assert name.replace("_", "-") in words
        told = [row[0] for row in rows(section("docs/tools.md", name))]
        assert told == [f"`{p}`" for p in parameters], name
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == set(verbs)


def test_every_setting_is_documented_with_its_default() -> None:
    page = rows(read("docs/settings.md"))
    known = [
        (name, field)
        for model in settings_models(Settings)
        for name, field in model.model_fields.items()
        if name not in ("problems", "source") and len(tables_in(field)) == 0
    ]
    assert sorted(row[0].strip("`") for row in page) == sorted(name for name, _ in known)
    assert len(known) > 30
    assert all(row[-1] for row in page)
    for key, _, default, *_ in (row for row in page if len(row) == 5):
        value = Settings.model_fields[key.strip("`")].default
        assert default == (f"`{value}`" if value != "" else "–"), key


def settings_models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and those of its tables."""
    inner = [one for field in model.model_fields.values() for one in tables_in(field)]
    return [model, *(found for one in inner for found in settings_models(one))]


def tables_in(field: FieldInfo) -> list[type[BaseModel]]:
    """The models that a setting holds."""
    parts = [field.annotation, *getattr(field.annotation, "__args__", ())]
    return [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]


def test_every_documented_variable_of_the_environment_sets_its_setting() -> None:
    told = {row[3]: row for row in rows(read("docs/settings.md")) if len(row) == 5}
    assert len(told) >= 19
    for variable, (key, kind, *_) in told.items():
        name = key.strip("`")
        low = re.match(r"integer (\d+)", kind)
        value = str(int(low[1]) + 1) if low else kind.rpartition("|")[2].strip() if "|" in kind else "Asia/Tokyo"
        settings = load_settings(environ={variable: value, "AGENT_BUS_CONFIG": os.devnull})
        assert str(getattr(settings, name)) == value, variable
        assert settings.problems == ()


def test_every_error_code_is_documented_with_its_status_and_no_other_is_raised() -> None:
    told = {code.strip("`"): int(status) for code, status, *_ in rows(read("docs/errors.md"))}
    assert told == HTTP_STATUS
    raised = {
        node.args[0].value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "BusError"
        and isinstance(node.args[0], ast.Constant)
    }
    assert raised - set(told) == set()


def test_the_states_of_the_protocol_page_are_those_of_the_code() -> None:
    part = section("docs/protocol.md", "States")
    told = {
        row[0]: tuple(tuple(re.findall(r"`(\w+)`", cell)) for cell in row[1:]) for row in rows(part) if len(row) == 3
    }
    assert told == TRANSITIONS
    arrows = set(re.findall(r"^    (\w+) --> (\w+): (.+)$", part, re.MULTILINE))
    drawn = {(source, target, event) for source, target, events in arrows for event in events.split(", ")}
    assert drawn == {
        (source, target, event)
        for event, (sources, targets) in TRANSITIONS.items()
        for source in sources
        for target in targets
        if source != target
    }


def test_the_protocol_page_says_in_which_folder_each_state_lies() -> None:
    told: dict[str, str] = {}
    for row in rows(section("docs/protocol.md", "States")):
        if len(row) == 5:
            told |= {state: row[1].partition("/")[0] for state in re.findall(r"`(\w+)`", row[0])}
    small = {"task_id": "t-20260307-101500-001", "from": "a", "to": "b", "instruction": "x", "created_at": ""}
    assert told == {s: place(read_task({**small, "status": s})).partition("/")[0] for s in STATES}


def test_the_limits_of_the_protocol_page_are_those_of_the_code() -> None:
    told = dict(row for row in rows(section("docs/protocol.md", "Limits")) if len(row) == 2)
    assert told == {
        "a document": f"{codec.DOCUMENT_BYTES >> 20} MiB",
        "an instruction": f"{chain.INSTRUCTION_CHARS:,} characters",
        "a context, a shared context": f"{min(orders.CONTEXT_BYTES, context.DATA_BYTES) >> 10} KiB",
        "a summary, a comment": f"{reports.SUMMARY_CHARS:,} characters",
        "artifacts": f"{reports.ARTIFACTS} of {reports.ARTIFACT_CHARS:,} characters",
        "an HTTP body": f"{guard.BODY_BYTES >> 20} MiB",
        "an answer": f"under {paging.ANSWER_CHARS:,} characters, the rest by cursor",
    }


def test_the_format_page_names_the_format_every_folder_and_every_key_of_a_task() -> None:
    page = read("docs/vault-format.md")
    assert page.startswith(f"# The bus folder, format {disk_format.FORMAT}\n")
    tree = blocks("docs/vault-format.md", "text")[0]
    for name in (*layout.FOLDERS, *layout.STATE_FOLDERS, "archive"):
        assert re.search(rf"^ +(?:\S+/  )*{re.escape(name)}/", tree, re.MULTILINE), name
    told = [key for row in rows(section("docs/vault-format.md", "Tasks")) for key in re.findall(r"`(\w+)`", row[0])]
    assert sorted(told) == sorted(field.alias or name for name, field in Task.model_fields.items())


def test_every_internal_link_leads_somewhere() -> None:
    broken, count = [], 0
    for path in checkout.pages():
        for target in LINK.findall(CODE.sub("", FENCE.sub("", path.read_text(encoding="utf-8")))):
            if "://" in target:
                continue
            count += 1
            name, _, anchor = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            if not there.exists() or (anchor and anchor not in anchors(there.read_text(encoding="utf-8"))):
                broken.append(f"{path.relative_to(ROOT).as_posix()}: {target}")
    assert count > 25
    assert not broken, "\n".join(broken)


def test_every_section_that_the_code_refers_to_is_there() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        for name, title, other in REFERENCE.findall(path.read_text(encoding="utf-8")):
            found.append((name or "docs/protocol.md", title or other))
    assert len(found) > 8
    there = {name: read(name) if (ROOT / name).exists() else "" for name, _ in found}
    missing = [f"{name} {title!r}" for name, title in found if f"\n## {title}\n" not in there[name]]
    assert not missing, missing


def typed(page: str, folder: Path) -> str:
    """What the runnable shell blocks of a page print, typed one after the other into one shell; home is `folder`."""
    program = folder / "bin" / "agent-bus"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agent_bus.faces.cli "$@"\n')
    program.chmod(0o755)
    (folder / "temp").mkdir()
    environ = checkout.environ(folder) | {"HOME": str(folder), "TMPDIR": str(folder / "temp")}
    environ["PATH"] = f"{program.parent}{os.pathsep}{environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks(page, "sh", run=True))],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")
def test_the_readmes_shell_blocks_run(tmp_path: Path) -> None:
    shown = typed("README.md", tmp_path)
    assert "Write tests for parser.py" in shown
    assert "pending 1" in shown


@pytest.mark.req("clients:30")
@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")
def test_getting_started_ends_with_a_finished_task_of_two_clients(tmp_path: Path) -> None:
    shown = typed("docs/getting-started.md", tmp_path)
    assert shown.count(" added\n") == 2
    assert "12 tests, all green" in shown
    ((archived, *_),) = [[p for p in (tmp_path / "my-bus" / "archive").rglob("t-*.json") if "report" not in p.name]]
    task = json.loads(archived.read_text(encoding="utf-8"))
    assert (task["from"], task["to"], task["status"]) == ("claude-code", "codex", "completed")
    for client, file in (("claude-code", ".claude.json"), ("codex", ".codex/config.toml")):
        assert f'"--agent", "{client}"' in re.sub(r"\s+", " ", (tmp_path / file).read_text(encoding="utf-8"))


def test_the_readmes_python_blocks_run(tmp_path: Path) -> None:
    (code,) = blocks("README.md", "python", run=True)
    done = checkout.python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "pending {'pending': 1}"


def test_the_readmes_entry_is_the_one_of_snippet(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    code = "from agent_bus.faces.cli import main; main(['snippet', 'claude-desktop', '--root', 'bus', '--json'])"
    said = json.loads(checkout.ask(code, tmp_path)["text"])["mcpServers"]["bus"]
    shown = json.loads(blocks("README.md", "json")[0])["mcpServers"]["bus"]
    assert shown.keys() == said.keys() - {"env"}
    assert [shown["args"][n] for n in (0, 1, 3)] == [said["args"][n] for n in (0, 1, 3)]
    assert len(shown["args"]) == 5


def test_the_example_of_a_tool_group_works(tmp_path: Path) -> None:
    code = "\n".join(blocks("docs/extend/tool-group.md", "python"))
    lines, stored, required, read_again, topics, said = checkout.ask(NOTES.format(code=code), tmp_path)
    assert (lines, stored, required) == (2, ["one", "two"], ["topic", "line"])
    assert (read_again, topics) == (["one", "two"], ["release"])
    assert "get_shared_context(key=release)" in said
    project = tomllib.loads(blocks("docs/extend/tool-group.md", "toml")[0])["project"]
    assert project["entry-points"] == {FEATURES: {"notes": "my_package.notes"}}


def test_the_decisions_are_numbered_and_of_one_shape() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [p.name[:4] for p in pages] == [f"{n:04}" for n in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]} ")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Decision", "Instead of", "What follows"], page.name


def test_the_change_log_begins_with_this_version() -> None:
    versions = re.findall(r"^## (\S+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == __version__


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that we publish, but tests."""
    for path in (*ROOT.glob("*.*"), *(p for name in SOURCES for p in (ROOT / name).rglob("*"))):
        is_text = path.suffix in ("", ".md", ".py", ".toml", ".txt") and not {".git", "__pycache__"} & {*path.parts}
        if path.is_file() and is_text:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_published_text_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [f"{name}: {match[0]}" for name, text in texts() for match in pattern.finditer(text)]
    assert not found, found


@pytest.mark.parametrize(
    ("what", "bad", "good"),
    [
        (
            "a path of somebody's machine",
            "see /home/ann/bus or C:\\Users\\ann",
            "`/path/to/my-bus`, ~/.codex/config.toml",
        ),
        ("the host of a registry", "from pypi.org", "pip install ."),
        ("a note to oneself", "# TODO: later", "a todo list"),
        ("talk about how it was made", "see issue #12", "this issues a token"),
    ],
)
def test_the_rule_about_published_texts_finds_what_it_must(what: str, bad: str, good: str) -> None:
    assert re.search(FORBIDDEN[what], bad)
    assert not re.search(FORBIDDEN[what], good)
