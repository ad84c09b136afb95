"""Files of a run: those a launcher asks for, and the copy of the prompt for CLIs that take none as standard input.

The copy lies in the work folder, as some CLIs read nowhere else. That folder is other people's: no link in it is
followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent_bus.errors import BusError
from agent_bus.launchers import Command, Start

FOLDER = ".agent-bus"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def sentence(start: Start) -> str:
    """The fixed words that stand in argv instead of the prompt; the path is relative to the work folder."""
    return f"Read the file {FOLDER}/{start.run_id}.md and do what it says."


def by_file(start: Start, *argv: str) -> Command:
    """The command of a CLI whose prompt is a file named by its last word. Reads the prompt file.

    Raises:
        OSError: the prompt file is not there yet.
    """
    copy = {copy_path(start.work_dir, start.run_id): start.prompt_file.read_text(encoding="utf-8")}
    return Command((*argv, sentence(start)), stdin_prompt=False, files=copy)


def copy_path(work_dir: Path, run_id: str) -> Path:
    """Where a run's copy of the prompt lies."""
    return work_dir / FOLDER / f"{run_id}.md"


def write(files: Mapping[Path, str]) -> None:
    """Writes files with mode 0600, UTF-8 and LF, over what an earlier start of the same run left.

    Raises:
        BusError: `refused` if the folder is a link; `unavailable` in the system's words.
    """
    for path, text in files.items():
        if path.parent.is_symlink():
            raise BusError("refused", f"{path.parent} is a link; the prompt is not written there.", "Remove the link.")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                path.unlink()
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise BusError("unavailable", f"{path.name} could not be written: {error}.") from error
        if path.parent.name == FOLDER:
            hide_from_git(path.parent.parent)


def remove_copy(work_dir: Path, run_id: str) -> None:
    """Takes a run's copy of the prompt away, and the folder once it is empty."""
    path = copy_path(work_dir, run_id)
    with suppress(OSError):
        if not path.parent.is_symlink():
            path.unlink(missing_ok=True)
            path.parent.rmdir()


def hide_from_git(work_dir: Path) -> None:
    """Adds our folder to the repository's own exclude list, if the work folder is the top of one."""
    line = f"/{FOLDER}/"
    with suppress(OSError, UnicodeDecodeError):
        git = _git_folder(work_dir)
        if git is None:
            return
        exclude = git / "info" / "exclude"
        exclude.parent.mkdir(exist_ok=True)
        known = exclude.read_text(encoding="utf-8") if exclude.exists() else ""
        if line not in known.splitlines():
            with open(exclude, "a", encoding="utf-8", newline="\n") as file:
                file.write(f"{'' if not known or known.endswith(chr(10)) else chr(10)}{line}\n")


def _git_folder(work_dir: Path) -> Path | None:
    """The folder that holds `info/exclude`: of a further work tree it is that of the main one."""
    git = work_dir / ".git"
    if git.is_dir():
        return git
    if not git.is_file():
        return None
    named = git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    linked = work_dir / named
    common = linked / "commondir"
    return linked / common.read_text(encoding="utf-8").strip() if common.is_file() else linked
