"""The end of a run: what is known of it, what that means, and its writes in their order.

Parked first (once a run, whoever repeats it), then the run document, then the breakers, then the task: a kill between
leaves a run that is classified again from its log and the bus, with the same answer.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import outcome, report
from agent_bus.domain import run as machine
from agent_bus.domain.outcome import End, Verdict
from agent_bus.domain.run import Run
from agent_bus.domain.task import CANCELLED
from agent_bus.launchers import Evidence, environment, output, registry, workfiles
from agent_bus.operations import find, outcomes, parking, runs, sessions
from agent_bus.operations.launchable import config_folder
from agent_bus.operations.runs import Held
from agent_bus.store.port import Stale
from agent_bus.times import stamp

_BACKS_OFF = frozenset({"crashed", "no_report", "timed_out", "output_limit", "start_failed", "session_error"})


@dataclass(frozen=True)
class Seen:
    """What was seen of a run whose processes are gone.

    Args:
        exit: (exit code, signal), None = not known.
        ended_by: why we ended it; "" = it ended by itself.
        stopped: it was ended for the emergency stop.
        called: it has called the bus.
        survivors: processes that could not be ended, in words.
    """

    exit: tuple[int, int] | None = None
    ended_by: str = ""
    stopped: bool = False
    called: bool = False
    survivors: str = ""


def examine(bus: Bus, run: Run, seen: Seen) -> tuple[End, Evidence]:
    """Everything that is known of a run whose processes are gone."""
    code, number = seen.exit or (-1, 0)
    log = runs.file(bus, run, "log")
    evidence = _evidence(bus, run, code, number)
    found = find.find_quietly(bus, run.task_id)
    task = found.task if found else None
    held = task is not None and task.lease is not None and task.lease.id == run.lease_id
    reported = task is not None and machine.is_reported(task, run.lease_id)
    called = seen.called or bool(run.first_call_at) or bool(held and task and task.lease and task.lease.called_at)
    end = End(
        stopped=seen.stopped and not reported,
        reported=reported,
        cancelled=task is not None and (task.status == CANCELLED or (held and task.cancel is not None)),
        withdrawn=not held and not reported,
        ended_by=seen.ended_by,
        failure=evidence.failure,
        detail=output.redact(evidence.detail, secrets(bus, run)),
        option=evidence.option,
        fresh=called or has_output(log, run),
        exit_code=code,
        signal=number,
        nudges_left=bus.settings.launcher.nudges - run.nudges,
        healed=run.healed > 0,
        required_option=_is_required(run, evidence.option),
        restarts=run.restarts,
    )
    return end, evidence


def finish(bus: Bus, held: Held, seen: Seen, verdict: Verdict, evidence: Evidence) -> Run | None:
    """Ends the run and does what follows; None if somebody else has ended it."""
    run, code = held.run, seen.exit or (-1, 0)
    reason = "; ".join(w for w in (verdict.reason, seen.survivors) if w)
    changes: dict[str, Any] = {
        "outcome": verdict.outcome,
        "reason": output.redact(reason, secrets(bus, run)),
        "exit_code": code[0],
        "signal": str(code[1]) if code[1] else "",
        "tail": _tail(bus, run),
        "retry_at": _retry_at(bus, run, verdict.outcome),
        "ended_at": bus.stamp(),
        "frozen_at": "",
        **spent(bus, run, evidence),
    }
    done = run.model_copy(update=changes)
    if verdict.park:
        parking.note_end(bus, done, verdict.park, changes["reason"] or verdict.outcome, evidence.until)
    with suppress(OSError):
        output.append(runs.file(bus, run, "log"), output.footer(bus.now(), verdict.outcome, str(changes["reason"])))
    try:
        ended = runs.end(bus, held, **changes)
    except (Stale, machine.NotAllowed):
        return None
    _after(bus, ended.run, evidence, bool(verdict.park))
    return ended.run


def _after(bus: Bus, run: Run, evidence: Evidence, parked: bool) -> None:
    if not parked:
        parking.note_end(bus, run, "", "")
    _note_session(bus, run, evidence)
    apply(bus, run)
    line = {"at": bus.stamp(), "event": "run.ended", "agent": run.agent, "task_id": run.task_id, "run_id": run.run_id}
    if run.outcome != "reported":
        bus.journal.write(bus.now(), {**line, "outcome": run.outcome, "reason": run.reason[:300]})


def apply(bus: Bus, run: Run) -> bool:
    """Shortens the log of an ended run, takes its copies of files away, then moves its task (`outcomes.apply`).

    In this order: whoever finds the run's mark gone finds all of it done, also after a kill between two steps.
    """
    with suppress(OSError):
        output.cut(runs.file(bus, run, "log"), bus.settings.launcher.log_keep_bytes)
    if run.work_dir:
        workfiles.remove_copy(Path(run.work_dir), run.run_id)
    return outcomes.apply(bus, run)


def spent(bus: Bus, run: Run, evidence: Evidence) -> dict[str, object]:
    """What the last process of a run has cost, added to what those before it have.

    A CLI that counts the whole session has the earlier part taken off; a smaller number than that is its own count.
    """
    before = sessions.totals(bus, place(bus, run), run.session_id or evidence.session_id) if run.work_dir else {}
    cost, tokens = evidence.cost_usd or 0.0, evidence.tokens or 0
    return {
        "cost_usd": run.cost_usd + _own("cost_usd", cost, before, evidence),
        "cost_known": run.cost_known or evidence.cost_usd is not None,
        "tokens": run.tokens + int(_own("tokens", tokens, before, evidence)),
        "turns": run.turns + (evidence.turns or 0),
        "denials": sorted({*run.denials, *evidence.denials})[:50],
        "session_id": run.session_id or evidence.session_id,
    }


def _own(name: str, number: float, before: Mapping[str, float], evidence: Evidence) -> float:
    earlier = before.get(name, 0.0) if name in evidence.session_totals else 0.0
    return number - earlier if number >= earlier else number


def note_session(bus: Bus, run: Run, evidence: Evidence) -> None:
    """Keeps the run's session for the next one of its place, with what it has cost as a whole."""
    if run.work_dir and evidence.session_id and evidence.session_id == run.session_id:
        known = {name: getattr(evidence, name) for name in evidence.session_totals}
        told = {name: number for name, number in known.items() if number is not None}
        sessions.remember(bus, place(bus, run), run.session_id, run.run_id, totals=told)


