"""The one watch that sees that a document changed, and runs only while somebody listens.

A change is that the document reads differently, so one by another process or by hand counts too. The watch looks at
every hint, and each two seconds without one, but at most once a second: so there is at most one notice an address a
second.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.faces.answers import as_text, settled
from agent_bus.faces.resources import Documents
from agent_bus.faces.toolbox import Toolbox

SCAN_S, MERGE_S = 2.0, 1.0
_NO_ID = "! invalid"


class Notices:
    """The documents that somebody wants to hear of, and whom to tell; it lives on one event loop.

    It is a `mcp.server.subscriptions.SubscriptionBus`: listeners get an event for every address and choose.

    Args:
        toolbox: opens the bus and runs the reading.
        documents: what can be listened to.
    """

    def __init__(self, toolbox: Toolbox, documents: Documents) -> None:
        self._toolbox = toolbox
        self._documents = documents
        self._wanted: Counter[str] = Counter()
        self._signs: dict[str, str] = {}
        self._listeners = InMemorySubscriptionBus()
        self._watch: asyncio.Task[None] | None = None

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Calls `listener` at every change that is seen, until the answer is called."""
        return self._listeners.subscribe(listener)

    async def publish(self, event: ServerEvent) -> None:
        """Tells every listener."""
        await self._listeners.publish(event)

    async def look(self, uris: Collection[str]) -> dict[str, str]:
        """How documents read now, for `want`; what is no address of ours is left out.

        Raises:
            BusError: there is no bus to look at.
        """
        await settled(self._toolbox.look(lambda bus: None))
        found = {uri: await self._sign(uri) for uri in uris}
        return {uri: sign for uri, sign in found.items() if sign != _NO_ID}

    def want(self, seen: Mapping[str, str]) -> None:
        """Watches documents from the state that `look` gave; each `want` needs its `leave`."""
        self._wanted.update(list(seen))
        for uri, sign in seen.items():
            self._signs.setdefault(uri, sign)
        if self._wanted and self._watch is None:
            self._watch = asyncio.create_task(self._run())

    def leave(self, uris: Collection[str]) -> None:
        """Ends as many `want`s of documents; with the last one the watch ends."""
        self._wanted.subtract(list(uris))
        for uri in [uri for uri in uris if self._wanted[uri] <= 0]:
            del self._wanted[uri]
            self._signs.pop(uri, None)
        if not self._wanted:
            self.close()

    def close(self) -> None:
        """Ends the watch."""
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None

    async def _run(self) -> None:
        bus = await self._bus()
        with bus.watch.listen() as ear:
            while True:
                await self._scan()
                await asyncio.sleep(MERGE_S)
                await ear.wait(SCAN_S - MERGE_S)

    async def _bus(self) -> Bus:
        while True:
            try:
                return await settled(self._toolbox.look(lambda bus: bus))
            except BusError:
                await asyncio.sleep(SCAN_S)

    async def _scan(self) -> None:
        for uri in list(self._wanted):
            sign = await self._sign(uri)
            if uri in self._signs and self._signs[uri] != sign:
                self._signs[uri] = sign
                await self.publish(ResourceUpdated(uri=uri))

    async def _sign(self, uri: str) -> str:
        """A text that differs when the document reads differently; that it cannot be read is such a text too."""
        try:
            address = self._documents.address(uri)
            found = await settled(self._toolbox.look(address.get))
        except MCPError:
            return _NO_ID
        except BusError as error:
            return f"! {error.code}"
        return hashlib.sha256(as_text(_without(found, address.resource.volatile)).encode()).hexdigest()


def _without(value: Any, names: Collection[str]) -> Any:
    """The value without some fields, however deep they lie."""
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in value.items() if key not in names}
    return [_without(one, names) for one in value] if isinstance(value, list) else value
