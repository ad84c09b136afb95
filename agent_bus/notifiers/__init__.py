"""Notifiers: one file a kind of channel, `create(settings) -> Notifier`; its name is the channel's in the settings.

Others come by the entry point group `agent_bus.notifiers`. The WebSocket hub is no notifier: it shows the journal.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

from agent_bus.domain.notice import Notice
from agent_bus.errors import BusError
from agent_bus.settings_notify import ChannelSettings

GROUP = "agent_bus.notifiers"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sent:
    """The channel has it."""


@dataclass(frozen=True)
class Later:
    """Not now: again in so many seconds or more; infinite = not before the settings have changed.

    Args:
        seconds: the least wait; the sender's own back-off may be longer.
        reason: for people, without any secret.
    """

    seconds: float
    reason: str


@dataclass(frozen=True)
class Dropped:
    """Never: the channel refuses this one."""

    reason: str


Outcome = Sent | Later | Dropped


class Notifier(Protocol):
    """A way to people.

    `per_minute` is how many sends a minute it allows, 0 = any number.
    """

    per_minute: int

    async def send(self, notice: Notice) -> Outcome:
        """Sends one notice, within seconds. It has a thread to itself and may block that."""


def load(channel: str) -> Callable[[ChannelSettings], Notifier]:
    """The `create` of a channel's kind: the part of its name before the first dot.

    Raises:
        BusError: `not_found` if nothing installed is called that.
    """
    kind = channel.partition(".")[0]
    if kind.isidentifier() and importlib.util.find_spec(f"{GROUP}.{kind}") is not None:
        create: Callable[[ChannelSettings], Notifier] = importlib.import_module(f"{GROUP}.{kind}").create
        return create
    for point in entry_points(group=GROUP, name=kind):
        return point.load().create  # type: ignore[no-any-return]
    raise BusError(
        "not_found", f"there is no notifier {kind[:40]!a}.", "Name the table after one: discord, apprise, command."
    )


def deliver(notifier: Notifier, notice: Notice) -> Outcome:
    """One send with its failure contained; what the error says may hold a secret, so only its type is kept."""
    try:
        return asyncio.run(notifier.send(notice))
    except Exception as error:
        log.warning("notifier %s failed: %s", type(notifier).__module__, type(error).__name__)
        return Later(0.0, f"{type(error).__name__} in {type(notifier).__module__}")
