"""How a launcher's program is found, on POSIX and on Windows (docs/launcher.md "Programs")."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_bus.errors import BusError
from agent_bus.launchers import LaunchError, executable, registry
from agent_bus.launchers.executable import Files, find_posix, find_windows
from agent_bus.launchers.windows import command_line

CLAUDE = registry.load("claude")
PACKAGE = "@anthropic-ai/claude-code"
WINDOWS = {
    "Path": r'C:\Windows;"C:\Program Files\node";C:\npm',
    "APPDATA": r"C:\Users\a\AppData\Roaming",
    "USERPROFILE": r"C:\Users\a",
    "ComSpec": r"C:\Windows\System32\cmd.exe",
}


def disk(files: Mapping[str, str]) -> Files:
    """A disk with these files; Windows' names have no case, but these are asked for as they are."""

    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    return Files(files.__contains__, read)


def make_program(path: Path) -> str:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX's rules on POSIX's disk")


@needs_posix
def test_a_path_with_spaces_is_one_path(tmp_path: Path) -> None:
    path = make_program(tmp_path / "Program Files" / "my claude")
    assert executable.resolve(CLAUDE, path, "coder") == (path,)
    assert executable.resolve(CLAUDE, [path, "--fixed", "a b"], "coder") == (path, "--fixed", "a b")


@needs_posix
def test_without_a_setting_the_usual_name_is_looked_up_in_path_then_in_the_usual_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_program(tmp_path / "relative" / "claude")
    env = {"HOME": str(tmp_path), "PATH": f"relative:{tmp_path}/one:{tmp_path}/two"}
    local = make_program(tmp_path / ".local" / "bin" / "claude")
    assert executable.resolve(CLAUDE, "", "coder", env) == (local,)
    second = make_program(tmp_path / "two" / "claude")
    assert executable.resolve(CLAUDE, "", "coder", env) == (second,)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "claude").write_text("not executable")
    assert executable.resolve(CLAUDE, "", "coder", env) == (second,)


