"""Runs the tests: `python3 scripts/test.py [--wheel] [pytest's arguments]`.

Without --wheel the checkout is tested. With it a wheel is built and installed into an environment outside the
checkout, and a copy of tests/ runs there, so that a file missing from the wheel shows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import _env

ONE_PROCESS = ("-n", "--pdb", "--trace", "--co", "--markers", "--fixtures")  # beginnings of arguments


def main(words: list[str]) -> int:
    """Runs what the command line asks for; pytest's exit code."""
    _env.enter()
    if "--wheel" not in words:
        return run_pytest(Path(sys.prefix), _env.ROOT, words)
    with tempfile.TemporaryDirectory(prefix="agent-bus-wheel-", ignore_cleanup_errors=True) as folder:
        return test_wheel(Path(folder).resolve(), [word for word in words if word != "--wheel"])


def test_wheel(folder: Path, words: list[str]) -> int:
    """Builds the source archive and from it the wheel, installs the wheel below `folder`, tests it there."""
    _env.say("building the wheel")
    build = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(folder / "dist"),
        str(_env.ROOT),
    ]
    if subprocess.run(build, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        _env.fail("the build failed (its words are above).")
    home, place = folder / "venv", folder / "run"
    _env.build(home, "dev")
    (wheel,) = (folder / "dist").glob("*.whl")
    _env.say(f"installing {wheel.name}")
    _env.pip(home, "install", "--no-deps", "--no-index", str(wheel))
    shutil.copytree(_env.ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_env.ROOT / "pyproject.toml", place)
    need_installed(home, place)
    return run_pytest(home, place, words)


def need_installed(home: Path, place: Path) -> None:
    """Ends the script unless the package under test is the installed one."""
    ask = [str(_env.python_of(home)), "-c", "import agent_bus; print(agent_bus.__file__)"]
    found = subprocess.run(ask, cwd=place, env=_env.environment(home), stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0 or not Path(found.stdout.strip()).resolve().is_relative_to(home):
        _env.fail(f"these would not be tests of the wheel: agent_bus is {found.stdout.strip() or 'missing'}")


def run_pytest(home: Path, place: Path, words: list[str]) -> int:
    """Runs pytest of the environment `home` in the folder `place`; its exit code."""
    workers = str((os.cpu_count() or 1) + 1)  # one more than there are cores: many tests wait for processes
    alone = any(word.startswith(ONE_PROCESS) for word in words)
    spread = [] if alone else ["-n", workers, "--dist", "worksteal"]
    command = [str(_env.python_of(home)), "-m", "pytest", *spread, *words]
    _env.say(f"{' '.join(command[1:])}  (in {place})")
    env = {**_env.environment(home), "AGENT_BUS_CHECKOUT": str(_env.ROOT)}
    return subprocess.run(command, cwd=place, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
