"""Measures the bus against bare system calls and against other queues: `python3 scripts/bench [--quick] [--only NAME]`.

Prints one table and, with `--json FILE`, writes it for programs. A goal that is missed fails nothing: the numbers are
for people (docs/performance.md says what each line means).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SCRIPTS))

import _env  # noqa: E402


def main() -> int:
    """Moves into the environment of `requirements/bench.lock`, the checkout on its path, and runs there."""
    _env.need_python()
    home = _env.ensure("bench", package=False)
    if Path(sys.prefix).resolve() == home.resolve():
        return run(sys.argv[1:])
    env = _env.environment(home)
    env = {k: v for k, v in env.items() if not k.startswith("AGENT_BUS_")}
    env["PYTHONPATH"] = os.pathsep.join([str(_env.ROOT), str(SCRIPTS)])
    return subprocess.run([str(_env.python_of(home)), *sys.argv], env=env, check=False).returncode


def run(words: list[str]) -> int:
    """Runs what the command line asks for; 2 for wrong use, else 0."""
    from bench import cases, report
    from bench.measure import Scale

    parser = argparse.ArgumentParser("scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--only", action="append", metavar="NAME", choices=sorted(cases.CASES), help="this one; repeat")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="tasks a round of exactly-once (5000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="measure on the file system of this folder")
    given = parser.parse_args(words)
    scale = Scale.quick() if given.quick else Scale.full()
    rows = cases.run(given.only or list(cases.CASES), scale.with_jobs(given.jobs), given.folder)
    print(report.table(rows), flush=True)
    if given.json:
        report.write(given.json, rows, "quick" if given.quick else "full")
    return 0


if __name__ == "__main__":
    sys.exit(main())
