"""What the protocol's conformance suite asks a server to have, put on top of a server from our own factory.

The suite calls tools, resources and prompts by fixed names. They live here, in no shipped module: what the suite proves
about transports, eras, sessions, guard and errors is about the server that `agent-bus mcp` runs. Whatever is not a
fixture goes on to our own handlers.

As a program: `python -m tests.faces.suite_fixtures '{"root": …, "transport": "http", "port": …}'` serves it as
`agent-bus mcp` does. The suite cannot send a token, so over HTTP each request gets the user's own before the guard.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    RequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_bus.faces.toolbox import Toolbox
from tests.faces import suite_answers
from tests.faces.suite_answers import PROMPTS, RESOURCES, TEMPLATES, TOOLS

Context = ServerRequestContext[Any, Any]
Older = Callable[[Context, Any], Awaitable[Any]]
PREFIX = "test://"
MISSING = "missing fixture"
"""A line on stderr that begins so names what the suite called and this module does not have."""


@dataclass(frozen=True)
class Listed:
    """One of the protocol's lists: what it is called, its result, and what the fixtures add."""

    method: str
    field: str
    result: type[Any]
    added: list[Any]


LISTS = (
    Listed("tools/list", "tools", ListToolsResult, [fixture.shown for fixture in TOOLS.values()]),
    Listed("prompts/list", "prompts", ListPromptsResult, [fixture.shown for fixture in PROMPTS.values()]),
    Listed("resources/list", "resources", ListResourcesResult, list(RESOURCES.values())),
    Listed("resources/templates/list", "resource_templates", ListResourceTemplatesResult, list(TEMPLATES)),
)
HANDLERS: dict[str, tuple[type[RequestParams], Callable[..., Awaitable[Any]]]] = {}


def extend(server: Server[Any]) -> Server[Any]:
    """The same server with the fixtures before its own handlers."""
    for listed in LISTS:
        _before(server, listed.method, PaginatedRequestParams, partial(_list, listed))
    for method, (params, handler) in HANDLERS.items():
        _before(server, method, params, handler)
    if not any(isinstance(one, RequestStateBoundary) for one in server.middleware):
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return server


def _before(server: Server[Any], method: str, params: type[RequestParams], own: Callable[..., Awaitable[Any]]) -> None:
    entry = server.get_request_handler(method)
    older = entry.handler if entry else None
    server.add_request_handler(method, params, partial(own, older))


def _handles(method: str, params: type[RequestParams]) -> Callable[[Any], Any]:
    def keep(handler: Callable[..., Awaitable[Any]]) -> Any:
        HANDLERS[method] = (params, handler)
        return handler

    return keep


async def _list(listed: Listed, older: Older | None, context: Context, params: Any) -> Any:
    result = await older(context, params) if older else listed.result(**{listed.field: []})
    return result.model_copy(update={listed.field: [*getattr(result, listed.field), *listed.added]})


async def _fall_through(older: Older | None, context: Context, params: Any, name: str) -> Any:
    if name.startswith("test_"):
        print(f"{MISSING}: {context.method} {name}", file=sys.stderr, flush=True)
    if older is None:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
    return await older(context, params)


@_handles("tools/call", CallToolRequestParams)
async def _call_tool(older: Older | None, context: Context, params: CallToolRequestParams) -> Any:
    fixture = TOOLS.get(params.name)
    if fixture is None:
        return await _fall_through(older, context, params, params.name)
    answer = await fixture.run(context, params)
    return CallToolResult(content=answer) if isinstance(answer, list) else answer


@_handles("prompts/get", GetPromptRequestParams)
async def _get_prompt(older: Older | None, context: Context, params: GetPromptRequestParams) -> Any:
    fixture = PROMPTS.get(params.name)
    if fixture is None:
        return await _fall_through(older, context, params, params.name)
    return await fixture.run(context, params)


@_handles("resources/read", ReadResourceRequestParams)
async def _read_resource(older: Older | None, context: Context, params: ReadResourceRequestParams) -> Any:
    found = suite_answers.contents(str(params.uri))
    return found or await _fall_through(older, context, params, str(params.uri))


@_handles("resources/subscribe", SubscribeRequestParams)
async def _subscribe(older: Older | None, context: Context, params: SubscribeRequestParams) -> Any:
    return await _on_fixture(older, context, params)


@_handles("resources/unsubscribe", UnsubscribeRequestParams)
async def _unsubscribe(older: Older | None, context: Context, params: UnsubscribeRequestParams) -> Any:
    return await _on_fixture(older, context, params)


async def _on_fixture(older: Older | None, context: Context, params: Any) -> Any:
    uri = str(params.uri)
    return EmptyResult() if uri.startswith(PREFIX) else await _fall_through(older, context, params, uri)


@_handles("completion/complete", CompleteRequestParams)
async def _complete(older: Older | None, context: Context, params: CompleteRequestParams) -> Any:
    name = params.ref.name if isinstance(params.ref, PromptReference) else str(params.ref.uri)
    if name not in PROMPTS and not name.startswith(PREFIX):
        return await _fall_through(older, context, params, name)
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=words, total=len(words), has_more=False))


@_handles("logging/setLevel", SetLevelRequestParams)
async def _set_level(older: Older | None, context: Context, params: SetLevelRequestParams) -> Any:
    return EmptyResult()


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The app as it answers clients that send the token."""

    async def forward(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]}
        await app(scope, receive, send)

    return forward


def main(options: dict[str, Any]) -> int:
    """Serves as `agent-bus mcp` does, the fixtures added and the token put in."""
    from agent_bus.faces import http, listen, mcp
    from agent_bus.faces.serve import serve_mcp
    from agent_bus.settings import load_settings

    settings = load_settings(overrides={"root": options.pop("root")})
    token, _ = listen.token_of(listen.bus_id(settings))
    build_server, build_app = mcp.build_server, http.build_app

    def extended(toolbox: Toolbox) -> Server[Any]:
        return extend(build_server(toolbox))

    with (
        mock.patch.object(mcp, "build_server", extended),
        mock.patch.object(http, "build_server", extended),
        mock.patch.object(listen, "build_app", lambda site: with_token(build_app(site), token)),
    ):
        return serve_mcp(settings, **options)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
