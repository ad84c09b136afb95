"""Parking: for how long an agent or account is not started, and when failures in a row park it. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from agent_bus.domain.outcome import BREAKING
from agent_bus.domain.run import Run, seconds_since
from agent_bus.times import stamp

LOGIN_S = 3600
QUOTA_MOST_S = 86_400
QUOTA_DOUBLED_MOST_S = 4 * 3600
BREAKER_S, BREAKER_MOST_S = 600, 7200
BREAKER_RUNS = 5
GLOBAL_RUNS, GLOBAL_S = 10, 600
FOR_GOOD = ("config", "not_approved")
"""Reasons that end by a person's act (a changed setting or program, an unpark), not by time."""


def until(reason: str, count: int, now: datetime, named: float, default_s: int) -> str:
    """When a parking ends, as stored; "" = not by time.

    Args:
        reason: quota, login, breaker, config or not_approved.
        count: how often it was parked for this reason in a row before.
        named: the end that the CLI named, seconds since the epoch; 0 = none.
        default_s: the first parking for a quota without a named end.
    """
    if reason in FOR_GOOD:
        return ""
    if reason == "quota" and named > 0:
        seconds = min(max(1.0, named - now.timestamp()), QUOTA_MOST_S)
    elif reason == "quota":
        seconds = doubled(default_s, count, QUOTA_DOUBLED_MOST_S)
    elif reason == "breaker":
        seconds = doubled(BREAKER_S, count, BREAKER_MOST_S)
    else:
        seconds = LOGIN_S
    return stamp(now + timedelta(seconds=seconds))


def doubled(first_s: float, count: int, most_s: float) -> float:
    """`first_s`, doubled `count` times, at most `most_s` (but never below `first_s`)."""
    return max(first_s, min(most_s, first_s * 2.0 ** min(count, 30)))


def broken(ended: Iterable[Run], agent: str) -> bool:
    """Whether the last runs of an agent all failed by themselves, five or more in a row without a report."""
    mine = sorted((r for r in ended if r.agent == agent and r.ended_at), key=lambda r: r.ended_at, reverse=True)
    last = [r.outcome for r in mine if r.outcome != "void"][:BREAKER_RUNS]
    return len(last) == BREAKER_RUNS and all(o in BREAKING for o in last)


def broken_everywhere(ended: Iterable[Run], now: datetime) -> bool:
    """Whether so many runs have failed in the last ten minutes that nothing is to be started."""
    failed = (r for r in ended if r.outcome in BREAKING and seconds_since(r.ended_at, now) < GLOBAL_S)
    return sum(1 for _ in failed) >= GLOBAL_RUNS
