"""Time as an argument: the system's clock, and one that tests and simulations move by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the bus asks of a clock."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""

    def boot_s(self) -> float:
        """Seconds of a clock that is never set by hand; it need not advance while the machine sleeps."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def boot_s(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved.

    Args:
        start: the first wall time, aware.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._boot_s = 1000.0

    def now(self) -> datetime:
        return self._now

    def boot_s(self) -> float:
        return self._boot_s

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += timedelta(seconds=seconds)
        self._boot_s += seconds

    def jump(self, seconds: float) -> None:
        """Moves the wall clock alone, as a person or a sleeping machine does."""
        self._now += timedelta(seconds=seconds)
