"""The command line as a process: terminals, signals, pipes, what it imports, and the verbs that only it has."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

BOUND_S = 30
HEAVY = ("mcp", "starlette", "uvicorn", "anyio", "watchdog", "httpx", "tomlkit")
TOYS = """
import sys
from pydantic import BaseModel
from agent_bus.bus import Bus
from agent_bus.commands import command
class Done(BaseModel):
    task_id: str
    person: bool
    role: str
@command(group="toys", writes=True, people=True)
def toy_approve(bus: Bus, task_id: str) -> Done:
    "Approve."
    return Done(task_id=task_id, person=bus.caller.person, role=bus.caller.role)
"""
MAIN = "import sys; from agent_bus.faces.cli import main; sys.exit(main())"
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals and signals")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment without anything of this machine's own bus."""
    config = tmp_path / "bus.toml"
    config.write_text("")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_BUS_", "LC_", "LANG"))}
    own = {"STATE_HOME": str(tmp_path / "state"), "CONFIG": str(config), "ROOT": str(tmp_path / "bus")}
    here = str(Path(__file__).parents[2])
    return kept | {f"AGENT_BUS_{k}": v for k, v in own.items()} | {"PYTHONPATH": here, "COLUMNS": "100"}


@pytest.fixture
def bus_root(environ: dict[str, str]) -> Path:
    done = run(environ, "init")
    assert done.returncode == 0, done.stderr
    return Path(environ["AGENT_BUS_ROOT"])


def run(environ: dict[str, str], *words: str, code: str = MAIN) -> subprocess.CompletedProcess[str]:
    """Runs the command line without a terminal."""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=BOUND_S,
        check=False,
    )


def at_terminal(environ: dict[str, str], *words: str, code: str = MAIN) -> tuple[int, str]:
    """Runs the command line at a terminal of its own; gives the exit code and what was seen."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 1)
        try:
            chunk = os.read(ours, 65_536) if ready else b""
        except OSError:  # Linux: the other end is closed
            break
        if ready and not chunk:
            break
        seen += chunk
    os.close(ours)
    return process.wait(BOUND_S), seen.decode()


def happen(environ: dict[str, str], *agents: str) -> None:
    """Another process writes a line of the journal for each agent."""
    told = """
import os, sys
from agent_bus.app import open_bus
from agent_bus.settings import Settings
bus = open_bus(Settings(root=os.environ["AGENT_BUS_ROOT"]))
for agent in sys.argv[1:]:
    bus.journal.write(bus.now(), {"at": bus.stamp(), "event": "task.dispatched", "agent": agent})
