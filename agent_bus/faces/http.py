"""The HTTP face: MCP at /mcp (and, for old clients, /sse), every command at POST /api/<name>, and /health."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent_bus import __version__
from agent_bus.commands import commands, nearest
from agent_bus.errors import BusError, invalid
from agent_bus.faces.answers import as_object, fault
from agent_bus.faces.exchange import exchange_of
from agent_bus.faces.guard import BODY_BYTES, IDENTITY_KEY, Guard, Names, answer, refusal
from agent_bus.faces.mcp import build_server
from agent_bus.faces.toolbox import Toolbox
from agent_bus.faces.wire import Answers, Exchanges, Frame

IDLE_S, SESSIONS = 30 * 60, 1000


@dataclass(frozen=True)
class Identity:
    """Who a token stands for, and the servers that answer it: so no session is ever shared between tokens."""

    toolbox: Toolbox
    manager: StreamableHTTPSessionManager
    sse: SseServerTransport
    stream_server: Server[Any]


@dataclass(frozen=True)
class Site:
    """What the app is built from.

    Args:
        names: the server's own names.
        toolboxes: what each identity may call, by the identity's name.
        tokens: the identity's name by the SHA-256 (hex) of its token.
        bus_id: the id of the bus that is served, "" while there is none.
        sse: offer the old SSE transport too.
    """

    names: Names
    toolboxes: Mapping[str, Toolbox]
    tokens: Mapping[str, str]
    bus_id: Callable[[], str]
    sse: bool = False


def build_app(site: Site) -> Starlette:
    """The whole HTTP face as one ASGI app."""
    identities = {name: _identity(toolbox, site.names) for name, toolbox in site.toolboxes.items()}
    started = time.monotonic()

    async def health(request: Request) -> Response:
        uptime = round(time.monotonic() - started, 1)
        about = {"ok": True, "product": "agent-bus", "version": __version__, "uptime": uptime, "mode": "own"}
        return answer({**about, "bus_id": site.bus_id()}, headers={"Access-Control-Allow-Origin": "*"})

    async def api(request: Request) -> Response:
        return await _api(identities[request.scope[IDENTITY_KEY]].toolbox, request)

    routes = [
        Route("/health", health, methods=["GET"]),
        Route("/api/{name}", api, methods=["POST"]),
        Route("/mcp", _Streamable(identities)),
    ]
    if site.sse:
        routes += [Route("/sse", _OldStream(identities)), Route("/messages/", _OldMessages(identities))]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, names=site.names, tokens=site.tokens)],
        exception_handlers={HTTPException: _http_error},
        lifespan=lambda app: _running(identities),
    )


def _identity(toolbox: Toolbox, names: Names) -> Identity:
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=sorted(names.hosts),
        allowed_origins=sorted(names.origins),
    )
    manager = StreamableHTTPSessionManager(
        build_server(toolbox),
        json_response=not toolbox.sessions,
        stateless=not toolbox.sessions,
        security_settings=security,
        session_idle_timeout=IDLE_S,
        max_request_body_size=BODY_BYTES,
        max_sessions=SESSIONS,
    )
    stream_server = build_server(replace(toolbox, sessions=True))  # a stream is a session
    return Identity(toolbox, manager, SseServerTransport("/messages/", security, BODY_BYTES), stream_server)


@asynccontextmanager
async def _running(identities: Mapping[str, Identity]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for identity in identities.values():
            await stack.enter_async_context(identity.manager.run())
        yield


class _Endpoint:
    """An ASGI app under one path, answered by the servers of the caller's identity."""

    def __init__(self, identities: Mapping[str, Identity]) -> None:
        self._identities = identities

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(self._identities[scope[IDENTITY_KEY]], scope, receive, send)

    async def serve(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raise NotImplementedError


class _Streamable(_Endpoint):
    async def serve(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        await identity.manager.handle_request(scope, receive, send)


class _OldMessages(_Endpoint):
    async def serve(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        await identity.sse.handle_post_message(scope, receive, send)


class _OldStream(_Endpoint):
    async def serve(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            raise HTTPException(405, headers={"Allow": "GET"})
        async with identity.sse.connect_sse(scope, receive, send) as (reads, writes):
            await _serve_stream(identity.stream_server, reads, writes.send)


async def _serve_stream(server: Server[Any], reads: Any, deliver: Callable[[SessionMessage], Any]) -> None:
    """One SSE connection: its requests carry exchanges, as those of a stdio server do."""
    exchanges = Exchanges()
    send, receive = anyio.create_memory_object_stream[Frame](0)

    async def relay() -> None:
        async with send:
            async for frame in reads:
                await send.send(exchanges.stamp(frame))

    async with anyio.create_task_group() as around:
        around.start_soon(relay)
        await server.run(receive, Answers(exchanges, deliver), server.create_initialization_options())
        around.cancel_scope.cancel()


async def _api(toolbox: Toolbox, request: Request) -> Response:
    try:
        command = _command(toolbox, request.path_params["name"])
        given = await _arguments(request)
        result = await toolbox.call(command, given, exchange_of(request), toolbox.caller)
        return answer(as_object(result))
    except BusError as error:
        return refusal(error)
    except HTTPException:
        raise
    except Exception as error:
        return refusal(fault(error))


def _command(toolbox: Toolbox, name: str) -> Any:
    found = toolbox.api.get(name)
    if found is None and name in commands() and commands()[name].people:
        hint = f"At a terminal: agent-bus {name.replace('_', '-')}."
        raise BusError("refused", f"{name} is for people.", hint)
    if found is None:
        raise BusError("not_found", f"there is no command {name[:60]!a} here.", nearest(name, toolbox.api))
    return found


async def _arguments(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be JSON: send Content-Type: application/json")
    try:
        given = await request.json()
    except (ValueError, RecursionError):
        raise invalid("the body", "is no JSON", 'Send an object, for example {"agent_name": "coder"}.') from None
    if not isinstance(given, dict):
        raise invalid("the body", "must be a JSON object of parameters", "Send {} if there are none.")
    return given


async def _http_error(request: Request, error: Exception) -> Response:
    """404, 405 and 415 in the shape of every other error."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    words = {404: "there is nothing at this path.", 405: f"this path takes {headers.get('Allow')} only."}
    code = "not_found" if error.status_code == 404 else "invalid"
    response = refusal(BusError(code, words.get(error.status_code, f"{error.detail}.")), error.status_code)
    response.headers.update(headers)
    return response
