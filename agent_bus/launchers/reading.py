"""From a reading to `Evidence`: the part that is the same for every CLI."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from agent_bus.launchers import Evidence, Failure, failures
from agent_bus.launchers.output import redact


def conclude(
    *,
    exit_code: int,
    said: Sequence[str],
    notes: Sequence[str],
    finished: bool,
    wrong: bool,
    now: float,
    forced: Failure = "",
    **more: Any,
) -> Evidence:
    """The evidence of a run.

    Args:
        exit_code: -1 = not known.
        said: the CLI's own error texts, the most telling first.
        notes: the last lines of its standard error.
        finished: its turn was over.
        wrong: its own events call the run failed.
        now: 0 = the system's clock.
        forced: a failure that an exit code or a status names; it goes before the words.
        more: further fields of `Evidence`.
    """
    failed = wrong or bool(forced) or exit_code > 0 or (exit_code < 0 and not finished)
    if not failed:
        return Evidence(finished=finished, **more)
    found = failures.find([*said, *reversed(notes)], now or time.time())
    failure = forced or found.failure
    until = found.until or (_until(said, notes, now) if failure == "quota" else 0.0)
    return Evidence(
        finished=finished,
        failed=True,
        failure=failure,
        until=until,
        detail=redact(found.detail),
        option=found.option if failure == "unknown_option" else "",
        **more,
    )


def _until(said: Sequence[str], notes: Sequence[str], now: float) -> float:
    moments = (failures.reset_at(text, now or time.time()) for text in (*said, *notes))
    return next((moment for moment in moments if moment), 0.0)
