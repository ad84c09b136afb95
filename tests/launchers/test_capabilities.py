"""Which flags an executable takes: probed once, kept, dropped, asked again when it changes."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_bus import host
from agent_bus.launchers import Launcher, LaunchError, registry
from agent_bus.launchers.capabilities import capabilities, check_required, drop, flags_in, run_briefly
from agent_bus.store.layout import Layout
from tests.launchers.conftest import lives

HELP = "Usage: x [options]\\n  -r, --resume [value]  Resume\\n  --allowedTools, --allowed-tools <t...>  (--print)\\n"
PROGRAM = """
import os, sys
with open({calls!r}, "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
print("2.1.332 (Stand-in)" if "--version" in sys.argv else "{help}")
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A bus folder."""
    (tmp_path / "bus").mkdir()
    made = Layout.of(tmp_path / "bus")
    made.make(datetime(2026, 3, 7, tzinfo=UTC))
    return made


def make_program(folder: Path, help_text: str = HELP) -> tuple[str, ...]:
    """A stand-in that counts its calls."""
    script = folder / "stand in.py"
    script.write_text(PROGRAM.format(calls=str(folder / "calls"), help=help_text))
    return (sys.executable, str(script))


def calls(folder: Path) -> list[str]:
    """The arguments of all calls."""
    return (folder / "calls").read_text().splitlines()


def make_launcher(**more: Any) -> Launcher:
    """A launcher that wants these flags."""
    flags = {"required_flags": frozenset({"--resume"}), "optional_flags": frozenset({"--allowedTools"})}
    return cast("Launcher", SimpleNamespace(**{"name": "x", "help_words": (), **flags, **more}))


def test_an_executable_is_asked_once_for_its_version_and_its_flags(layout: Layout, tmp_path: Path) -> None:
    executable, launcher = make_program(tmp_path), make_launcher(help_words=("exec",))
    found = capabilities(layout, executable, launcher, os.environ)
    assert found.version == "2.1.332"
    assert {"-r", "--resume", "--allowedTools", "--allowed-tools", "--print"} == found.flags
    assert capabilities(layout, executable, launcher, os.environ) == found
    assert calls(tmp_path) == ["--version", "exec --help"]
    assert (layout.state / "run" / f"caps-{host.host_id()}.json").exists()


def test_a_changed_executable_is_asked_again(layout: Layout, tmp_path: Path) -> None:
    executable = make_program(tmp_path)
    capabilities(layout, executable, make_launcher(), os.environ)
    os.utime(executable[1], (1_800_000_000, 1_800_000_000))
    capabilities(layout, executable, make_launcher(), os.environ)
    make_program(tmp_path, "--other")
    os.utime(executable[1], (1_800_000_000, 1_800_000_000))
    assert capabilities(layout, executable, make_launcher(), os.environ).flags == {"--other"}
    assert len(calls(tmp_path)) == 6


def test_a_refused_option_is_dropped_until_the_executable_changes(layout: Layout, tmp_path: Path) -> None:
    executable, launcher = make_program(tmp_path), make_launcher()
    check_required(capabilities(layout, executable, launcher, os.environ), launcher, executable)
    drop(layout, executable, "--allowedTools")
    found = capabilities(layout, executable, launcher, os.environ)
    assert "--allowedTools" not in found.flags
    check_required(found, launcher, executable)
    drop(layout, executable, "--resume")
    with pytest.raises(LaunchError, match=r"2\.1\.332 does not know --resume") as error:
        check_required(capabilities(layout, executable, launcher, os.environ), launcher, executable)
    assert error.value.kind == "too_old"
    assert len(calls(tmp_path)) == 2
    os.utime(executable[1], (1_800_000_000, 1_800_000_000))
    assert "--resume" in capabilities(layout, executable, launcher, os.environ).flags


def test_a_probe_that_says_nothing_is_not_kept(layout: Layout, tmp_path: Path) -> None:
    executable = make_program(tmp_path, "nothing")
    for _ in range(2):
        with pytest.raises(LaunchError):
            check_required(capabilities(layout, executable, make_launcher(), os.environ), make_launcher(), executable)
    assert len(calls(tmp_path)) == 4


@pytest.mark.parametrize("stored", [b"{", b"[]", b'{"executables": 7}', b'{"executables": {"x": {"flags": 1}}}'])
def test_a_cache_that_cannot_be_read_is_none(layout: Layout, tmp_path: Path, stored: bytes) -> None:
    (layout.state / "run").mkdir(exist_ok=True)
    (layout.state / "run" / f"caps-{host.host_id()}.json").write_bytes(stored)
    executable = make_program(tmp_path)
    assert "--resume" in capabilities(layout, executable, make_launcher(), os.environ).flags


def test_a_launcher_without_flags_asks_nothing(layout: Layout, tmp_path: Path) -> None:
    executable = make_program(tmp_path)
    found = capabilities(layout, executable, registry.load("command"), os.environ)
    check_required(found, registry.load("command"), executable)
    assert not (tmp_path / "calls").exists()


def test_a_probe_has_nothing_to_read(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"]
    assert run_briefly(argv, env=os.environ) == (0, b"0" + os.linesep.encode())


def test_a_probe_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    program = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(600)"
    code, said = run_briefly([sys.executable, "-c", program], env=os.environ, timeout_s=3.0)
    assert code is None
    assert said
    assert not lives(int(said))


def test_a_probe_that_says_too_much_is_ended(tmp_path: Path) -> None:
    program = "import os, time\nfor _ in range(4): os.write(1, b'x' * 65536)\ntime.sleep(20)"
    code, said = run_briefly([sys.executable, "-c", program], env=os.environ, timeout_s=50.0, limit=100_000)
    assert code is None
    assert said == b"x" * 100_000


def test_flags_are_words_that_begin_with_dashes() -> None:
    text = "-p, --print  a-b --no-x=[y] (--z) e--x ---- 5-3 -1 --\n--end."
    assert flags_in(text) == {"-p", "--print", "--no-x", "--z", "--end"}
