"""Subscriptions to documents in both eras: the same notices, on the connection (2025) or on a stream (2026).

A notice is only a hint: there is no replay, and whoever gets one reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_REQUEST,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from agent_bus.errors import BusError, too_large
from agent_bus.faces.notices import Notices
from agent_bus.faces.requests import Context, connection_of, protocol_error
from agent_bus.faces.resources import Documents, unknown
from agent_bus.faces.toolbox import Toolbox

ADDRESSES = 100
"""Most addresses of one 2025 connection, or of one 2026 stream."""
STREAMS = 1000
"""Most 2026 streams of one server, as many as there may be sessions."""
NO_SESSION = (
    "refused: this server keeps no sessions, so it cannot send notices to a client of this protocol version. "
    "Start it with --stateful, or use subscriptions/listen (2026-07-28)."
)


class Subscriptions:
    """Who listens to what, of all connections of one server.

    Args:
        toolbox: whether its transport can push.
        documents: what can be listened to.
    """

    def __init__(self, toolbox: Toolbox, documents: Documents) -> None:
        self._toolbox = toolbox
        self._notices = Notices(toolbox, documents)
        self._boxes: dict[Connection, _Box] = {}
        self._handler = ListenHandler(self._notices, max_subscriptions=STREAMS)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block there may be subscriptions."""
        try:
            yield
        finally:
            self._notices.close()
            for box in self._boxes.values():
                box.close()

    async def subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        """`resources/subscribe` of 2025."""
        if not self._toolbox.pushes:
            raise MCPError(INVALID_REQUEST, NO_SESSION)
        connection = connection_of(context)
        seen = await self._look([params.uri])
        if not seen:
            raise unknown(params.uri)
        box = self._boxes.get(connection) or self._open(connection)
        if params.uri not in box.uris:
            _check_number(len(box.uris) + 1)
            box.uris.add(params.uri)
            self._notices.want(seen)
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """`resources/unsubscribe` of 2025; from what was not subscribed to is fine."""
        box = self._boxes.get(connection_of(context))
        if box is not None and params.uri in box.uris:
            box.uris.discard(params.uri)
            self._notices.leave([params.uri])
        return EmptyResult()

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """`subscriptions/listen` of 2026. Lists never change here: promised are only the documents there may be."""
        asked = list(dict.fromkeys(params.notifications.resource_subscriptions or []))
        _check_number(len(asked))
        seen = await self._look(asked) if asked else {}
        kept = SubscriptionFilter(resource_subscriptions=list(seen) or None)
        self._notices.want(seen)
        try:
            return await self._handler(context, params.model_copy(update={"notifications": kept}))
        finally:
            self._notices.leave(seen)

    async def _look(self, uris: list[str]) -> dict[str, str]:
        try:
            return await self._notices.look(uris)
        except BusError as error:
            raise protocol_error(error) from None

    def _open(self, connection: Connection) -> _Box:
        box = self._boxes[connection] = _Box(connection, self._notices)
        connection.exit_stack.callback(self._close, connection)
        return box

    def _close(self, connection: Connection) -> None:
        box = self._boxes.pop(connection)
        box.close()
        self._notices.leave(box.uris)


class _Box:
    """The notices of one 2025 connection on their way: one that reads slowly delays nobody else."""

    def __init__(self, connection: Connection, notices: Notices) -> None:
        self.uris: set[str] = set()
        self._connection = connection
        self._pending: dict[str, None] = {}
        self._more = asyncio.Event()
        self._unsubscribe = notices.subscribe(self._put)
        self._sender = asyncio.create_task(self._send())

    def close(self) -> None:
        """Nothing is sent any more."""
        self._unsubscribe()
        self._sender.cancel()

    def _put(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated) and event.uri in self.uris:
            self._pending[event.uri] = None
            self._more.set()

    async def _send(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._pending:
                uri = next(iter(self._pending))
                del self._pending[uri]
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self._connection.send_resource_updated(uri)


def _check_number(number: int) -> None:
    if number > ADDRESSES:
        raise protocol_error(too_large("the subscription", number, ADDRESSES, "addresses"))
