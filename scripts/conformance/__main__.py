"""Runs the protocol's conformance suite and inspector against our server: `python3 scripts/conformance [--write]`.

Both come from npm, locked, into `.cache/conformance/`, with a Node of their own where the system's is older than 22.
Exit code 0: all is as docs/conformance.md says; 1: something else failed, or an exception is no longer needed; 2: it
could not run. `--write` writes the tables of docs/conformance.md. `--only LEG` (repeat) runs a part: a leg of the
suite, or `inspector`; then nothing is said about the rest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import _env

if TYPE_CHECKING:
    from conformance.judge import Findings

INSPECTOR = "inspector"


def main(words: list[str]) -> int:
    """Moves into the environment of `requirements/dev.lock` and runs there."""
    _env.enter()
    from conformance import judge, report
    from conformance.suite import LEGS

    parser = argparse.ArgumentParser("scripts/conformance", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables of docs/conformance.md")
    parser.add_argument("--only", action="append", metavar="LEG", choices=[*LEGS, INSPECTOR], help="this one; repeat")
    given = parser.parse_args(words)
    if given.write and given.only:
        parser.error("--write needs all legs: leave --only out")
    exceptions = judge.read_exceptions()
    chosen = given.only or [*LEGS, INSPECTOR]
    found = run(chosen)
    problems = judge.problems(found, exceptions, complete=not given.only)
    print(report.text(found, exceptions))
    for problem in problems:
        print(f"PROBLEM {problem}")
    if given.write and not problems:
        report.write(found, exceptions)
    end = f"{len(problems)} problems{', nothing was written' if given.write else ''}"
    print(f"\n{end if problems else 'all is as the exceptions say'}")
    return 1 if problems else 0


def run(chosen: list[str]) -> Findings:
    """What the chosen parts found."""
    from conformance import inspector, judge, node, suite

    tools = node.ensure()
    with tempfile.TemporaryDirectory(prefix="conformance ") as folder:
        place = Path(folder)
        legs = [suite.run(tools, suite.LEGS[name], place / name) for name in chosen if name != INSPECTOR]
        seen = inspector.run(tools, place / INSPECTOR) if INSPECTOR in chosen else []
        return judge.Findings(suite.known(tools), legs, seen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
