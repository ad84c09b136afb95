"""Logs of runs, and what of them may be shown."""

import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bus.launchers import output
from agent_bus.launchers.output import REDACTED, redact

NOW = datetime(2026, 3, 7, 10, 15, tzinfo=UTC)
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdef.123456", f"Authorization: Bearer {REDACTED}"),
        ("authorization: basic dXNlcjpwYXNz", f"authorization: basic {REDACTED}"),
        ("key sk-ant-api03-abcdefgh, next", f"key {REDACTED}, next"),
        ("ghp_abcdefghijklmnop1234 x", f"{REDACTED} x"),
        ("github_pat_11ABCDEFG0_abc", REDACTED),
        ("token=xoxb-123456789-abc", f"token={REDACTED}"),
        ("git clone https://me:s3cret@example.com/x.git", f"git clone https://{REDACTED}@example.com/x.git"),
        ("postgres://u:p@db/x", f"postgres://{REDACTED}@db/x"),
        ("https://discord.com/api/webhooks/1234/abc-DEF", f"https://discord.com/api/webhooks/{REDACTED}"),
        ('"https://hooks.slack.com/services/T0/B0/xyz"', f'"https://hooks.slack.com/{REDACTED}"'),
        ("https://x.webhook.office.com/webhookb2/a@b/c", f"https://x.webhook.office.com/webhookb2/{REDACTED}"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a task-list of risk-free work",
        "https://example.com/docs/webhook-guide",
        "mail me@example.com, see https://example.com/@user",
        "the bearer of news",
        "sk-short",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_given_values_are_taken_out_as_they_are_and_as_json_writes_them() -> None:
    secrets = ['pass"word\\1', "longer than the other", "longer than"]
    text = 'a pass"word\\1 b "pass\\"word\\\\1" c longer than the other'
    assert redact(text, secrets) == f'a {REDACTED} b "{REDACTED}" c {REDACTED}'


def test_short_values_are_words_and_stay() -> None:
    assert redact("true is true", ["true", "1", ""]) == "true is true"


def test_secrets_are_all_values_of_env_and_passed_ones_with_telling_names() -> None:
    given_values = {"ANY": "any value", "N": "1"}
    passed = {"OPENAI_API_KEY": "0123456789", "MY_PASSWORD": "correct horse", "HOME": "/home/someone"}
    assert output.secret_values(given_values, passed) == {"any value", "0123456789", "correct horse"}


@given(st.text(), st.lists(st.text()))
def test_redaction_takes_any_text_and_twice_is_as_once(text: str, secrets: list[str]) -> None:
    distinct = [s for s in secrets if s not in REDACTED]
    once = redact(text, distinct)
    assert redact(once, distinct) == once


def test_a_text_for_display_has_no_control_sequences() -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\nnext\ttab\x00\x7f\x9b end \x1b(B"
    assert output.displayable(text) == "red ok\nnext\ttab end (B"


def test_header_and_footer_are_lines_of_ours_without_secrets() -> None:
    head = output.header(NOW, "r-1", "/bin/claude", "2.1.332", ["-p", "--key=sk-ant-12345678"])
    assert head.startswith(b"#agent-bus 2026-03-07T10:15:00.000Z start ")
    assert b"sk-ant" not in head
    assert head.count(b"\n") == 1
    assert output.footer(NOW, "reported", "").startswith(b"\n#agent-bus ")


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_a_log_is_for_its_owner_only(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    output.append(log, b"one\n")
    output.append(log, b"two\n")
    assert log.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_long_log_keeps_its_beginning_and_its_end_and_says_what_was_cut(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    log.write_bytes(b"first" + b"a" * (5 * MIB) + b"last")
    assert output.cut(log, 3 * MIB) is True
    data = log.read_bytes()
    gone = 5 * MIB + 9 - 3 * MIB
    assert data.startswith(b"firsta")
    assert data.endswith(b"alast")
    assert f"\n#agent-bus cut: {gone} bytes were here\n".encode() in data
    assert len(data) < 3 * MIB + 100
    assert os.listdir(tmp_path) == ["1.log"]


def test_a_log_within_its_limit_stays_as_it_is_and_a_missing_one_is_nothing(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    log.write_bytes(b"x" * 100)
    assert output.cut(log, 100) is False
    assert log.read_bytes() == b"x" * 100
    assert output.cut(tmp_path / "none", 100) is False
    assert output.ends(tmp_path / "none", 100) == b""
    assert output.tail(tmp_path / "none", 5) == []


def test_what_a_launcher_reads_of_a_long_log_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    log.write_bytes(b"first" + b"a" * (5 * MIB) + b"last")
    read = output.ends(log, 3 * MIB)
    assert (read[:5], read[-4:], len(read)) == (b"first", b"last", 3 * MIB + 1)
    assert output.ends(log, 6 * MIB) == log.read_bytes()


def test_the_last_lines_are_fit_for_display(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    log.write_bytes(b"x" * (2 * MIB) + b"\none\n\x1b[1mtwo\xff\x00\n" + b"y" * 5000 + b"\n")
    assert output.tail(log, 3) == ["one", "two\ufffd", "y" * 2000]
    assert output.tail(log, 0) == []
