"""Clients of servers over a bus in this process, as a person's client and an agent's are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceUpdatedNotification

from agent_bus.bus import Bus, Caller
from agent_bus.faces.mcp import build_server
from agent_bus.faces.toolbox import Toolbox, offered

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026", "2025"])
PATIENCE_S = 20


def toolbox(bus: Bus, tools: str = "core", role: str = "worker", **caller: Any) -> Toolbox:
    """What a server over the bus offers."""
    who = Caller(**{"role": role, "channel": "mcp", **caller})
    return Toolbox(lambda: bus, who, offered(tools, role))


@asynccontextmanager
async def client(box: Toolbox, mode: str, **options: Any) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    async with Client(build_server(box), mode=mode, **options) as found:
        yield found


async def document(found: Client, uri: str) -> dict[str, Any]:
    """A resource as an object."""
    [item] = (await found.read_resource(uri, cache_mode="bypass")).contents
    assert item.uri == uri
    assert item.mime_type == "application/json"
    text: str = item.text  # type: ignore[union-attr]
    assert len(text) <= 8000
    value: dict[str, Any] = json.loads(text)
    return value


async def refused(act: Any) -> MCPError:
    """The protocol's error that an act must end with."""
    with pytest.raises(MCPError) as found:
        await act
    return found.value


class Ear:
    """What a client hears, in either era."""

    def __init__(self) -> None:
        self._send, self._heard = anyio.create_memory_object_stream[str](100)

    async def take(self, message: Any) -> None:
        """A message handler of the SDK's client."""
        if isinstance(message, ResourceUpdatedNotification):
            await self._send.send(message.params.uri)

    async def next(self) -> str:
        """The address of the next notice."""
        with anyio.fail_after(PATIENCE_S):
            return await self._heard.receive()

    async def all(self, *uris: str) -> set[str]:
        """What was heard until each of some addresses was (an act of several writes may be seen half-way)."""
        heard: set[str] = set()
        while not heard >= set(uris):
            heard.add(await self.next())
        return heard

    def close(self) -> None:
        """Nothing is heard any more."""
        self._send.close()
        self._heard.close()


@asynccontextmanager
async def listening(found: Client, ear: Ear, *uris: str) -> AsyncIterator[list[str]]:
    """Within the block the client listens; the value is what the server has promised."""
    if found.protocol_version < "2026":
        for uri in uris:
            await found.session.subscribe_resource(uri)
        yield list(uris)
        return
    async with found.listen(resource_subscriptions=list(uris)) as stream, anyio.create_task_group() as around:

        async def relay() -> None:
            async for event in stream:
                await ear._send.send(event.uri)  # type: ignore[union-attr]

        around.start_soon(relay)
        yield list(stream.honored.resource_subscriptions or [])
        around.cancel_scope.cancel()
