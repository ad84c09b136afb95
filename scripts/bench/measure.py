"""What all benchmarks share: sizes, rounds in rotated order, and the rows of the table.

Terminology: a *side* is one of the things compared, a *round* runs every side once, in an order that rotates. A side
gives one number a round (mostly the median of its operations). The ratio of a row is the median of our rounds over the
minimum of a limit's rounds or the median of a peer's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Args:
        rounds: rounds of every comparison.
        calls: operations of one side in one round.
        depth: queued tasks where peers are compared.
        deep: queued or stored tasks where growth is measured.
        jobs: tasks of one round of exactly-once.
        crews: rounds of exactly-once.
        burst: files of the burst.
        idle_s: how long a blocked wait is watched for its processor time.
    """

    rounds: int
    calls: int
    depth: int
    deep: int
    jobs: int
    crews: int
    burst: int
    idle_s: float

    @classmethod
    def full(cls) -> Scale:
        """The sizes of docs/performance.md."""
        return cls(rounds=7, calls=100, depth=10_000, deep=100_000, jobs=5_000, crews=3, burst=10_000, idle_s=10.0)

    @classmethod
    def quick(cls) -> Scale:
        """Small sizes; the goals that speak of depth are then only hinted at."""
        return cls(rounds=5, calls=25, depth=1_000, deep=10_000, jobs=200, crews=1, burst=1_000, idle_s=2.0)

    def with_jobs(self, jobs: int) -> Scale:
        """The same with another number of tasks a round of exactly-once; 0 changes nothing."""
        return replace(self, jobs=jobs) if jobs else self


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        what: what was measured, with the goal's own words where there is one.
        ours: our number.
        unit: of `ours` and `theirs`: µs, ms, /s, MiB, kB, % or a count ("").
        theirs: the other side's number; None = the goal is about `ours` itself.
        against: what the other side is.
        sense: `<=` or `>=`; "" = no goal, for comparison only.
        limit: the goal for the ratio, or for `ours` where there is no other side.
    """

    what: str
    ours: float
    unit: str
    theirs: float | None = None
    against: str = ""
    sense: str = ""
    limit: float = 0.0

    @property
    def ratio(self) -> float:
        """Ours over theirs; our number alone where there is no other side."""
        if self.theirs is None:
            return self.ours
        return self.ours / self.theirs if self.theirs else float("inf")

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if not self.sense:
            return None
        return self.ratio <= self.limit if self.sense == "<=" else self.ratio >= self.limit


Side = Callable[[], float]
Rounds = dict[str, list[float]]


def interleave(sides: Mapping[str, Side], rounds: int) -> Rounds:
    """Runs every side once a round, the order rotated by one each time; each side's numbers by its name."""
    names = list(sides)
    found: Rounds = {name: [] for name in names}
    for turn in range(rounds):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            found[name].append(sides[name]())
    return found


def median(numbers: Iterable[float]) -> float:
    """The median."""
    return statistics.median(numbers)


def us(seconds: float) -> float:
    """Seconds as microseconds."""
    return seconds * 1e6


def p50(act: Callable[[], object], calls: int, between: Callable[[], object] | None = None) -> float:
    """The median time of one call in seconds.

    Args:
        act: what is timed.
        calls: how often.
        between: done after each call, not timed.
    """
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
        if between is not None:
            between()
    return median(times)


def each(act: Callable[[], object], calls: int) -> float:
    """The mean time of one call in seconds, for rates."""
    start = time.perf_counter()
    for _ in range(calls):
        act()
    return (time.perf_counter() - start) / calls
