"""One request and the fate of its answer: what a call took is given back when the answer never arrives."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import anyio.to_thread

from agent_bus.errors import BusError

log = logging.getLogger(__name__)
EXCHANGE_KEY = "agent_bus.exchange"
"""Where the HTTP face puts it in a request's scope."""


class Exchange:
    """A request from its arrival until its answer is written or cannot be.

    Whoever carries the answer says `arrived` or `lost`; a call that took something says `keep`.
    """

    def __init__(self) -> None:
        self.gone = anyio.Event()
        self._undo: Callable[[], None] | None = None

    async def keep(self, undo: Callable[[], None]) -> None:
        """Holds on to what takes the call's effect back; at once if the caller has gone meanwhile.

        No await stands between the effect and this line, so a cancelled request cannot lose it.
        """
        self._undo = undo
        if self.gone.is_set():
            await self.lost()

    def arrived(self) -> None:
        """The answer is written: the effect stays."""
        self._undo = None

    async def lost(self) -> None:
        """The caller has gone, or its answer was not written: waits end, the effect is taken back once."""
        self.gone.set()
        undo, self._undo = self._undo, None
        if undo is None:
            return
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(undo)
            except BusError as error:
                log.warning("an unanswered call was not taken back: %s", error)


def exchange_of(request: object) -> Exchange:
    """The exchange that the transport put with the request; a new one in process, where nothing gets lost."""
    if isinstance(request, Exchange):
        return request
    found = getattr(request, "scope", {}).get(EXCHANGE_KEY)
    return found if isinstance(found, Exchange) else Exchange()
