"""One server process, spoken to as a client does: lines of JSON-RPC over its pipes, every wait bounded.

It gets a session of its own, and its end is looked up without reaping it: so its pid, which names the group, is its own
until the group has been ended.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

CRASHED, SILENT, STRANGE = "crashed", "silent", "wrong_id"
LAST_LINES = 20
END_S = 2.0
_LINE_BYTES = 4 * 1024 * 1024
_QUEUED = 1000
_STDERR_BYTES = 64 * 1024


@dataclass(frozen=True)
class Start:
    """How the client starts it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


@dataclass(frozen=True)
class Question:
    """A request; a notification has no name and gets no answer."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass
class Heard:
    """What came of a conversation.

    Args:
        answers: by the question's name; the whole response.
        fault: why the rest was not answered: `crashed`, `silent`, `wrong_id`, "" if all was.
        noise: what it wrote besides JSON-RPC, at most some lines.
        first_s: seconds from its start to the first answer.
        left: whether it ended by itself soon after its input did.
        code: its exit code, 0 if it had to be ended.
        stderr: its last words.
    """

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    fault: str = ""
    noise: list[str] = field(default_factory=list)
    first_s: float = 0.0
    left: bool = True
    code: int = 0
    stderr: list[str] = field(default_factory=list)

    def result(self, name: str) -> dict[str, Any]:
        """The result of a question, {} if there is none."""
        found = self.answers.get(name, {}).get("result")
        return found if isinstance(found, dict) else {}


def converse(start: Start, questions: Sequence[Question], within_s: float) -> Heard:
    """Starts it, asks one question after the other, ends its input, and then it and all that it started.

    Args:
        within_s: for all answers together.

    Raises:
        OSError: it cannot be started.
    """
    talk = _Talk(start)
    _LIVE.add(talk)
    try:
        talk.ask_all(questions, time.monotonic() + within_s)
    finally:
        talk.end()
        _LIVE.discard(talk)
    return talk.heard


def end_all() -> None:
    """Ends whatever is still spoken to, on threads that are left behind or after Ctrl-C."""
    for talk in list(_LIVE):
        talk.kill()


_LIVE: set[_Talk] = set()


class _Talk:
    def __init__(self, start: Start) -> None:
        self.heard = Heard()
        self._guard = threading.Lock()
        self._is_reaped = False
        self._lines: queue.Queue[bytes | None] = queue.Queue(_QUEUED)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by `end`
        own: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        self._began = time.monotonic()
        pipe = subprocess.PIPE
        try:
            self._child = subprocess.Popen(
                list(start.argv),
                cwd=start.cwd,
                env=dict(start.env),
                stdin=pipe,
                stdout=pipe,
                stderr=self._stderr,
                **own,
            )
        except (OSError, ValueError) as error:
            self._stderr.close()
            raise OSError(str(error)) from error
        self._reader = threading.Thread(target=self._read, name="doctor-reader", daemon=True)
        self._reader.start()

    def ask_all(self, questions: Sequence[Question], deadline: float) -> None:
        for number, question in enumerate(questions, start=1):
            if not self._send(question, number):
                self.heard.fault = CRASHED
            elif question.name:
                self._await(question.name, number, deadline)
            if self.heard.fault:
                return

    def end(self) -> None:
        """Ends its input, looks whether it leaves, and ends what is left of it."""
        heard = self.heard
        with suppress(OSError):
            if self._child.stdin:
                self._child.stdin.close()
        if heard.fault != SILENT:
            heard.left = self._leaves(time.monotonic() + END_S)
        with self._guard:
            self._kill()
            code = self._child.wait()
            self._is_reaped = True
        heard.code = code if heard.left and heard.fault != SILENT else 0
        self._reader.join(1.0)
        if not self._reader.is_alive() and self._child.stdout:
            self._child.stdout.close()
        heard.noise += [_shown(line) for line in self._rest() if _frame(line) is None][:3]
        heard.stderr = self._last_words()

    def kill(self) -> None:
        """Ends it now; nothing once it is reaped, as its pid may be another's then."""
        with self._guard:
            if not self._is_reaped:
                self._kill()

    def _send(self, question: Question, number: int) -> bool:
        frame = {"jsonrpc": "2.0", "method": question.method, "params": dict(question.params)}
        data = json.dumps(frame | ({"id": number} if question.name else {})).encode() + b"\n"
        try:
            assert self._child.stdin is not None
            self._child.stdin.write(data)
            self._child.stdin.flush()
        except OSError:
            return False
        return True

    def _await(self, name: str, number: int, deadline: float) -> None:
        strange = False
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.heard.fault = STRANGE if strange else SILENT
                return
            if line is None:
                self.heard.fault = CRASHED
                return
            frame = _frame(line)
            if frame is None:
                self.heard.noise.append(_shown(line))
            elif "method" not in frame and frame.get("id") == number:
                self.heard.first_s = self.heard.first_s or time.monotonic() - self._began
                self.heard.answers[name] = frame
                return
            elif "method" not in frame:
                strange, deadline = True, min(deadline, time.monotonic() + 1.0)

    def _read(self) -> None:
        assert self._child.stdout is not None
        with suppress(OSError, ValueError):
            for line in iter(lambda: self._child.stdout.readline(_LINE_BYTES), b""):  # type: ignore[union-attr]
                self._lines.put(line)
        self._lines.put(None)

    def _rest(self) -> list[bytes]:
        rest = []
        with suppress(queue.Empty):
            while line := self._lines.get_nowait():
                rest.append(line)
        return rest

    def _leaves(self, deadline: float) -> bool:
        while not self._has_ended():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _has_ended(self) -> bool:
        if sys.platform == "win32":
            return self._child.poll() is not None
        try:
            return bool(psutil.Process(self._child.pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return True

    def _kill(self) -> None:
        """Its group (nothing of it is reaped yet) and its descendants that left the group."""
        below: list[psutil.Process] = []
        with suppress(psutil.Error):
            below = psutil.Process(self._child.pid).children(recursive=True)
        if sys.platform != "win32":
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
        for process in below:
            with suppress(psutil.Error):
                process.kill()
        self._child.kill()

    def _last_words(self) -> list[str]:
        with self._stderr as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _STDERR_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()[-LAST_LINES:]


def _frame(line: bytes) -> dict[str, Any] | None:
    """A JSON-RPC frame; None for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("jsonrpc") == "2.0" else None


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()[:120]
