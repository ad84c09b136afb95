"""The one way from the vault to the bus: each decision once, and not more of them than a person makes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from agent_bus.bus import Bus, Caller
from agent_bus.errors import BusError
from agent_bus.jobs.mirror_acts import for_people
from agent_bus.operations import decisions
from agent_bus.operations.decisions import CHANNEL, TAKEN, Decision, Outcome
from agent_bus.operations.vault_channel import is_paused, pause

WINDOW_S = 600.0


class Channel:
    """Takes decisions.

    Args:
        bus: the open bus.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.people = bus.called_by(Caller(agent=bus.settings.vault.sender, role="operator", channel=CHANNEL))
        """The bus as those use it who write in the vault."""
        self._act = for_people(self.people)
        self._times: deque[float] = deque()
        self._unfinished = True

    def is_paused(self) -> bool:
        """Whether too much came at once, and a person has not said yet that it was theirs."""
        return is_paused(self._bus)

    def consume(self, decision: Decision) -> Outcome:
        """See `decisions.consume`.

        Raises:
            BusError: nothing was done.
        """
        outcome = decisions.consume(self._bus, decision, self._act)
        self._unfinished = self._unfinished or outcome.state == TAKEN
        if outcome.fresh:
            self._count()
        return outcome

    def finish(self) -> Iterator[Outcome]:
        """Carries out what a crash, or a stop, has left undone."""
        if not self._unfinished:
            return
        self._unfinished = False
        for doc in decisions.unfinished(self._bus):
            outcome = decisions.finish(self._bus, doc, self._act)
            self._unfinished = self._unfinished or outcome.state == TAKEN
            yield outcome

    def _count(self) -> None:
        now, most = self._bus.clock.boot_s(), self._bus.settings.vault.max_acts
        self._times.append(now)
        while self._times and now - self._times[0] > WINDOW_S:
            self._times.popleft()
        if len(self._times) > most:
            self._times.clear()
            with suppress(BusError):
                pause(self._bus, f"more than {most} decisions in ten minutes")
