"""The streams of one MCP connection, with an exchange for each request: its answer's way out is watched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from agent_bus.faces.exchange import Exchange

Frame = SessionMessage | Exception
Deliver = Callable[[SessionMessage], Awaitable[None]]


class Exchanges:
    """The requests of one connection that have no answer yet."""

    def __init__(self) -> None:
        self._open: dict[RequestId, Exchange] = {}
        self._changed = anyio.Event()

    def stamp(self, frame: Frame) -> Frame:
        """The incoming frame; a request carries its exchange to the handler."""
        if isinstance(frame, Exception) or not isinstance(frame.message, JSONRPCRequest):
            return frame
        number, exchange = frame.message.id, Exchange()
        self._open[number] = exchange

        async def unanswered() -> None:  # the SDK: cancelled by the client, nothing is written
            self.take(number)
            await exchange.lost()

        metadata = ServerMessageMetadata(request_context=exchange, on_request_unanswered=unanswered)
        return SessionMessage(frame.message, metadata=metadata)

    def take(self, number: RequestId | None) -> Exchange:
        """The exchange of an answer that is on its way, which is open no longer."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        return (self._open.pop(number, None) if number is not None else None) or Exchange()

    async def drained(self, timeout_s: float) -> None:
        """Returns when every request is answered, at the latest after `timeout_s` seconds."""
        with anyio.move_on_after(timeout_s):
            while self._open:
                await self._changed.wait()


class Answers:
    """The write stream that the SDK gets: an answer that cannot be delivered takes its call's effect back.

    Args:
        exchanges: the connection's open requests.
        deliver: returns when the frame is written; raises or is cancelled if it is not.
    """

    def __init__(self, exchanges: Exchanges, deliver: Deliver) -> None:
        self._exchanges = exchanges
        self._deliver = deliver

    async def send(self, item: SessionMessage, /) -> None:
        """Writes one frame."""
        answer = item.message
        if isinstance(answer, JSONRPCResponse):
            await self._answer(self._exchanges.take(answer.id), item)
        elif isinstance(answer, JSONRPCError):
            await self._exchanges.take(answer.id).lost()
            await self._deliver(item)
        else:
            await self._deliver(item)

    async def _answer(self, exchange: Exchange, item: SessionMessage) -> None:
        delivered = False
        try:
            await self._deliver(item)
            delivered = True
        finally:
            if delivered:
                exchange.arrived()
            else:
                await exchange.lost()

    async def aclose(self) -> None:
        """Nothing to close: the process, or the HTTP response, owns what is below."""

    async def __aenter__(self) -> Answers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
