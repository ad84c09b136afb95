"""Orchestrators that are killed between report, chain and acknowledgement: `python3 scripts/trials.py [--trials N]`.

Two real orchestrators (`agent-bus job orchestrator`) run at once on one bus. In each trial a task with a step that
follows it is reported, and a moment later one of the two, in turn, is killed (SIGKILL) and replaced. In the end every
report must have been acknowledged once and every step dispatched once. By hand, not part of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import _env

PATIENCE_S = 60.0
MOMENTS_S = 0.08
"""The longest time from a report to the kill. The answer counts the kills at which the report still waited."""
ACKNOWLEDGED = "report.acknowledged"


class Crew:
    """Two orchestrators; whoever is killed is replaced.

    Args:
        root: the bus folder.
    """

    def __init__(self, root: Path) -> None:
        self._command = [sys.executable, "-m", "agent_bus.faces.cli", "--root", str(root), "job", "orchestrator"]
        self._ready: set[int] = set()
        self.all = [self._start() for _ in range(2)]
        self.kills = 0

    def _start(self) -> subprocess.Popen[str]:
        words = [*self._command, "--interval", "0.1"]
        return subprocess.Popen(words, cwd=_env.ROOT, stderr=subprocess.PIPE, text=True)

    def ready(self, place: int) -> None:
        """Waits until one of them runs, which it says."""
        stream = self.all[place].stderr
        if place not in self._ready and stream is not None and stream.readline():
            self._ready.add(place)

    def kill(self, place: int) -> None:
        """Kills one of them and starts another in its place."""
        self.end(self.all[place])
        self.kills += 1
        self._ready.discard(place)
        self.all[place] = self._start()

    def end(self, child: subprocess.Popen[str]) -> None:
        """Kills one and waits for its end."""
        child.kill()
        child.communicate()


def main(words: list[str]) -> int:
    """All trials on one bus; 1 if anything was not done exactly once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="agent-bus-trials-", ignore_cleanup_errors=True) as folder:
        os.environ["AGENT_BUS_STATE_HOME"] = str(Path(folder) / "home")
        root = Path(folder) / "bus"
        root.mkdir()
        facts = run(root, given.trials, random.Random(given.seed))
    print(json.dumps({"trials": given.trials, "seed": given.seed, **facts}))
    return 1 if facts["wrong"] else 0


def run(root: Path, trials: int, chance: random.Random) -> dict[str, Any]:
    """The trials and their judgement."""
    from simulate import call

    from agent_bus import Caller, Settings, open_bus

    settings = Settings(root=str(root))
    with closing(open_bus(settings, Caller(agent="coder"))) as coder_bus, closing(open_bus(settings)) as bus:
        crew, tasks, waiting = Crew(root), [], 0
        try:
            for number in range(trials):
                victim = number % len(crew.all)
                crew.ready(victim)
                step = {"target": "tester", "instruction": "Test it."}
                options = json.dumps({"next_tasks": [step]})
                order = {"target": "coder", "instruction": "Write it.", "from_agent": "boss", "options": options}
                task_id = str(call(bus, "dispatch_task", **order)["task_id"])
                received = call(coder_bus, "receive_task", agent_name="coder")["task"]["task_id"]
                assert received == task_id, (received, task_id)
                call(coder_bus, "submit_report", task_id=task_id, worker="coder", status="completed", summary="done")
                time.sleep(chance.uniform(0.0, MOMENTS_S))
                waiting += any(root.glob(f"reports/pending/{task_id}*.json"))
                crew.kill(victim)
                tasks.append(task_id)
            await_all(root, tasks)
        finally:
            for child in crew.all:
                crew.end(child)
        told = Counter(str(e.get("task_id")) for e in bus.journal.read(limit=20 * trials) if e["event"] == ACKNOWLEDGED)
    return judge(root, tasks, told) | {"kills": crew.kills, "before_the_acknowledgement": waiting}


def await_all(root: Path, tasks: list[str]) -> None:
    """Returns once every task's step is there and no report waits, or when the patience is over."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if len(steps_of(root)) >= len(tasks) and not any(root.glob("reports/pending/*.json")):
            return
        time.sleep(0.2)


def steps_of(root: Path) -> list[str]:
    """The tasks whose steps lie in the tester's inbox, one for each step."""
    return [str(json.loads(p.read_text(encoding="utf-8")).get("parent")) for p in root.glob("inbox/tester/*.json")]


def judge(root: Path, tasks: list[str], told: Counter[str]) -> dict[str, Any]:
    """Each task must have one step, one processed report and a verdict; a kill may cost the journal its line."""
    steps = Counter(steps_of(root))
    done = Counter(p.name.partition(".")[0] for p in root.glob("reports/processed/*.json"))
    ended = {p.stem for p in root.glob("archive/**/*.json") if json.loads(p.read_text(encoding="utf-8")).get("verdict")}
    wrong = [t for t in tasks if (steps[t], done[t]) != (1, 1) or told[t] > 1 or t not in ended]
    return {"steps": sum(steps.values()), "processed": sum(done.values()), "told": sum(told.values()), "wrong": wrong}


if __name__ == "__main__":
    _env.enter()
    sys.path.insert(0, str(_env.ROOT))
    sys.exit(main(sys.argv[1:]))
