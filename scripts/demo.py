"""Shows the bus at work in a minute: `python3 scripts/demo.py [--language en|ja]`.

A fresh bus folder, agents that are real processes with real MCP servers, a worker killed with kill -9, a task that a
person must approve, an emergency stop, an agent that the bus itself starts. Every step is checked; the exit code is 0
only if all went as expected.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import _env

if TYPE_CHECKING:
    from demo_parts.say import Say
    from demo_parts.stage import Process, Stage

WAIT_S = 45


def main(words: list[str]) -> int:
    """Plays the demo; 0 if every step was as expected."""
    _env.enter()
    try:
        return show(words)
    except KeyboardInterrupt:
        return 130


def show(words: list[str]) -> int:
    """Plays the demo in the Python that runs this.

    Args:
        words: the command line.
    """
    from demo_parts.say import Say

    from agent_bus.locale.messages import LANGUAGES
    from agent_bus.texts import choose_language

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--language", choices=("auto", *LANGUAGES), default="auto")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    return play(Say(choose_language(parser.parse_args(words).language, os.environ)))


def play(say: Say) -> int:
    """The whole story, and where its files lie; 0 if every step was as expected."""
    from demo_parts import launch, work
    from demo_parts.stage import Stage, Unexpected

    folder = Path(tempfile.mkdtemp(prefix="agent-bus-demo-")).resolve()
    work.prepare(folder)
    print(say("title"), flush=True)
    (folder / "bus.toml").write_text(launch.settings(folder), encoding="utf-8")
    stage = Stage(folder, say)
    problem = ""
    try:
        story(stage)
    except Unexpected as error:
        problem = str(error)
    finally:
        stage.close()
    print()
    print(
        say("end.bad", text=problem)
        if problem
        else say("end.good", steps=stage.steps, seconds=f"{stage.seconds():.1f}")
    )
    where(stage)
    return 1 if problem else 0


def where(stage: Stage) -> None:
    """Says where the files lie."""
    from demo_parts.stage import program

    print(stage.say("end.files"))
    for path, key in (
        (stage.vault, "file.vault"),
        (stage.folder / "results", "file.results"),
        (stage.folder / "logs", "file.logs"),
    ):
        print(f"  {path}  ({stage.say(key)})")
    command = [*program(), "status", "--root", str(stage.vault)]
    shown = subprocess.list2cmdline(command) if sys.platform == "win32" else shlex.join(command)
    print(stage.say("end.look", command=shown))


def story(stage: Stage) -> None:
    """All acts, then what must be true at the end.

    Raises:
        Unexpected: a step did not go as it must.
    """
    from demo_parts import launch

    code, text = stage.cli("init")
    stage.must(code == 0 and stage.vault.is_dir(), f"agent-bus init gave {code}: {text}")
    stage.line("demo", "done.made")
    boss, coder = stage.start("boss", "boss", "orchestrator"), stage.start("worker", "coder")
    work_and_chain(stage, boss, coder)
    crash(stage, boss)
    gate(stage, boss, coder)
    emergency_stop(stage, boss, coder)
    launch.play(stage, boss)
    health = boss.call("system_health")
    stage.must(health["problems"] == [], f"system_health names problems: {health['problems']}")
    stage.must(not list((stage.vault / "inbox").rglob("*.json")), "an inbox is not empty")
    done = sorted(json.loads(path.read_text(encoding="utf-8"))["status"] for path in ended(stage))
    stage.must(done == ["cancelled"] + ["completed"] * 7, f"the eight tasks ended as {done}")


def ended(stage: Stage) -> list[Path]:
    """The files of the tasks that have ended."""
    return sorted((stage.vault / "archive").rglob("t-*.json"))


def work_and_chain(stage: Stage, boss: Process, coder: Process) -> None:
    """dispatch, receive, status, report, read, acknowledge; the chain's step comes by itself."""
    from demo_parts import work

    stage.act("act.work")
    step = {"target": "coder", "instruction": stage.say("order.summary"), "context": {"job": "summary"}}
    task = dispatch(stage, boss, "coder", "count", options={"next_tasks": [step]})
    report = finish(stage, boss, coder, task)
    stage.must(f" {work.words_in_notes()} " in f" {report['summary']} ", f"wrong count: {report['summary']}")
    stage.must(report["artifacts"] == ["results/counts.json"], f"wrong artifacts: {report['artifacts']}")
    verdict = boss.call("acknowledge_report", task_id=task)
    stage.must(len(verdict["dispatched"]) == 1, f"the chain dispatched {verdict['dispatched']}")
    following = str(verdict["dispatched"][0])
    stage.line("boss", "done.chained", task=task, next=following)
    finish(stage, boss, coder, following)
    accept(stage, boss, following)
    stage.must((stage.folder / "results" / "summary.md").exists(), "the summary was not written")


