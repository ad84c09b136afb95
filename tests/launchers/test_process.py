"""Starting a run: a session of its own, files instead of pipes, nothing inherited."""

import os
import stat
import sys
from pathlib import Path

import psutil
import pytest

from agent_bus.launchers import LaunchError, output, process
from tests.launchers.conftest import Runs, wait_until

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="sessions and signals are POSIX's")


def finish(runs: Runs, program: str, stdin: Path | None = None) -> tuple[int, int]:
    """Runs a program to its end; (exit code, signal)."""
    tree = runs.start(program, stdin=stdin)
    wait_until(lambda: tree.poll() is not None)
    status = tree.poll()
    assert status is not None
    return status


def test_the_prompt_file_is_standard_input_and_ends_by_itself(runs: Runs) -> None:
    prompt = runs.folder / "1.prompt"
    text = '--flag\n"quoted" & | < > %PATH% $(x) `y` 日本語\n'
    prompt.write_text(text, encoding="utf-8", newline="\n")
    program = "data = sys.stdin.buffer.read()\nsys.stdout.buffer.write(data)\nsys.exit(len(data))\n"
    assert finish(runs, program, stdin=prompt) == (len(text.encode()), 0)
    assert runs.log.read_bytes() == text.encode()


def test_without_a_prompt_file_there_is_nothing_to_read(runs: Runs) -> None:
    assert finish(runs, "sys.exit(len(sys.stdin.buffer.read()) + 3)\n") == (3, 0)


@needs_posix
def test_the_prompt_file_cannot_be_written_through_standard_input(runs: Runs) -> None:
    prompt = runs.folder / "1.prompt"
    prompt.write_text("prompt")
    program = "try:\n    os.write(0, b'x')\nexcept OSError:\n    sys.exit(7)\n"
    assert finish(runs, program, stdin=prompt) == (7, 0)


def test_both_outputs_are_appended_to_what_the_log_holds(runs: Runs) -> None:
    output.append(runs.log, b"header\n")
    finish(runs, "os.write(1, b'out\\xff\\n')\nos.write(2, b'err\\n')\n")
    assert runs.log.read_bytes() == b"header\nout\xff\nerr\n"


@needs_posix
def test_the_log_is_for_its_owner_only(runs: Runs) -> None:
    finish(runs, "")
    assert stat.S_IMODE(runs.log.stat().st_mode) == 0o600


@needs_posix
def test_a_run_has_a_session_of_its_own_and_no_handle_of_ours(runs: Runs) -> None:
    secret = os.open(runs.folder / "secret", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(secret, True)
    try:
        program = f"""
import json
held = [fd for fd in range(3, 200) if os.path.exists(f"/dev/fd/{{fd}}")]
try:
    os.fstat({secret})
    held.append("secret")
except OSError:
    pass
print(json.dumps([os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), "secret" in held]))
"""
        assert finish(runs, program) == (0, 0)
    finally:
        os.close(secret)
    assert runs.log.read_text() == "[true, true, false]\n"


def test_the_environment_is_exactly_the_one_given(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import os; print(sorted(n for n in os.environ if n.startswith(('A', 'X_'))))"]
    env = {"X_ONE": "1", "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}
    child = process.spawn(argv, cwd=tmp_path, env=env, stdin=None, log=tmp_path / "log")
    wait_until(child.poll)
    process.forget(child.pid, child.pid_started)
    assert (tmp_path / "log").read_text().strip() == "['X_ONE']"


def test_the_exit_code_is_told_again_until_it_is_forgotten(runs: Runs) -> None:
    tree = runs.start("sys.exit(5)\n")
    wait_until(lambda: tree.poll() is not None)
    assert tree.poll() == tree.poll() == (5, 0)
    assert process.is_ours(tree.pid, tree.pid_started)
    assert process.exit_status(tree.pid, "2001-01-01T00:00:00.000Z") is None
    process.forget(tree.pid, tree.pid_started)
    assert tree.poll() is None
    assert not psutil.pid_exists(tree.pid)


@needs_posix
def test_a_signal_shows_as_such_and_as_the_shells_exit_code(runs: Runs) -> None:
    assert finish(runs, "os.kill(os.getpid(), signal.SIGTERM)\n") == (143, 15)


def test_a_running_child_is_not_forgotten(runs: Runs) -> None:
    tree = runs.start("sleep()\n")
    process.forget(tree.pid, tree.pid_started)
    assert process.is_ours(tree.pid, tree.pid_started)


@pytest.mark.parametrize("argv", [["/no/such/program"], [os.getcwd()], ["/bin/\0"]])
def test_what_cannot_be_started_is_a_launch_error_in_words(argv: list[str], tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as error:
        process.spawn(argv, cwd=tmp_path, env={}, stdin=None, log=tmp_path / "log")
    assert error.value.kind == "spawn"


def test_a_work_folder_or_prompt_that_is_gone_is_a_launch_error(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", ""]
    with pytest.raises(LaunchError):
        process.spawn(argv, cwd=tmp_path / "gone", env={}, stdin=None, log=tmp_path / "log")
    with pytest.raises(LaunchError):
        process.spawn(argv, cwd=tmp_path, env={}, stdin=tmp_path / "gone", log=tmp_path / "log")


def test_50_mb_of_any_bytes_run_through_and_are_cut(runs: Runs) -> None:
    program = """
block = (b"x" * 1023 + b"\\n") * 1024
for _ in range(40):
    os.write(1, block)
os.write(1, b"y" * (10 * 1024 * 1024) + b"\\n\\xff\\xfe\\x00\\n")
os.write(1, b'{"type": "result", "session_id": "s-1", "is_error": false}\\n')
"""
    assert finish(runs, program) == (0, 0)
    assert runs.log.stat().st_size > 50 * 1024 * 1024
    assert output.cut(runs.log, 8 * 1024 * 1024)
    assert runs.log.stat().st_size < 8 * 1024 * 1024 + 100
    from agent_bus.launchers import registry

    found = registry.load("claude").read(output.ends(runs.log, 8 * 1024 * 1024), 0, 0)
    assert (found.session_id, found.finished, found.failed) == ("s-1", True, False)