"""
    done = run(environ, *agents, code=told)
    assert done.returncode == 0, done.stderr


def lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    yield from process.stdout


@posix
@pytest.mark.usefixtures("bus_root")
def test_a_person_at_a_terminal_may_use_the_verbs_for_people(environ: dict[str, str]) -> None:
    code, seen = at_terminal(environ, "toy-approve", "t-1", "--json", code=TOYS + MAIN)
    assert code == 0, seen
    assert json.loads(seen) == {"task_id": "t-1", "person": True, "role": "operator"}


@posix
@pytest.mark.usefixtures("bus_root")
@pytest.mark.parametrize("name", ["AGENT_BUS_AGENT", "AGENT_BUS_RUN_ID"])
def test_an_agent_is_no_person_even_at_a_terminal(environ: dict[str, str], name: str) -> None:
    code, seen = at_terminal(environ | {name: "x1"}, "toy-approve", "t-1", code=TOYS + MAIN)
    assert code == 1
    assert "refused" in seen
    assert name in seen


@posix
@pytest.mark.usefixtures("bus_root")
def test_a_process_below_a_run_is_no_person_though_it_hides_its_variables(environ: dict[str, str]) -> None:
    hide = "import os, subprocess, sys; os.environ.pop('AGENT_BUS_RUN_ID'); "
    below = f"sys.exit(subprocess.call([sys.executable, '-c', {TOYS + MAIN!r}, *sys.argv[1:]]))"
    code, seen = at_terminal(environ | {"AGENT_BUS_RUN_ID": "r-x1"}, "toy-approve", "t-1", code=hide + below)
    assert code == 1
    assert "started by the run r-x1" in seen


@posix
@pytest.mark.usefixtures("bus_root")
def test_only_a_terminal_gets_colours_and_no_color_takes_them(environ: dict[str, str]) -> None:
    _, coloured = at_terminal(environ, "tail", "--root", "nowhere")
    _, plain = at_terminal(environ | {"NO_COLOR": "1"}, "tail", "--root", "nowhere")
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain
    assert "\x1b[" not in run(environ, "tail", "--root", "nowhere").stderr


@posix
@pytest.mark.usefixtures("bus_root")
@pytest.mark.parametrize("words", [["tail", "--follow"], ["tail", "-f", "--json"]])
def test_an_interrupt_ends_a_wait_quietly(environ: dict[str, str], words: list[str]) -> None:
    happen(environ, "first")
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a background job ignores it
    process = subprocess.Popen(
        [sys.executable, "-c", heeding + MAIN, *words],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    shown = lines_of(process)
    assert "first" in next(shown)
    happen(environ, "second")
    assert "second" in next(shown)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=BOUND_S)
    assert process.returncode == 130
    assert err.strip() == ""


@pytest.mark.usefixtures("bus_root")
def test_a_reader_that_goes_away_is_no_fault(environ: dict[str, str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "--help"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    process.wait(BOUND_S)
    assert "Traceback" not in err
    assert "internal" not in err


@pytest.mark.usefixtures("bus_root")
@pytest.mark.parametrize("words", [["tail"], ["init"], ["--help"], ["call", "--help"], ["status"], ["tasks"]])
def test_no_verb_pays_for_imports_that_it_does_not_need(environ: dict[str, str], words: list[str]) -> None:
    told = "from agent_bus.faces.cli import main; import sys; code = main(); "
    told += f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    done = run(environ, *words, code=told)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_init_makes_a_folder_and_says_how_to_go_on(environ: dict[str, str], tmp_path: Path) -> None:
    root = tmp_path / "My Vault" / "09_AgentSync"
    refused = run(environ, "init", str(root))
    assert refused.returncode == 1
    assert "not_found" in refused.stderr
    assert "-p" in refused.stderr
    done = run(environ, "init", "-p", str(root))
    assert done.returncode == 0
    assert (root / "inbox").is_dir()
    assert (root / ".bus" / "format.json").is_file()
    quoted = f'"{root}"' if sys.platform == "win32" else f"'{root}'"
    for following in ("install all", "doctor", "status"):
        assert f"agent-bus {following} --root {quoted}" in done.stdout


def test_init_changes_nothing_that_is_there(environ: dict[str, str], bus_root: Path) -> None:
    before = {p: p.read_bytes() for p in bus_root.rglob("*") if p.is_file()}
    (bus_root / "note.md").write_text("mine")
    again = json.loads(run(environ, "init", "--json").stdout)
    assert again["made"] == []
    assert {p: p.read_bytes() for p in before} == before
    (bus_root / "waiting").rmdir()
    assert json.loads(run(environ, "init", "--json").stdout)["made"] == ["waiting/"]


def test_init_takes_a_folder_that_the_seed_made_and_a_root_option(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "old" / "inbox" / "coder").mkdir(parents=True)
    done = run(environ, "init", "--root", str(tmp_path / "old"), "--language", "ja")
    assert done.returncode == 0
    assert "補いました" in done.stdout
    assert "inbox/coder" not in done.stdout


def test_init_on_a_host_that_does_not_own_the_bus_is_refused(environ: dict[str, str], bus_root: Path) -> None:
    path = bus_root / ".bus" / "format.json"
    record = json.loads(path.read_text())
    record["owner"] = {"host": "h-else", "name": "elsewhere"}
    path.write_text(json.dumps(record))
    (bus_root / "waiting").rmdir()
    done = run(environ, "init")
    assert done.returncode == 1
    assert "elsewhere" in done.stderr
    assert not (bus_root / "waiting").exists()


def test_init_without_a_place_is_wrong_use_and_a_file_is_a_conflict(environ: dict[str, str], tmp_path: Path) -> None:
    del environ["AGENT_BUS_ROOT"]
    assert run(environ, "init").returncode == 2
    (tmp_path / "file").write_text("")
    assert "conflict" in run(environ, "init", str(tmp_path / "file")).stderr


def test_without_a_bus_folder_the_error_says_how_to_make_one(environ: dict[str, str], tmp_path: Path) -> None:
    done = run(environ, "tail", "--root", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "agent-bus init --root" in done.stderr
    del environ["AGENT_BUS_ROOT"]
    assert "--root" in run(environ, "tail").stderr


@pytest.mark.usefixtures("bus_root")
def test_tail_shows_the_newest_lines_and_those_after_an_id(environ: dict[str, str]) -> None:
    assert run(environ, "tail").stdout.strip() == "Nothing has happened yet."
    happen(environ, "a0", "a1", "a2", "a3", "a4")
    lines = [json.loads(line) for line in run(environ, "tail", "-n", "2", "--json").stdout.splitlines()]
    assert [line["agent"] for line in lines] == ["a3", "a4"]
    after = run(environ, "tail", "--since", lines[0]["id"]).stdout.splitlines()
    assert len(after) == 1
    assert "a4" in after[0]


@pytest.mark.usefixtures("bus_root")
def test_japanese_passes_a_process_without_a_locale(environ: dict[str, str]) -> None:
    happen(environ, "ナナ")
    bare = environ | {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    assert json.loads(run(bare, "tail", "--json").stdout)["agent"] == "ナナ"


def test_mcp_hands_its_options_to_the_server(environ: dict[str, str]) -> None:
    fake = """
import sys, types
server = types.ModuleType("agent_bus.faces.serve")
def serve_mcp(settings, **options):
    print(sorted(options.items()))
    return 7
server.serve_mcp = serve_mcp
sys.modules["agent_bus.faces.serve"] = server
"""
    words = [
        "--agent",
        "nana",
        "--tools",
        "core,queue",
        "--role",
        "operator",
        "--port",
        "0",
        "--transport",
        "http",
    ]
    done = run(environ, "mcp", *words, "--stateful", code=fake + MAIN)
    assert done.returncode == 7
    for part in (
        "('agent', 'nana')",
        "('port', 0)",
        "('role', 'operator')",
        "('stateful', True)",
        "('host', '127.0.0.1')",
    ):
        assert part in done.stdout
    assert run(environ, "mcp", "--role", "king").returncode == 2


def test_a_hook_is_answered_without_loading_the_command_line(environ: dict[str, str]) -> None:
    code = (
        "import sys; sys.argv[1:] = ['hook', 'stop']; from agent_bus.__main__ import main; code = main(); "
        "print(code, sorted({'click', 'pydantic', 'agent_bus.faces.cli'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        input="{}",
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert done.stdout == "0 []\n", done.stderr
