"""Many agents on one bus for a while: `python3 scripts/soak.py [--tasks N] [--workers N] [--kill S] [--minutes M]`.

Each round fills a new bus with tasks, half of which start a further one, and lets workers do them; with --kill one
worker is killed (SIGKILL) every S seconds on the average and replaced. In the end every task must be done exactly
once. --mcp works through real `agent-bus mcp` servers instead, which are not killed. By hand, not part of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import _env


def main(words: list[str]) -> int:
    """Rounds until the time is up; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=500, help="tasks a round, for each worker")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kill", type=float, default=0.0, help="seconds between two kills, 0 = none")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long to go on; 0 = one round")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--mcp", action="store_true")
    given = parser.parse_args(words)
    if given.mcp and given.kill:
        parser.error("--mcp kills no server; give --kill without it")
    until = time.monotonic() + given.minutes * 60
    number, wrong = 0, 0
    while number == 0 or time.monotonic() < until:
        with tempfile.TemporaryDirectory(prefix="agent-bus-soak-") as folder:
            root = Path(folder) / "bus"
            root.mkdir()
            os.environ["AGENT_BUS_STATE_HOME"] = str(Path(folder) / "home")
            facts = one_round(root, given, given.seed + number)
            print(json.dumps({"round": number, "seed": given.seed + number, **facts}), flush=True)
            if facts["wrong"]:
                wrong += 1
                kept = shutil.copytree(root, Path(tempfile.gettempdir()) / f"agent-bus-soak-{given.seed + number}")
                print(f"the bus is kept in {kept}", flush=True)
        number += 1
    return 1 if wrong else 0


def one_round(root: Path, given: argparse.Namespace, seed: int) -> dict[str, object]:
    """One bus from its filling to the judgement."""
    from tests.tools import crew

    count = given.tasks * given.workers
    if given.mcp:
        crew.fill(root, count, steps=False)
        facts = crew.run_servers(root, given.workers)
        return {"tasks": count, **crew.judge(root, facts, count, killed=False).as_dict()}
    crew.fill(root, count // 2, steps=True)
    patience_s = 60.0 + count * 0.1
    facts = crew.run_crew(root, given.workers, ["coder", "tester"], given.kill, seed, patience_s)
    return {
        "tasks": count // 2 * 2,
        **crew.finish_and_judge(root, facts, count // 2 * 2, killed=given.kill > 0).as_dict(),
    }


if __name__ == "__main__":
    _env.enter()
    sys.path.insert(0, str(_env.ROOT))
    sys.exit(main(sys.argv[1:]))
