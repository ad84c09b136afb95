"""What people read: widths, tables, ages, harmless text, two languages."""

from __future__ import annotations

import ast
import re
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

import agent_bus
from agent_bus.app import load_features
from agent_bus.clients.entries import ADDED, REMOVED, UNCHANGED, UPDATED
from agent_bus.clients.installing import REFUSED
from agent_bus.clients.registry import known
from agent_bus.clients.role_edits import KEPT
from agent_bus.doctor.seen import LEVELS
from agent_bus.domain.task import STATES
from agent_bus.domain.wishes import ANSWER, APPROVE, CANCEL, PRIORITY, REJECT
from agent_bus.errors import HTTP_STATUS
from agent_bus.faces import show
from agent_bus.faces.cli_journal import journal_line
from agent_bus.faces.cli_values import Screen, value_text
from agent_bus.faces.cli_views import as_typed, overview, render, rows
from agent_bus.locale.messages import LANGUAGES, MESSAGES
from agent_bus.texts import Texts, choose_language

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
FAULTS = ("front", "contradiction", "unknown_word", "no_reply", "other_verb", "say_it_again")
NO_COMMAND = ("verb", "priority", "no_agent", "no_task", "no_room", "empty", "too_long")
SOURCE = Path(agent_bus.__file__).parent


def screen(language: str = "en", columns: int = 0) -> Screen:
    return Screen(Texts(language), NOW, columns)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_every_message_with_the_same_placeholders() -> None:
    for key, texts in MESSAGES.items():
        assert len(texts) == len(LANGUAGES), key
        assert len({frozenset(placeholders(text)) for text in texts}) == 1, key


def test_every_message_but_the_meaning_of_a_code_says_something_in_both_languages() -> None:
    assert [key for key, texts in MESSAGES.items() if not all(texts) and not key.startswith("meaning.")] == []
    assert [key for key, texts in MESSAGES.items() if not texts[1]] == []


