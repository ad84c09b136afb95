"""Outcomes: what the end of a run means for its task and its agent. One table; the first row that fits counts."""

from __future__ import annotations

from dataclasses import dataclass

RESTARTS = 6
"""Further processes of one run, whatever they are for."""


@dataclass(frozen=True)
class End:
    """What is known of a run whose processes are gone; what the CLI said counts only where nothing stronger is known.

    Args:
        stopped: it was ended for the emergency stop.
        reported: a report of its lease is on the bus.
        cancelled: its task is cancelled, or was asked to be.
        withdrawn: its lease is no longer the task's: somebody released the task.
        ended_by: why we ended it: timed_out, output_limit, start_failed; "" = it ended by itself.
        failure: what its launcher has read (`launchers.Failure`).
        option: the option that the CLI did not know.
        fresh: whether it wrote a byte or called the bus.
        exit_code: -1 = not known.
        nudges_left: how often it may still be asked for its report.
        healed: whether its session was mended once already.
        required_option: whether `option` is one without which it cannot be used.
        restarts: how many further processes it has had.
    """

    stopped: bool = False
    reported: bool = False
    cancelled: bool = False
    withdrawn: bool = False
    ended_by: str = ""
    failure: str = ""
    detail: str = ""
    option: str = ""
    fresh: bool = True
    exit_code: int = -1
    signal: int = 0
    nudges_left: int = 0
    healed: bool = False
    required_option: bool = False
    restarts: int = 0


@dataclass(frozen=True)
class Verdict:
    """What a run's end means.

    Args:
        outcome: the word for the run document.
        task: what becomes of its task: "" nothing (the report or the cancellation has decided), `hold` (the bus is
            stopped), `back` (not counted), `crash` (counted), `again` (a further process of this run).
        park: why its agent or account is parked; "" = it is not.
    """

    outcome: str
    task: str = ""
    park: str = ""
    reason: str = ""


BREAKING = frozenset({"start_failed", "no_report", "crashed"})
"""Outcomes that count for the breakers (rows 10 to 12)."""
UNSPENT = frozenset({"void", "launch_error", "login", "quota", "not_approved"})
"""Outcomes that do not count as a launch of the task: nothing ran, or not for the task's fault."""
ACCOUNT_WIDE = frozenset({"login", "quota"})
_TASK = {
    "void": "back",
    "stopped": "hold",
    "cancelled": "back",
    "timed_out": "crash",
    "output_limit": "crash",
    "launch_error": "back",
    "login": "back",
    "quota": "back",
    "not_approved": "back",
    "session_error": "back",
    "start_failed": "back",
    "no_report": "crash",
    "crashed": "crash",
}
"""Outcome → what becomes of the task (docs/launcher.md "Outcomes"); "" for those that are not here."""


def task_effect(outcome: str) -> str:
    """What becomes of the task: "" nothing, `hold`, `back` (not counted) or `crash` (counted)."""
    return _TASK.get(outcome, "")


def counts(outcome: str) -> bool:
    """Whether an outcome counts as a crash of the task."""
    return task_effect(outcome) == "crash"


_PARKS = {"launch_error": "config", "login": "login", "quota": "quota", "not_approved": "not_approved"}
_FAILURES = {
    "config": "launch_error",
    "nested": "launch_error",
    "login": "login",
    "quota": "quota",
    "not_approved": "not_approved",
    "session_in_use": "session_error",
    "session_unknown": "session_error",
    "unknown_option": "launch_error",
}
_WORDS = {
    "stopped": "the bus was stopped",
    "reported": "it reported",
    "cancelled": "its task was cancelled",
    "released": "its task was taken from it",
    "timed_out": "it ran longer than it may",
    "output_limit": "it wrote more output than it may",
    "start_failed": "it gave no sign of life",
    "no_report": "exited_without_report",
    "crashed": "crashed",
}


def classify(end: End) -> Verdict:
    """The first row of the table that fits."""
    outcome = _outcome(end)
    if outcome in ("no_report", "session_error", "launch_error") and _goes_again(end, outcome):
        return Verdict(outcome, "again", reason=_words(end, outcome))
    return Verdict(outcome, task_effect(outcome), _PARKS.get(outcome, ""), _words(end, outcome))


def _outcome(end: End) -> str:
    decided = (
        ("stopped", end.stopped),
        ("reported", end.reported),
        ("cancelled", end.cancelled),
        ("released", end.withdrawn),
    )
    for name, holds in decided:
        if holds:
            return name
    if end.ended_by in ("timed_out", "output_limit"):
        return end.ended_by
    if end.failure:
        return _FAILURES.get(end.failure, "crashed")
    if end.ended_by or not end.fresh:
        return "start_failed"
    return "no_report" if end.exit_code == 0 else "crashed"


def _goes_again(end: End, outcome: str) -> bool:
    if end.restarts >= RESTARTS:
        return False
    if outcome == "no_report":
        return end.nudges_left > 0
    if outcome == "session_error":
        return not end.healed
    return end.failure == "unknown_option" and not end.required_option


def _words(end: End, outcome: str) -> str:
    words = _WORDS.get(outcome, "")
    if outcome == "crashed":
        how = (
            f"signal {end.signal}"
            if end.signal
            else "its end was not seen"
            if end.exit_code == -1
            else f"exit code {end.exit_code}"
        )
        words = f"it ended by itself without a report ({how})"
    if end.failure == "unknown_option":
        words = f"too_old: it does not know {end.option or 'an option'}"
    said = end.detail if outcome in _FAILURES.values() or outcome == "crashed" else ""
    return ": ".join(w for w in (words, said) if w) or outcome
