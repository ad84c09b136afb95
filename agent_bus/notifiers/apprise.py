"""All that Apprise can reach (mail, Slack, LINE, Telegram …), by its addresses. Extra: `agent-bus[apprise]`."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from agent_bus.domain.notice import Notice
from agent_bus.errors import BusError
from agent_bus.notifiers import Later, Outcome, Sent
from agent_bus.settings_notify import ChannelSettings

_TYPES = {"info": "info", "need": "warning", "alarm": "failure"}

logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its warnings name addresses, which are secrets


class Apprise:
    """A set of addresses. One that fails makes all of them hear it again: at least once, never not at all.

    Args:
        target: an object of the library, with the addresses added.
    """

    per_minute = 0

    def __init__(self, target: Any) -> None:
        self._target = target

    async def send(self, notice: Notice) -> Outcome:
        title, _, rest = notice.text.partition("\n")
        kind = _TYPES.get(notice.level, "info")
        done = self._target.notify(body=rest or title, title=title, notify_type=kind)  # on the sender's own thread
        return Sent() if done else Later(0.0, "one of the addresses failed")


def create(settings: ChannelSettings) -> Apprise:
    """The addresses that the settings name.

    Raises:
        BusError: `not_found` without the library, `invalid` for an address that it does not know (named by its place).
    """
    try:
        library = importlib.import_module("apprise")
    except ImportError:
        raise BusError("not_found", "apprise is not installed.", "Install agent-bus[apprise].") from None
    target = library.Apprise()
    for place, url in enumerate(settings.urls, 1):
        if not target.add(url.get_secret_value()):
            raise BusError(
                "invalid", f"urls: number {place} is no address that Apprise knows.", "See its documentation."
            )
    if not settings.urls:
        raise BusError("invalid", "urls names no address.", 'Write urls = ["mailto://…"].')
    return Apprise(target)
