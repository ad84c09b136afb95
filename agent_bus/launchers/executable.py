"""Finding the program of a launcher: never by a shell, never a bare name (docs/launcher.md "Programs")."""

from __future__ import annotations

import json
import ntpath
import os
import posixpath
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_bus.launchers import Launcher, LaunchError
from agent_bus.launchers.windows import shim_prefix

POSIX_FOLDERS = (
    "~/.local/bin",
    "~/.claude/local",
    "~/.npm-global/bin",
    "~/.local/share/pnpm",
    "~/Library/pnpm",
    "~/.bun/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
)
"""Looked at after PATH: a daemon started from a desktop has a short one."""
WINDOWS_FOLDERS = (
    r"%USERPROFILE%\.local\bin",
    r"%APPDATA%\npm",
    r"%LOCALAPPDATA%\pnpm",
    r"%LOCALAPPDATA%\Programs",
    r"%LOCALAPPDATA%\Microsoft\WinGet\Links",
)


@dataclass(frozen=True)
class Files:
    """What is asked of the disk, so that the other system's rules can be tried on any."""

    is_program: Callable[[str], bool]
    read: Callable[[str], str]


def resolve(
    launcher: Launcher,
    command: str | Sequence[str],
    agent: str,
    environ: Mapping[str, str] | None = None,
    windows: bool = sys.platform == "win32",
) -> tuple[str, ...]:
    """The argv prefix that starts a launcher's program: an absolute path, with fixed first arguments.

    Args:
        command: the setting: "" = the launcher's usual executables; a text is one path or name, never split; an array
            is a path or name and fixed arguments.
        agent: for the error only.
        environ: where PATH and the home folder stand; None = this process's.

    Raises:
        LaunchError: `not_found` naming what was looked for, and the line of bus.toml that says where it is.
    """
    path, fixed = (command, ()) if isinstance(command, str) else (command[0] if command else "", tuple(command[1:]))
    wanted = (path,) if path else launcher.executables
    env = os.environ if environ is None else environ
    files = Files(_is_windows_program if windows else _is_posix_program, _read)
    look = find_windows if windows else find_posix
    for name in wanted:
        if found := look(name, env, files, launcher.npm_package):
            return (*found, *fixed)
    where = "" if path and _is_path(path, windows) else " on PATH or in the usual folders"
    example = f"{'C:/path/to' if windows else '/path/to'}/{(*launcher.executables, 'program')[0]}"
    raise LaunchError(
        "not_found",
        f"no executable {' or '.join(wanted) or '(none is named)'}{where}.",
        f'Write command = "{example}" under [agents.{agent}] in bus.toml.',
    )


def find_posix(name: str, env: Mapping[str, str], files: Files, npm_package: str = "") -> tuple[str, ...]:
    """A path as it is, or a name looked up in PATH and the usual folders; () if there is none."""
    home = env.get("HOME", "")
    if "/" in name:
        path = f"{home}{name[1:]}" if name.startswith("~/") else name
        return (path,) if posixpath.isabs(path) and files.is_program(path) else ()
    own = [env["NPM_CONFIG_PREFIX"] + "/bin"] if env.get("NPM_CONFIG_PREFIX") else []
    own += [env["PNPM_HOME"]] if env.get("PNPM_HOME") else []
    usual = [f"{home}{folder[1:]}" if folder.startswith("~") else folder for folder in POSIX_FOLDERS]
    for folder in (*env.get("PATH", "").split(":"), *own, *usual):
        if posixpath.isabs(folder) and files.is_program(posixpath.join(folder, name)):
            return (posixpath.join(folder, name),)
    return ()


def find_windows(name: str, env: Mapping[str, str], files: Files, npm_package: str = "") -> tuple[str, ...]:
    """An `.exe`, else what an npm shim stands for, else the shim through cmd.exe; () if there is none.

    A file without an extension and a `.ps1` are never started: Windows answers error 193.
    """
    folders = [ntpath.dirname(name)] if _is_path(name, True) else list(_windows_folders(env))
    base = ntpath.basename(name)
    stem = base[:-4] if base.lower().endswith((".exe", ".cmd")) else base
    if not base.lower().endswith(".cmd"):
        for folder in filter(ntpath.isabs, folders):
            if files.is_program(ntpath.join(folder, f"{stem}.exe")):
                return (ntpath.join(folder, f"{stem}.exe"),)
    for folder in filter(ntpath.isabs, folders):
        if files.is_program(ntpath.join(folder, f"{stem}.cmd")):
            return _behind_shim(folder, stem, env, files, npm_package)
    return ()


def _behind_shim(folder: str, stem: str, env: Mapping[str, str], files: Files, npm_package: str) -> tuple[str, ...]:
    """What the shim of an npm package starts, found from the package itself: the script of the shim is not read."""
    target = _package_program(ntpath.join(folder, "node_modules"), stem, files, npm_package) if npm_package else ""
    if target.lower().endswith(".exe"):
        return (target,)
    if target:
        beside = ntpath.join(folder, "node.exe")
        node = (beside,) if files.is_program(beside) else find_windows("node.exe", env, files)
        if node:
            return (*node, target)
    shell = _value(env, "COMSPEC") or ntpath.join(_value(env, "SYSTEMROOT") or r"C:\Windows", "System32", "cmd.exe")
    return shim_prefix(shell, ntpath.join(folder, f"{stem}.cmd"))


def _package_program(modules: str, stem: str, files: Files, npm_package: str) -> str:
    """The file that the package's `bin` names for a command, "" if that cannot be told."""
    package = ntpath.join(modules, *npm_package.split("/"))
    try:
        described: Any = json.loads(files.read(ntpath.join(package, "package.json")))
    except (OSError, ValueError):
        return ""
    entry = described.get("bin") if isinstance(described, dict) else None
    target = entry.get(stem) if isinstance(entry, dict) else entry
    if not isinstance(target, str):
        return ""
    path = ntpath.normpath(ntpath.join(package, target))
    known = path.lower().endswith((".exe", ".js", ".mjs", ".cjs"))
    return path if known and path.startswith(package) and files.is_program(path) else ""


def _windows_folders(env: Mapping[str, str]) -> Iterator[str]:
    yield from (folder.strip('"') for folder in _value(env, "PATH").split(";") if folder)
    for folder in WINDOWS_FOLDERS:
        _, name, rest = folder.split("%")
        if _value(env, name):
            yield _value(env, name) + rest


def _value(env: Mapping[str, str], name: str) -> str:
    """A variable of Windows, whose names have no case."""
    return next((value for key, value in env.items() if key.upper() == name), "")


def _is_path(name: str, windows: bool) -> bool:
    return "/" in name or (windows and "\\" in name)


def _is_posix_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_windows_program(path: str) -> bool:
    return os.path.isfile(path)


def _read(path: str) -> str:
    with open(path, encoding="utf-8-sig") as file:
        return file.read(1024 * 1024)
