"""The real verbs on the command line, each call a process of its own."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

BOUND_S = 30
MAIN = "import sys; from agent_bus.faces.cli import main; sys.exit(main())"
RISKY = "delete the production database"
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals")


class Shell:
    """A person's or a program's shell in front of one bus folder."""

    def __init__(self, folder: Path) -> None:
        config = folder / "bus.toml"
        config.write_text("")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_BUS_", "LC_", "LANG"))}
        own = {"STATE_HOME": str(folder / "state"), "CONFIG": str(config), "ROOT": str(folder / "bus")}
        self.environ = kept | {f"AGENT_BUS_{k}": v for k, v in own.items()}
        self.environ |= {"PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "100", "NO_COLOR": "1"}
        self.root = folder / "bus"

    def run(self, *words: str, code: int = 0, text: str = "") -> str:
        """What the command line prints, with the exit code as expected."""
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words],
            env=self.environ,
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ask(self, *words: str, code: int = 0, text: str = "") -> Any:
        """The JSON that the command line prints."""
        return json.loads(self.run(*words, "--json", code=code, text=text))

    def person(self, *words: str, types: bytes = b"") -> tuple[Any, str]:
        """The JSON that a person sees last at a terminal where they type that, and all that stands above it."""
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *words, "--json"], env=self.environ, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        os.write(ours, types)
        seen = b""
        deadline = time.monotonic() + BOUND_S
        while time.monotonic() < deadline and process.poll() is None:
            if select.select([ours], [], [], 0.1)[0]:
                seen += _left(ours)
        while select.select([ours], [], [], 0)[0] and (rest := _left(ours)):
            seen += rest
        os.close(ours)
        above, brace, answer = seen.decode().partition("{")
        return json.loads(brace + answer) if brace else None, above


def _left(handle: int) -> bytes:
    """What is left in a terminal whose other end is closed; b"" at the end (Linux says EIO there)."""
    try:
        return os.read(handle, 65_536)
    except OSError:
        return b""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.run("init")
    return made


def test_a_task_goes_from_dispatch_to_acknowledgement(shell: Shell) -> None:
    task_id = shell.ask("dispatch", "coder", "-", "--from", "boss", text="テストを書く\n二行目\n")["task_id"]
    assert [row["task_id"] for row in shell.ask("tasks", "coder")["tasks"]] == [task_id]
    received = shell.ask("receive", "coder")
    assert received["task"]["instruction"] == "テストを書く\n二行目"
    words = ["--lease", received["lease_id"], "--worker", "coder", "--status", "completed", "--summary-file", "-"]
    assert shell.ask("report", task_id, *words, "--artifact", "a.py", "--artifact", "b.py", text="done\n")["accepted"]
    report = shell.ask("reports", "--task", task_id)["reports"][0]
    assert (report["summary"], report["artifacts"]) == ("done", ["a.py", "b.py"])
    assert shell.ask("ack", task_id)["task_state"] == "completed"
    assert shell.ask("receive", "coder")["task"] is None


def test_the_hint_of_a_receive_is_a_report_that_can_be_typed(shell: Shell) -> None:
    task_id = shell.ask("dispatch", "coder", "Write the tests.")["task_id"]
    _, _, typed = shell.run("receive", "coder").partition("then agent-bus ")
    assert shell.ask(*shlex.split(typed.partition(";")[0]))["task_state"] == "completed"
    assert shell.ask("reports", "--task", task_id)["reports"][0]["summary"] == "what you did"


def test_people_read_what_programs_get_as_json(shell: Shell) -> None:
    long = "word " * 4000 + "THE-END"
    task_id = shell.ask("dispatch", "ナナ", "-", "--from", "boss", text=long)["task_id"]
    assert "THE-END" in shell.run("get", task_id)
    assert "why" in shell.run("get", task_id).splitlines()[0]
    shown = shell.run("tasks")
    assert "ナナ" in shown
    assert "pending 1" in shown
    assert "宛先" not in shown
    assert "宛先" in shell.run("tasks", "--language", "ja")
    assert "pending 1" in shell.run("status")
    overview = shell.ask("status")
    assert overview["health"]["counts"]["pending"] == 1
    assert overview["agents"] == shell.ask("get-all-status")


@posix
@pytest.mark.req("core:32")
def test_a_person_at_a_terminal_approves_and_the_record_says_so(shell: Shell) -> None:
    task_id = shell.ask("dispatch", "coder", RISKY)["task_id"]
    assert shell.ask("receive", "coder")["task"] is None
    assert shell.ask("approve", task_id, code=1)["error"]["code"] == "refused"
    assert shell.ask("tasks")["tasks"][0]["state"] == "pending_approval"
    answer, above = shell.person("approve", task_id, types=b"n\n")
    assert answer is None
    assert f"> {RISKY}" in above
    assert shell.ask("tasks")["tasks"][0]["state"] == "pending_approval"
    answer, above = shell.person("approve", task_id, "--note", "backed up", types=b"y\n")
    assert answer["task_state"] == "pending"
    assert f"> {RISKY}" in above
    task = json.loads(shell.ask("get", task_id)["task_json"])
    approval = task["approval"]
    assert (approval["state"], approval["channel"]) == ("granted", "cli")
    assert approval["by"]
    assert approval["at"]
    assert len(approval["sha256"]) == 64
    assert shell.ask("receive", "coder")["task"]["task_id"] == task_id


@posix
@pytest.mark.req("core:37")
def test_only_a_person_at_a_terminal_ends_a_stop(shell: Shell) -> None:
    shell.run("stop", "looks wrong")
    error = shell.ask("dispatch", "coder", "x", code=1)["error"]
    assert error["code"] == "stopped"
    assert "looks wrong" in error["message"]
    assert "緊急停止中" in shell.run("receive", "coder", "--language", "ja", code=1)
    assert shell.ask("resume", code=1)["error"]["code"] == "refused"
    assert shell.person("resume")[0]["resumed"] is True
    assert shell.ask("dispatch", "coder", "x")["status"] == "pending"


def test_reap_says_what_it_did(shell: Shell) -> None:
    assert shell.ask("reap")["recovered"] == []
    assert shell.run("reap").strip() == "Nothing to do."
    assert shell.run("reap", "--language", "ja").strip() == "することはありませんでした。"


def test_an_agents_shell_speaks_for_that_agent(shell: Shell) -> None:
    shell.environ["AGENT_BUS_AGENT"] = "coder"
    task_id = shell.ask("dispatch", "nana", "x")["task_id"]
    assert json.loads(shell.ask("get", task_id)["task_json"])["from"] == "coder"
    assert shell.ask("dispatch", "nana", "x", "--from", "boss", code=1)["error"]["code"] == "not_yours"


def test_a_waiting_receive_gets_what_another_process_dispatches(shell: Shell) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-c", MAIN, "receive", "coder", "--wait", "30", "--json"],
        env=shell.environ,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    task_id = shell.ask("dispatch", "coder", "x")["task_id"]
    out, _ = waiting.communicate(timeout=BOUND_S)
    assert json.loads(out)["task"]["task_id"] == task_id
