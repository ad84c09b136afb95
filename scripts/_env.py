"""The scripts' environments: made in `.cache/`, filled from `requirements/*.lock`, kept until a lock changes.

A script calls `enter()` before it imports anything that is not in the standard library. This module must
parse on old Pythons, so that they get a sentence instead of a traceback.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
OLDEST = (3, 11)
KNOWN = ("3.14", "3.13", "3.12", "3.11")
WINDOWS = os.name == "nt"
NO_PIP = """Neither `python3 -m venv` nor pip works for {python}.
  Debian, Ubuntu:  sudo apt-get install python3-venv
  Fedora:          sudo dnf install python3-pip
  elsewhere:       install Python 3.11 or newer from python.org"""


def enter(lock: str = "dev") -> None:
    """Goes on only inside the environment of `requirements/<lock>.lock`, with the checkout installed in it.

    Called from any other Python it makes that environment if need be, runs the same script in it and exits
    with its code.
    """
    need_python()
    home = ensure(lock)
    if Path(sys.prefix).resolve() != home.resolve():
        _go([str(python_of(home)), *sys.argv], environment(home))


def ensure(lock: str, package: bool = True) -> Path:
    """The folder of the environment for `requirements/<lock>.lock`, made or brought up to date.

    `package` installs the checkout into it, editable.
    """
    home = CACHE / f"venv-{lock}-{sys.version_info[0]}.{sys.version_info[1]}"
    packages = _digest(lock_file(lock).read_bytes(), os.path.realpath(sys.base_prefix).encode())
    project = _digest((ROOT / "pyproject.toml").read_bytes()) if package else ""
    with _only_one(home):
        if _stamp(home, "packages") != packages:
            build(home, lock)
            (home / "packages.stamp").write_text(packages, encoding="utf-8")
        if package and _stamp(home, "project") != project:
            say("installing the checkout into the environment")
            pip(home, "install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", str(ROOT))
            (home / "project.stamp").write_text(project, encoding="utf-8")
    return home


def build(home: Path, lock: str) -> None:
    """Makes the environment `home` anew with the packages of `requirements/<lock>.lock`."""
    say(f"making the environment {home} from requirements/{lock}.lock (about a minute)")
    shutil.rmtree(home, ignore_errors=True)
    venv = [_base_python(), "-m", "venv"]
    if subprocess.run([*venv, str(home)], capture_output=True, check=False).returncode != 0:
        # Debian's python3 without python3-venv has no ensurepip; its own pip can fill the folder too.
        shutil.rmtree(home, ignore_errors=True)
        bare = subprocess.run([*venv, "--without-pip", str(home)], capture_output=True, check=False)
        if bare.returncode != 0 or not _has_pip(_base_python()):
            fail(NO_PIP.format(python=_base_python()))
    pip(home, "install", "--require-hashes", "--requirement", str(lock_file(lock)))


def pip(home: Path, *words: str) -> None:
    """Runs pip on the environment; a failure ends the script with pip's own words above ours."""
    python = str(python_of(home))
    command = [python, "-m", "pip"] if _has_pip(python) else [_base_python(), "-m", "pip", "--python", python]
    run = subprocess.run([*command, *words, "-qq", "--disable-pip-version-check"], check=False, cwd=ROOT)
    if run.returncode != 0:
        fail(f"pip {' '.join(words)} failed (its words are above).\n  The network? Run the same again.")


def need_python() -> None:
    """Moves to a newer Python on PATH if this one is too old (macOS's python3 is)."""
    if sys.version_info >= OLDEST:
        return
    for version in KNOWN:
        found = shutil.which(f"python{version}")
        if found and subprocess.run([found, "-c", ""], check=False).returncode == 0:
            _go([found, *sys.argv], dict(os.environ))
    fail(f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}.")


def python_of(home: Path) -> Path:
    """The interpreter of the environment in `home`."""
    return home / "Scripts" / "python.exe" if WINDOWS else home / "bin" / "python"


def lock_file(lock: str) -> Path:
    """Where the lock of that name lies."""
    return ROOT / "requirements" / f"{lock}.lock"


def environment(home: Path) -> dict[str, str]:
    """This process's environment with the commands of `home` first and nothing else on Python's path."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    kept["PATH"] = os.pathsep.join([str(python_of(home).parent), os.environ.get("PATH", "")])
    return kept


def say(text: str) -> None:
    """One line for the person who waits."""
    print(f"-- {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    """Ends the script: exit code 2, the reason on stderr."""
    print(f"error: {text}", file=sys.stderr, flush=True)
    sys.exit(2)


def _go(command: list[str], env: dict[str, str]) -> NoReturn:
    """The rest of this script is that command (Windows' exec returns to the shell early)."""
    sys.stdout.flush()
    if not WINDOWS:
        os.execve(command[0], command, env)
    try:
        sys.exit(subprocess.run(command, env=env, check=False).returncode)
    except KeyboardInterrupt:
        sys.exit(130)


def _base_python() -> str:
    """The interpreter outside any environment."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _has_pip(python: str) -> bool:
    return subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def _stamp(home: Path, name: str) -> str:
    file = home / f"{name}.stamp"
    return file.read_text(encoding="utf-8") if file.exists() and python_of(home).exists() else ""


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@contextlib.contextmanager
def _only_one(home: Path) -> Iterator[None]:
    """Of scripts started at once one builds, the others wait; a dead one's lock goes with it."""
    home.parent.mkdir(exist_ok=True)
    with open(home.parent / f"{home.name}.lock", "w", encoding="utf-8") as file:
        while not _locked(file.fileno()):
            time.sleep(0.2)
        yield


def _locked(descriptor: int) -> bool:
    """Tries to take the lock on an open file; the system releases it at close."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
