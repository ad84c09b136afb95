"""One channel's sender: takes what waits in its outbox and sends it, one post a tick, under the channel's lock.

A kill between the post and the removal makes that one notice come twice at most, never not at all.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from agent_bus import notifiers
from agent_bus.bus import Bus
from agent_bus.domain import notice as notices
from agent_bus.domain.notice import Notice
from agent_bus.errors import BusError
from agent_bus.notifiers import Dropped, Later, Notifier, Sent
from agent_bus.operations import outbox
from agent_bus.store.port import Doc
from agent_bus.times import parse_stamp, stamp

BACKOFF_MAX_S = 300.0
IDLE_S = 60.0
LONGEST_WAIT_S = 3600.0
_LOCKED_S = 5.0
_RATE_S = 60.0


class Sender:
    """Sends what waits for one channel.

    Args:
        channel: its name in the settings.
        share: gives the jitter of a back-off, 0 … 1.
    """

    def __init__(self, channel: str, share: Callable[[], float] = random.random) -> None:
        self._channel = channel
        self._share = share
        self._notifier: Notifier | None = None
        self._sent: deque[float] = deque()

    def tick(self, bus: Bus, now: datetime) -> float:
        """See `jobs.loop`: at most one post; seconds until the next look."""
        bus.check_writable()
        with outbox.alone(bus, f"send-{self._channel.replace('.', '-')}") as mine:
            return self._work(bus, now) if mine else _LOCKED_S

    def _work(self, bus: Bus, now: datetime) -> float:
        settings = bus.settings.notify[self._channel]
        if not (waiting := self._waiting(bus, now)):
            return IDLE_S
        state = outbox.state(bus, self._channel)
        if state.get("settings") != settings.fingerprint():
            fresh = {"settings": settings.fingerprint(), "off": "", "next_try": "", "failures": 0}
            outbox.set_state(bus, self._channel, fresh)
            state = {**state, **fresh}
        if state.get("off"):
            return IDLE_S
        if (left := _left_s(str(state.get("next_try", "")), now)) > 0:
            return min(left, IDLE_S)
        quiet = notices.is_quiet(now.astimezone(_zone(bus)).time(), settings.quiet)
        places, wait_s = notices.pick([n for _, n in waiting], now, settings.coalesce_s, quiet)
        if not places:
            return wait_s
        if (wait_s := self._rate_s(bus)) > 0:
            return wait_s
        return self._send(bus, now, [waiting[p] for p in places], int(state.get("failures", 0)))

    def _waiting(self, bus: Bus, now: datetime) -> list[tuple[Doc, Notice]]:
        """What waits, without what has waited too long; that is dropped with one line in the journal."""
        keep_h = bus.settings.notify[self._channel].keep_h
        found = outbox.waiting(bus, self._channel)
        over = [doc for doc, notice in found if notices.is_over(notice, now, keep_h)]
        if over:
            outbox.take(bus, over)
            outbox.note_dropped(bus, self._channel, len(over), "too old")
        return [pair for pair in found if pair[0] not in over]

    def _rate_s(self, bus: Bus) -> float:
        """Seconds until the notifier allows the next post."""
        limit = self._get(bus).per_minute if self._ready(bus) else 0
        now_s = bus.clock.boot_s()
        while self._sent and now_s - self._sent[0] >= _RATE_S:
            self._sent.popleft()
        return _RATE_S - (now_s - self._sent[0]) if limit and len(self._sent) >= limit else 0.0

    def _send(self, bus: Bus, now: datetime, batch: list[tuple[Doc, Notice]], failures: int) -> float:
        if not self._ready(bus):
            return IDLE_S
        self._sent.append(bus.clock.boot_s())
        outcome = notifiers.deliver(self._get(bus), notices.merge([notice for _, notice in batch]))
        if isinstance(outcome, Later):
            return self._later(bus, bus.now(), outcome, failures)
        outbox.take(bus, [doc for doc, _ in batch])
        changes = {"next_try": "", "failures": 0}
        if isinstance(outcome, Sent):
            changes |= {"last_sent": bus.stamp(), "last_error": ""}
        elif isinstance(outcome, Dropped):
            changes["last_error"] = outcome.reason
            outbox.note_dropped(bus, self._channel, len(batch), outcome.reason)
        outbox.set_state(bus, self._channel, changes)
        return 0.0

    def _later(self, bus: Bus, now: datetime, outcome: Later, failures: int) -> float:
        if math.isinf(outcome.seconds):
            outbox.set_state(bus, self._channel, {"off": outcome.reason, "last_error": outcome.reason})
            return IDLE_S
        delay = max(outcome.seconds, backoff_s(failures, self._share()))
        next_try = stamp(now + timedelta(seconds=delay, milliseconds=1))  # stamps are cut to milliseconds
        changes = {"next_try": next_try, "failures": failures + 1, "last_error": outcome.reason}
        outbox.set_state(bus, self._channel, changes)
        return min(delay, IDLE_S)

    def _ready(self, bus: Bus) -> bool:
        """Whether the notifier could be made; else the channel is off until its settings change."""
        try:
            self._get(bus)
            return True
        except BusError as error:
            outbox.set_state(bus, self._channel, {"off": error.message, "last_error": error.message})
            return False

    def _get(self, bus: Bus) -> Notifier:
        if self._notifier is None:
            language = {"language": outbox.language_of(bus, self._channel)}
            settings = bus.settings.notify[self._channel].model_copy(update=language)
            self._notifier = notifiers.load(self._channel)(settings)
        return self._notifier


def backoff_s(failures: int, share: float) -> float:
    """The wait after so many failures in a row: 1 s · 2^n up to 5 minutes, of which half is jitter."""
    return min(BACKOFF_MAX_S, 2.0 ** min(failures, 20)) * (0.5 + 0.5 * share)


def _left_s(next_try: str, now: datetime) -> float:
    """Seconds until the next try; more than an hour means that a clock was set back."""
    try:
        left = (parse_stamp(next_try) - now).total_seconds()
    except ValueError:
        return 0.0
    return left if left <= LONGEST_WAIT_S else 0.0


def _zone(bus: Bus) -> tzinfo | None:
    return ZoneInfo(bus.settings.timezone) if bus.settings.timezone else None