def crash(stage: Stage, boss: Process) -> None:
    """A worker is killed while it holds a task; the next one gets the task as a second attempt."""
    import psutil

    stage.act("act.crash")
    victim = stage.start("frozen", "helper")
    task = dispatch(stage, boss, "helper", "list")
    stage.must(victim.shown("received")["attempt"] == 1, "the first attempt has another number")
    victim.shown("working")
    server = int(stage.document(f"inbox/helper/{task}")["lease"]["holder"]["pid"])
    for pid in (server, victim.running.pid):  # the lease is the server's; its client goes with it
        psutil.Process(pid).kill()
    stage.line("demo", "done.killed", server=server, task=task)
    helper = stage.start("worker", "helper")
    attempt = finish(stage, boss, helper, task)["attempt"]
    stage.must(attempt == 2, f"the report is of attempt {attempt}")
    accept(stage, boss, task)
    (record,) = (path for path in ended(stage) if path.stem == task)
    crashes = json.loads(record.read_text(encoding="utf-8"))["crashes"]
    stage.must(crashes == 1, f"{crashes} crashes were counted")
    helper.end()


def gate(stage: Stage, boss: Process, coder: Process) -> None:
    """A task that deletes waits for a person; without a terminal nobody can approve it."""
    stage.act("act.gate")
    drafts = stage.folder / "drafts"
    order = stage.say("order.remove")
    sent = boss.call("dispatch_task", target="coder", instruction=order, context='{"job": "remove"}')
    task = str(sent["task_id"])
    stage.line("boss", "done.dispatched", task=task, target="coder", text=order)
    stage.must(sent["status"] == "pending_approval", f"the risky task is {sent['status']}")
    stage.line("boss", "done.pending", task=task, terms=", ".join(sent["matched_terms"]))
    code, text = stage.cli("approve", task)
    stage.must(code == 1 and "refused" in text, f"approve without a terminal gave {code}: {text}")
    stage.must(len(list(drafts.iterdir())) == 2, "the drafts are gone before anybody approved")
    stage.line("demo", "done.kept_out")
    stage.line("person", "done.approved_api" if sys.platform == "win32" else "done.approved", task=task)
    stage.person("approve", task)
    finish(stage, boss, coder, task)
    accept(stage, boss, task)
    stage.must(not list(drafts.iterdir()), "the drafts are still there")


def emergency_stop(stage: Stage, boss: Process, coder: Process) -> None:
    """Nothing is given out while the bus is stopped; a person resumes it."""
    stage.act("act.stop")
    reason = stage.say("stop.reason")
    stopped = boss.call("emergency_stop", reason=reason)
    stage.must(stopped["failed"] == [], f"the stop could not write: {stopped['failed']}")
    stage.line("boss", "done.stopped", reason=reason)
    stage.must(coder.shown("refused")["text"].startswith("stopped:"), "the worker was not told of the stop")
    refusal = boss.ask("dispatch_task", target="coder", instruction=stage.say("order.check"))
    stage.must(str(refusal.get("text")).startswith("stopped:"), f"a dispatch while stopped gave {refusal}")
    stage.line("boss", "done.refused", text=refusal["text"])
    stage.line("person", "done.resumed")
    stage.person("resume")
    task = dispatch(stage, boss, "coder", "check")
    finish(stage, boss, coder, task)
    accept(stage, boss, task)


def dispatch(stage: Stage, boss: Process, target: str, job: str, **more: object) -> str:
    """The boss dispatches a job; the task's id."""
    order = stage.say(f"order.{job}")
    sent = boss.call("dispatch_task", target=target, instruction=order, context={"job": job}, **more)
    stage.must(sent["status"] == "pending", f"the task is {sent['status']}: {sent['next']}")
    stage.line("boss", "done.dispatched", task=sent["task_id"], target=target, text=order)
    return str(sent["task_id"])


def finish(stage: Stage, boss: Process, worker: Process, task: str) -> dict[str, object]:
    """The worker takes and does the task while the boss waits for its report; the report."""
    for did in ("received", "working", "reported"):
        stage.must(worker.shown(did)["task_id"] == task, f"{worker.name} works on another task than {task}")
    found = boss.call("get_reports", task_id=task, wait_s=WAIT_S)["reports"]
    stage.must(len(found) == 1 and found[0]["status"] == "completed", f"the reports on {task}: {found}")
    stage.line("boss", "done.read", task=task)
    return dict(found[0])


def accept(stage: Stage, boss: Process, task: str) -> None:
    """The boss accepts the task's report."""
    verdict = boss.call("acknowledge_report", task_id=task)
    stage.must(verdict["task_state"] == "completed", f"{task} is {verdict['task_state']} after its verdict")
    stage.line("boss", "done.acknowledged", task=task)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
