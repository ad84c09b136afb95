"""The log of a run, and what may be shown of it: header and footer, the cut, the last lines, redaction.

The log file itself is raw bytes of mode 0600; what leaves it for people, pages or messages goes through `redact`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from agent_bus.times import stamp

OURS = "#agent-bus "
"""How the lines begin that we write into a log; whoever reads a log for events leaves them out."""
REDACTED = "‹redacted›"
HEAD_BYTES = 1024 * 1024
"""What stays of the beginning of a log that is cut (setting `log_keep_bytes`)."""
TAIL_BYTES = 1024 * 1024
LINE_SHOWN = 2000
SECRET_LEAST = 8
"""Shorter values are words rather than secrets; taking them out would make texts unreadable."""

_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "WEBHOOK", "CREDENTIAL")
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"(?i)\b(bearer|basic)([ \t]+)[a-z0-9._~+/=-]{8,}", rf"\1\2{REDACTED}"),
        (r"\bsk-[A-Za-z0-9_-]{8,}", REDACTED),
        (r"\bgh[a-z]_[A-Za-z0-9]{8,}", REDACTED),
        (r"\bgithub_pat_[A-Za-z0-9_]{8,}", REDACTED),
        (r"\bxox[a-z]-[A-Za-z0-9-]{8,}", REDACTED),
        (r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/?#\"'<>]{1,512}@", rf"\1{REDACTED}@"),
        (r"(?i)(https?://hooks\.[^\s/\"'<>]{1,253}/)[^\s\"'<>)\]]+", rf"\1{REDACTED}"),
        (r"(?i)(https?://[^\s\"'<>]{1,512}?/webhook\w{0,4}/)[^\s\"'<>)\]]+", rf"\1{REDACTED}"),
    )
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without what looks like a secret, and without the values given. Pure; twice is as once.

    Args:
        text: what is about to leave.
        secrets: values to take out wherever they stand (`secret_values`), also as JSON writes them.
    """
    for value in sorted({v for s in secrets for v in (s, json.dumps(s)[1:-1])}, key=len, reverse=True):
        if len(value) >= SECRET_LEAST:
            text = text.replace(value, REDACTED)
    for shape, put in _SHAPES:
        text = shape.sub(put, text)
    return text


def secret_values(given: Mapping[str, str], passed: Mapping[str, str]) -> frozenset[str]:
    """The values that must not be shown (docs/launcher.md "Logs").

    Args:
        given: the agent's `env`: every value is one.
        passed: variables let through from the daemon: those with a telling name are.
    """
    telling = (v for name, v in passed.items() if any(word in name.upper() for word in _SECRET_NAMES))
    return frozenset(v for v in (*given.values(), *telling) if len(v) >= SECRET_LEAST)


def displayable(text: str) -> str:
    """The text without ANSI sequences and control characters; newlines and tabs stay."""
    return _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))


def header(now: datetime, run_id: str, executable: str, version: str, argv: Sequence[str]) -> bytes:
    """The first line of a log: when, which run, what was started with which flags (argv holds no value of env)."""
    said = {"run": run_id, "executable": executable, "version": version, "flags": [redact(a) for a in argv]}
    return _line(now, "start", said)


def footer(now: datetime, outcome: str, reason: str) -> bytes:
    """The last line of a log: how the run ended. It begins on a line of its own."""
    return b"\n" + _line(now, "end", {"outcome": outcome, "reason": redact(reason)})


def append(log: Path, line: bytes) -> None:
    """Adds bytes to a log, which is made with mode 0600 if it is not there. Raises OSError."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def cut(log: Path, keep_bytes: int) -> bool:
    """Shortens the log of an ended run to its first MiB and its last `keep_bytes` - 1 MiB; whether it did.

    A grandchild that still holds the old file open writes on where nobody looks; on Windows such a file stays as it is.
    """
    size = _size(log)
    if size <= keep_bytes:
        return False
    head, rest = _shares(keep_bytes)
    fresh = log.with_name(f"{log.name}.cut")
    with suppress(PermissionError), open(log, "rb") as source:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(handle, "wb") as target:
            _copy(source.fileno(), target.fileno(), head)
            target.write(f"\n{OURS}cut: {size - head - rest} bytes were here\n".encode())
            source.seek(size - rest)
            shutil.copyfileobj(source, target)
        os.replace(fresh, log)
        return True
    fresh.unlink(missing_ok=True)
    return False


def ends(log: Path, keep_bytes: int) -> bytes:
    """What a launcher reads of a log: all, or its first MiB and its end, `keep_bytes` together; b"" if it is gone."""
    try:
        with open(log, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= keep_bytes:
                return file.read(keep_bytes)
            head, rest = _shares(keep_bytes)
            first = file.read(head)
            file.seek(size - rest)
            return first + b"\n" + file.read(rest)
    except OSError:
        return b""


def tail(log: Path, lines: int) -> list[str]:
    """The last lines of a log, fit for display (not redacted), each at most 2,000 characters; [] if it is gone."""
    try:
        with open(log, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [displayable(line)[:LINE_SHOWN] for line in text.rstrip("\n").split("\n")[-lines:]] if lines > 0 else []


def _line(now: datetime, word: str, said: Mapping[str, object]) -> bytes:
    return f"{OURS}{stamp(now)} {word} {json.dumps(said, ensure_ascii=False)}\n".encode("utf-8", "replace")


def _shares(keep_bytes: int) -> tuple[int, int]:
    head = min(HEAD_BYTES, keep_bytes // 2)
    return head, keep_bytes - head


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _copy(source: int, target: int, count: int) -> None:
    while count > 0 and (piece := os.read(source, min(count, 65_536))):
        os.write(target, piece)
        count -= len(piece)
