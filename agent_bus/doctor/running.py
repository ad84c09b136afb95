"""Runs probes side by side within one bound: what has not answered by then is a finding itself."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent_bus.doctor import WARN, Finding
from agent_bus.errors import BusError

WITHIN_S = 25.0
"""For all probes together; ending the processes of the last ones may take some seconds more."""
PROBE_S = 10.0
GRACE_S = 3.0
_LIGHT = 8


@dataclass(frozen=True)
class Deadline:
    """When all has to be done, on the monotonic clock."""

    at: float

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    def left(self, most: float = PROBE_S) -> float:
        """Seconds that are left, `most` at most."""
        return max(0.0, min(most, self.at - time.monotonic()))


@dataclass(frozen=True)
class Probe:
    """Checks that are made one after the other.

    Args:
        id: the check that is named if there is no answer.
        look: gives the findings; it bounds its own waits.
        heavy: whether it starts programs, so that not many run at once.
    """

    id: str
    look: Callable[[], Iterable[Finding]]
    client: str = ""
    heavy: bool = False

    def findings(self) -> list[Finding]:
        """What it finds; an error of the system, or one of ours, is a finding after those before it."""
        found: list[Finding] = []
        try:
            for finding in self.look():
                found.append(finding)
        except OSError as error:
            found.append(self.unanswered("unread", str(error)))
        except BusError as error:
            found.append(self.unanswered("unread", f"{error.message} {error.hint}".strip()))
        return found

    def unanswered(self, case: str, reason: str = "") -> Finding:
        """The finding of a probe that could not look."""
        return Finding(self.id, WARN, f"!{case}", self.client, {"reason": reason, "id": self.id})


def run_all(probes: Sequence[Probe], deadline: Deadline, heavy: int) -> list[Finding]:
    """The findings of all probes, in the probes' order.

    Args:
        deadline: what has not ended some seconds after it is left behind, on threads that end with the process.
        heavy: how many heavy probes run at once.
    """
    results: dict[int, list[Finding]] = {}
    threads = []
    for is_heavy, count in ((False, _LIGHT), (True, heavy)):
        waiting = deque((n, probe) for n, probe in enumerate(probes) if probe.heavy is is_heavy)
        threads += [
            threading.Thread(target=_work, args=(waiting, results, deadline), name="doctor", daemon=True)
            for _ in range(min(count, len(waiting)))
        ]
    for thread in threads:
        thread.start()
    last = Deadline(deadline.at + GRACE_S)
    for thread in threads:
        thread.join(last.left(WITHIN_S + GRACE_S))
    seen = dict(results)
    return [f for n, probe in enumerate(probes) for f in seen.get(n, [probe.unanswered("late")])]


def _work(waiting: deque[tuple[int, Probe]], results: dict[int, list[Finding]], deadline: Deadline) -> None:
    while deadline.left():
        try:
            number, probe = waiting.popleft()
        except IndexError:
            return
        results[number] = probe.findings()