def test_every_message_is_used_and_every_used_message_is_there() -> None:
    said = set()
    for path in (p for p in SOURCE.rglob("*.py") if p.parent.name != "locale"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        said |= {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    families = {f"meaning.{code}" for code in HTTP_STATUS} | {f"span.{unit}" for _, unit in show._UNITS}
    families |= {f"clients.what.{what}" for what in (ADDED, UPDATED, UNCHANGED, REMOVED, KEPT, REFUSED)}
    families |= {f"clients.after.{key}" for client in known().values() for key in client.after}
    families |= {f"clients.note.{key}" for client in known().values() for key in client.limits.notes}
    families |= {f"clients.note.{key}" for key in ("shared", "no_manifest", "edited", "not_beside")}
    families |= {f"mirror.state.{state}" for state in STATES}
    families |= {f"mirror.{key}" for key in ("needs_you", "running", "queue", "done")}
    families |= {f"mirror.{key}_how" for key in ("approve", "review", "answer", "dead")} | {"mirror.approve_elsewhere"}
    families |= {f"deciding.done.{verb}" for verb in (APPROVE, REJECT, ANSWER, CANCEL, PRIORITY)}
    families |= {f"deciding.{name}" for name in ("refused", "late", "not_here", "put_back", "no_priority")}
    families |= {f"deciding.fault.{name}" for name in FAULTS} | {f"deciding.no_command.{name}" for name in NO_COMMAND}
    families |= {f"vault.level.{level}" for level in LEVELS} | {f"quarantine.{verb}" for verb in ("restore", "drop")}
    families |= {key for key in MESSAGES if key.startswith(("doctor.", "vault.seen."))}  # tests/doctor, tests/notes
    sentences = {key for key in MESSAGES if not key.startswith("label.")}
    assert sentences - said - families == set()
    assert families - set(MESSAGES) == set()


def test_every_label_names_a_field_that_some_result_has() -> None:
    words = set()
    for path in SOURCE.rglob("*.py"):
        if path.name != "messages.py":
            words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    labels = {key.removeprefix("label.") for key in MESSAGES if key.startswith("label.")}
    assert labels - words == set()


@pytest.mark.parametrize(
    ("setting", "environ", "language"),
    [
        ("ja", {"LANG": "en_US.UTF-8"}, "ja"),
        ("auto", {"LANG": "ja_JP.UTF-8"}, "ja"),
        ("auto", {"LC_MESSAGES": "ja_JP", "LANG": "en_US"}, "ja"),
        ("auto", {"LC_ALL": "C", "LC_MESSAGES": "ja_JP", "LANG": "ja_JP"}, "en"),
        ("auto", {"LC_ALL": "", "LANG": "ja"}, "ja"),
        ("auto", {"LANG": "fr_FR.UTF-8"}, "en"),
        ("", {"LANG": "C.UTF-8"}, "en"),
    ],
)
def test_the_setting_decides_the_language_then_the_environment(
    setting: str, environ: dict[str, str], language: str
) -> None:
    assert choose_language(setting, environ) == language


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert show.width("ナナ") == 4
    assert show.width("é") == 1
    assert show.width("ｱ") == 1
    assert show.pad("支払い", 8) == "支払い  "
    assert show.cut("支払いを実行して", 7) == "支払い…"
    assert show.cut("abc", 3) == "abc"


def test_columns_of_a_table_with_japanese_cells_begin_at_the_same_place() -> None:
    shown = rows([{"to": "ナナ", "state": "pending"}, {"to": "coder", "state": "blocked"}], screen())
    lines = [click.unstyle(line) for line in shown]
    words = ("state", "pending", "blocked")
    starts = {show.width(line[: line.index(word)]) for line, word in zip(lines, words, strict=True)}
    assert len(starts) == 1


def test_a_table_fits_the_terminal_and_is_whole_without_one() -> None:
    documents = [{"task_id": "t-20261201-120000-001", "instruction": "テストを書く " * 30}]
    assert all(show.width(click.unstyle(line)) <= 60 for line in rows(documents, screen(columns=60)))
    assert "…" not in "".join(rows(documents, screen()))


def test_text_by_others_cannot_steer_the_terminal() -> None:
    nasty = "ok\x1b]0;title\x07\x1b[2J\x9b31m\u202edcba\r"
    shown = render({"summary": nasty, "rows": [{"a": nasty}], "next": nasty, "problems": [nasty]}, screen())
    assert set("\x07\x9b\u202e\r") & set(shown) == set()
    assert "\x1b" not in click.unstyle(shown)
    assert "\x1b]" not in journal_line({"event": "x", "agent": nasty, nasty: "v"}, screen())


@pytest.mark.parametrize(
    ("seconds", "en", "ja"),
    [(0, "0 s ago", "0 秒前"), (59, "59 s ago", "59 秒前"), (200, "3 min ago", "3 分前"), (7300, "2 h ago", "2 時間前"),
     (200_000, "2 d ago", "2 日前"), (-90, "in 1 min", "1 分後")],
)  # fmt: skip
def test_times_are_shown_as_ages(seconds: int, en: str, ja: str) -> None:
    moment = NOW - timedelta(seconds=seconds)
    assert show.when(Texts("en"), moment, NOW) == en
    assert show.when(Texts("ja"), moment, NOW) == ja


def test_a_result_shows_what_says_something_and_the_next_step_last() -> None:
    result = {
        "next": "Wait.",
        "task_id": "t-1",
        "note": "",
        "warnings": ["coder?"],
        "when": None,
        "matched_terms": [],
    }
    lines = click.unstyle(render(result, screen())).splitlines()
    assert lines[-1] == "→ Wait."
    assert "! coder?" in lines
    assert not any("note" in line or "matched" in line for line in lines)


def test_a_next_step_is_shown_as_one_types_it() -> None:
    load_features()
    shown = as_typed("get_reports(task_id=t-1, wait_s=45) for the result; no_such_verb(x=1) stays.")
    assert shown == "agent-bus get-reports --task-id t-1 --wait-s 45 for the result; no_such_verb(x=1) stays."


def test_counts_stand_on_one_line_without_zeros() -> None:
    shown = click.unstyle(render({"counts": {"pending": 3, "blocked": 0, "failed": 1}}, screen()))
    assert shown.split("  ")[1:] == ["pending 3 · failed 1"]


def test_a_list_of_documents_with_long_texts_becomes_blocks() -> None:
    long = {"key": "k-1", "data": "a\nb" + "c" * 200, "things": ["1", "2", "3", "4"]}
    lines = click.unstyle(render({"others": [long, {"key": "k-2", "data": ""}]}, screen())).splitlines()
    assert [line.split() for line in lines[:3]] == [["others"], ["key", "k-1"], ["data", "a"]]
    assert "    4" in lines
    assert lines[-1].split() == ["key", "k-2"]


def test_data_of_any_depth_is_shown() -> None:
    deep: dict[str, object] = {"leaf": "x"}
    for _ in range(150):
        deep = {"more": deep}
    assert "leaf" in render({"data": deep}, screen())


def test_the_status_page_names_agents_tasks_and_problems_in_both_languages() -> None:
    agent = {
        "agent": "ナナ",
        "state": "working",
        "holds": [{"task_id": "t-1"}],
        "last_updated": f"{NOW:%Y-%m-%dT%XZ}",
    }
    health = {"counts": {"pending": 2}, "problems": ["The inbox of ナナ is long."]}
    english = click.unstyle(overview({"agents": [agent]}, health, screen())).splitlines()
    assert english[0] == "Agents"
    assert english[2].split() == ["ナナ", "working", "0", "s", "ago"]
    assert "  pending 2" in english
    assert english[-1] == "  ! The inbox of ナナ is long."
    empty = click.unstyle(overview({"agents": []}, {"counts": {"pending": 0}, "problems": []}, screen("ja")))
    shown = [line.strip() for line in empty.splitlines() if line]
    assert shown[::2] == ["エージェント", "タスク", "問題"]
    assert shown[1::2] == ["まだエージェントはいません。", "タスクはありません。", "問題はありません。"]


def test_sizes_are_shown_in_units() -> None:
    assert value_text("free_bytes", 1_500_000_000, screen()) == "1.5 GB"
    assert value_text("free_bytes", 900, screen()) == "900 B"


def test_an_empty_result_says_so() -> None:
    assert render({"tasks": [], "cursor": ""}, screen("ja")) == "該当するものはありません。"


def test_lines_of_a_long_text_stand_under_its_first() -> None:
    lines = click.unstyle(render({"summary": "one\ntwo"}, screen())).splitlines()
    assert lines[0].index("one") == lines[1].index("two")


def test_a_line_of_the_journal_tells_time_event_agent_and_the_rest() -> None:
    at = "2026-12-01T11:59:00.000Z"
    line = {"id": "20261201-00000001", "at": at, "event": "task.dispatched", "agent": "ナナ", "to": "x"}
    shown = click.unstyle(journal_line(line, screen()))
    assert "task.dispatched" in shown
    assert "ナナ" in shown
    assert "to=x" in shown
    assert journal_line({"event": "odd", "at": "no time"}, screen())
