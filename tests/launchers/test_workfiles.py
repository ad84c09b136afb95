"""Files beside a run: written for their owner only, hidden from git, taken away again."""

import json
import shlex
import stat
import sys
from pathlib import Path

import pytest

from agent_bus.errors import BusError
from agent_bus.launchers import hook_settings, workfiles

RUN = "r-t-20260307-101500-001-1"
needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links are POSIX's")


def test_a_copy_of_the_prompt_is_written_and_taken_away_with_its_folder(tmp_path: Path) -> None:
    path = workfiles.copy_path(tmp_path, RUN)
    workfiles.write({path: "one\n日本\n"})
    workfiles.write({path: "two\n"})
    assert path.read_bytes() == b"two\n"
    workfiles.remove_copy(tmp_path, RUN)
    workfiles.remove_copy(tmp_path, RUN)
    assert list(tmp_path.iterdir()) == []


def test_other_runs_copies_stay(tmp_path: Path) -> None:
    workfiles.write({workfiles.copy_path(tmp_path, name): "x" for name in (RUN, "r-other-1")})
    workfiles.remove_copy(tmp_path, RUN)
    assert workfiles.copy_path(tmp_path, "r-other-1").exists()


@needs_posix
def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    path = workfiles.copy_path(tmp_path, RUN)
    workfiles.write({path: "x"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@needs_posix
def test_no_link_in_the_work_folder_is_followed(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    (work / workfiles.FOLDER).symlink_to(outside)
    with pytest.raises(BusError) as error:
        workfiles.write({workfiles.copy_path(work, RUN): "x"})
    assert error.value.code == "refused"
    assert list(outside.iterdir()) == []
    (outside / f"{RUN}.md").touch()
    workfiles.remove_copy(work, RUN)
    assert (outside / f"{RUN}.md").exists()


@needs_posix
def test_a_link_in_the_files_place_is_replaced_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    path = workfiles.copy_path(tmp_path, RUN)
    path.parent.mkdir()
    path.symlink_to(target)
    workfiles.write({path: "x"})
    assert target.read_text() == "precious"
    assert path.read_text() == "x"


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BusError) as error:
        workfiles.write({tmp_path / "file" / "x": "x"})
    assert error.value.code == "unavailable"


@pytest.mark.parametrize("before", [None, "", "*.log", "*.log\n"])
def test_the_folder_is_hidden_from_git_once(tmp_path: Path, before: str | None) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    exclude = tmp_path / ".git" / "info" / "exclude"
    if before is not None:
        exclude.write_text(before)
    for _ in range(2):
        workfiles.write({workfiles.copy_path(tmp_path, RUN): "x"})
    assert exclude.read_text().splitlines() == [*(before or "").split(), "/.agent-bus/"]


def test_a_further_work_tree_uses_the_list_of_its_repository(tmp_path: Path) -> None:
    linked = tmp_path / "main" / ".git" / "worktrees" / "two"
    linked.mkdir(parents=True)
    (linked / "commondir").write_text("../..\n")
    work = tmp_path / "two"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {linked}\n")
    workfiles.hide_from_git(work)
    assert (tmp_path / "main" / ".git" / "info" / "exclude").read_text() == "/.agent-bus/\n"


def test_a_folder_without_git_gets_none(tmp_path: Path) -> None:
    workfiles.hide_from_git(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_stop_hook_is_one_command_line_for_the_shell() -> None:
    argv = ["/opt/my bus/agent-bus", "hook", "stop"]
    (group,) = json.loads(hook_settings.stop_hook(argv))["hooks"]["Stop"]
    assert shlex.split(group["hooks"][0]["command"]) == argv
    windows = json.loads(hook_settings.stop_hook([r"C:\P F\agent-bus.exe", "hook"], windows=True))
    assert windows["hooks"]["Stop"][0]["hooks"][0]["command"] == "'C:/P F/agent-bus.exe' hook"