@needs_posix
def test_a_name_as_command_is_looked_up_and_a_home_path_expanded(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    mine = make_program(tmp_path / "bin" / "my-claude")
    assert executable.resolve(CLAUDE, "my-claude", "coder", env) == (mine,)
    assert executable.resolve(CLAUDE, ["~/bin/my-claude"], "coder", env) == (mine,)


@pytest.mark.parametrize("command", ["", "/no/such/claude", "no-such-claude", "./claude", ["relative/claude"]])
def test_what_is_not_there_is_named_with_the_line_to_write(command: str | list[str], tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as error:
        executable.resolve(CLAUDE, command, "coder", {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert (error.value.kind, error.value.code) == ("not_found", "not_found")
    assert (command if isinstance(command, str) else command[0]) in error.value.message
    assert 'command = "' in error.value.hint
    assert "[agents.coder]" in error.value.hint


def test_a_program_without_a_usual_name_must_be_named() -> None:
    with pytest.raises(BusError, match="none is named"):
        executable.resolve(registry.load("command"), [], "checker", {})


def test_the_first_of_several_usual_names_wins() -> None:
    files = disk({"/b/agent": "", "/a/other": ""})
    assert find_posix("agent", {"PATH": "/a:/b"}, files) == ("/b/agent",)


def test_on_windows_an_exe_anywhere_goes_before_a_shim() -> None:
    files = disk({r"C:\npm\claude.cmd": "", r"C:\Users\a\.local\bin\claude.exe": ""})
    assert find_windows("claude", WINDOWS, files, PACKAGE) == (r"C:\Users\a\.local\bin\claude.exe",)


@pytest.mark.parametrize("entry", [{"claude": "bin/claude.exe"}, "bin/claude.exe"])
def test_an_exe_behind_an_npm_shim_is_started_itself(entry: object) -> None:
    folder = rf"C:\npm\node_modules\{PACKAGE.replace('/', chr(92))}"
    described = json.dumps({"bin": entry})
    files = disk({r"C:\npm\claude.cmd": "", rf"{folder}\package.json": described, rf"{folder}\bin\claude.exe": ""})
    assert find_windows("claude", WINDOWS, files, PACKAGE) == (rf"{folder}\bin\claude.exe",)


def test_a_script_behind_an_npm_shim_is_started_by_node() -> None:
    folder = r"C:\npm\node_modules\@openai\codex"
    files = disk(
        {
            r"C:\npm\codex.cmd": "",
            rf"{folder}\package.json": '{"bin": {"codex": "./bin/codex.js"}}',
            rf"{folder}\bin\codex.js": "",
            r"C:\Program Files\node\node.exe": "",
        }
    )
    node = r"C:\Program Files\node\node.exe"
    assert find_windows("codex", WINDOWS, files, "@openai/codex") == (node, rf"{folder}\bin\codex.js")


@pytest.mark.parametrize(
    "described",
    ["", "[]", "{", '{"bin": 7}', '{"bin": {"claude": "../../../evil.exe"}}', '{"bin": {"claude": "cli.ts"}}'],
)
def test_a_package_that_cannot_be_told_leaves_the_shim_itself(described: str) -> None:
    folder = rf"C:\npm\node_modules\{PACKAGE.replace('/', chr(92))}"
    files = disk({r"C:\npm\claude.cmd": "", rf"{folder}\package.json": described, r"C:\npm\evil.exe": ""})
    found = find_windows("claude", WINDOWS, files, PACKAGE)
    assert found == (r"C:\Windows\System32\cmd.exe", "/d", "/s", "/c", r"C:\npm\claude.cmd")


def test_on_windows_a_file_without_extension_or_a_script_of_powershell_is_never_started() -> None:
    files = disk({r"C:\npm\claude": "", r"C:\npm\claude.ps1": ""})
    assert find_windows("claude", WINDOWS, files, PACKAGE) == ()


def test_on_windows_a_path_may_be_written_with_either_slash_and_with_or_without_extension() -> None:
    files = disk({r"C:\Program Files\x\claude.exe": "", "C:/Program Files/x\\claude.exe": ""})
    assert find_windows(r"C:\Program Files\x\claude.exe", WINDOWS, files) == (r"C:\Program Files\x\claude.exe",)
    assert find_windows("C:/Program Files/x/claude", WINDOWS, files) == ("C:/Program Files/x\\claude.exe",)


def test_a_command_line_for_cmd_stands_in_one_pair_of_quotes() -> None:
    argv = (
        r"C:\Windows\System32\cmd.exe",
        "/d",
        "/s",
        "/c",
        r"C:\Program Files\npm\claude.cmd",
        "-p",
        "",
        "--x",
        "a b",
    )
    line = command_line(argv)
    assert line == r'C:\Windows\System32\cmd.exe /d /s /c ""C:\Program Files\npm\claude.cmd" -p "" --x "a b""'


@pytest.mark.parametrize("bad", list('&<>^%!"|\n\r'))
def test_what_cmd_would_read_as_its_own_is_refused(bad: str) -> None:
    with pytest.raises(LaunchError) as error:
        command_line((r"C:\Windows\cmd.exe", "/d", "/s", "/c", r"C:\x.cmd", f"a{bad}b"))
    assert error.value.kind == "config"


def test_other_programs_get_their_words_as_windows_quotes_them() -> None:
    assert command_line(("C:\\x y.exe", 'say "hi"', "%PATH%")) == '"C:\\x y.exe" "say \\"hi\\"" %PATH%'


def test_the_disk_is_asked_for_files_only(tmp_path: Path) -> None:
    (tmp_path / "claude").mkdir()
    with pytest.raises(LaunchError):
        executable.resolve(CLAUDE, str(tmp_path / "claude"), "coder", os.environ)