def secrets(bus: Bus, run: Run) -> frozenset[str]:
    """The values that must not leave a run's log."""
    known: dict[str, frozenset[str]] = bus.memo.setdefault("secrets", {})
    if run.agent not in known:
        known[run.agent] = _secrets(bus, run)
    return known[run.agent]


def _secrets(bus: Bus, run: Run) -> frozenset[str]:
    agent = bus.settings.agents.get(run.agent)
    if agent is None:
        return frozenset()
    prefixes = registry.load(run.launcher).env_prefixes
    windows = sys.platform == "win32"
    passed = environment.passed_variables(os.environ, prefixes=prefixes, env_pass=agent.env_pass, windows=windows)
    return output.secret_values(agent.env, passed)


def has_output(log: os.PathLike[str], run: Run) -> bool:
    """Whether the run's present process has written a byte."""
    try:
        return os.stat(log).st_size > run.log_from
    except OSError:
        return False


def place(bus: Bus, run: Run) -> sessions.Place:
    """Where the run's session belongs."""
    agent = bus.settings.agents.get(run.agent)
    return sessions.Place(run.agent, run.work_dir, run.thread, run.launcher, config_folder(agent) if agent else "")


def _note_session(bus: Bus, run: Run, evidence: Evidence) -> None:
    if not run.work_dir:
        return
    if run.outcome == "session_error":
        sessions.forget(bus, place(bus, run), run.reason)
    else:
        note_session(bus, run, evidence)


def _evidence(bus: Bus, run: Run, code: int, number: int) -> Evidence:
    log = runs.file(bus, run, "log")
    try:
        with open(log, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            keep = bus.settings.launcher.log_keep_bytes
            if size - run.log_from > keep:
                return registry.load(run.launcher).read(output.ends(log, keep), code, number, bus.now().timestamp())
            file.seek(run.log_from)
            return registry.load(run.launcher).read(file.read(keep), code, number, bus.now().timestamp())
    except OSError:
        return Evidence()


def _is_required(run: Run, option: str) -> bool:
    launcher = registry.load(run.launcher)
    return not option or option in launcher.required_flags or option not in launcher.optional_flags


def _tail(bus: Bus, run: Run) -> str:
    lines = output.tail(runs.file(bus, run, "log"), machine.TAIL_LINES + 4)
    ours = (line for line in lines if not line.startswith(output.OURS))
    return output.redact("\n".join(ours), secrets(bus, run))[-4000:]


def _retry_at(bus: Bus, run: Run, outcome: str) -> str:
    """When the task may be started again: back-off with full jitter after an end that may repeat itself."""
    if outcome not in _BACKS_OFF:
        return ""
    found = find.find_quietly(bus, run.task_id)
    before = max(run.n - 1, found.task.crashes if found else 0)
    wait = report.backoff_s(before, bus.settings.backoff_s, bus.settings.backoff_max_s, random.random())
    return stamp(bus.now() + timedelta(seconds=wait))


def unlaunched(bus: Bus, held: Held, kind: str, words: str) -> None:
    """The end of a run that could not be started: launch_error, its agent parked until something changes."""
    verdict = Verdict("launch_error", "back", "config", f"{kind}: {words}")
    finish(bus, held, Seen(), verdict, Evidence())


def again(verdict: Verdict) -> Verdict:
    """The verdict of a run that may not go again after all."""
    return replace(verdict, task=outcome.task_effect(verdict.outcome))
