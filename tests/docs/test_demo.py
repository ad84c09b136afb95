"""The demo plays to its end, in both languages, and says so if a step is not as expected."""

import ast
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bus.locale.demo import DEMO
from agent_bus.locale.messages import LANGUAGES
from tests.docs import checkout

PLAY = "import demo; sys.exit(demo.show({words}))"
LONG = pytest.mark.timeout(200)
MISCOUNT = """
import demo
from types import SimpleNamespace

TASK = {"task_id": "t-1", "status": "pending", "next": ""}
REPORT = {"status": "completed", "summary": "72 words in 5 files.", "artifacts": []}
ANSWERS = {"dispatch_task": TASK, "get_reports": {"reports": [REPORT]}}
boss = SimpleNamespace(name="boss", call=lambda tool, **given: ANSWERS[tool])
coder = SimpleNamespace(name="coder", shown=lambda did: TASK)
demo.story = lambda stage: demo.work_and_chain(stage, boss, coder)
"""
"""The first act with a worker that has counted wrongly."""


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def named() -> Iterator[str]:
    """The beginnings of the keys that the demo's scripts name."""
    for path in (checkout.SCRIPTS / "demo.py", *(checkout.SCRIPTS / "demo_parts").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_both_languages_have_every_sentence_of_the_demo_with_the_same_placeholders() -> None:
    assert DEMO
    for key, texts in DEMO.items():
        assert len(texts) == len(LANGUAGES), key
        assert all(texts), key
        assert len({frozenset(placeholders(text)) for text in texts}) == 1, key


def test_every_sentence_of_the_demo_is_used() -> None:
    said = set(named())
    parts = {key: key.partition(".") for key in DEMO}
    unused = [k for k, (family, dot, name) in parts.items() if k not in said and not {family + dot, name} <= said]
    assert unused == []


@LONG
@pytest.mark.skipif(sys.platform == "win32", reason="LANG decides on POSIX")
def test_the_demo_plays_in_the_language_of_the_system(tmp_path: Path) -> None:
    done = checkout.python(PLAY.format(words=[]), tmp_path, LANG="ja_JP.UTF-8", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for key in ("title", "act.work", "act.crash", "act.gate", "act.stop", "act.launch"):
        assert DEMO[key][1] in done.stdout
    (folder,) = tmp_path.glob("agent-bus-demo-*")
    assert str(folder / "09_AgentSync") in done.stdout
    made = ["counts.json", "note.md", "note2.md", "summary.md", "titles.txt"]
    assert sorted(p.name for p in (folder / "results").iterdir() if p.is_file()) == made
    logs = "".join(p.read_text(encoding="utf-8") for p in (folder / "logs").iterdir())
    assert "Traceback" not in logs


def test_a_step_that_is_not_as_expected_fails_the_demo(tmp_path: Path) -> None:
    code = MISCOUNT + PLAY.format(words=["--language", "en"])
    done = checkout.python(code, tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Not as expected: wrong count: 72 words in 5 files." in done.stdout
