"""What a handler may know of one MCP request: who calls, on which exchange, and what can be sent to them."""

from __future__ import annotations

from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from agent_bus.bus import Caller
from agent_bus.errors import BusError
from agent_bus.faces.toolbox import Toolbox, for_client

Context = ServerRequestContext[Any, Any]


def caller_of(toolbox: Toolbox, context: Context) -> Caller:
    """The server's caller with this client's name and session."""
    client = context.session.client_params
    name = f"{client.client_info.name} {client.client_info.version}" if client else ""
    return for_client(toolbox.caller, name, _session(toolbox, context))


def is_modern(context: Context) -> bool:
    """Whether the request is of the era without sessions (2026-07-28 and later)."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(context: Context) -> Connection:
    """The connection of a request: its standalone channel, and what is to be done when it ends.

    The SDK shows handlers a proxy for one request only; a test holds it to this attribute.
    """
    return context.session._connection


def protocol_error(error: BusError, **data: Any) -> MCPError:
    """A refusal where the protocol has no result that says so: a caller's mistake is -32602, the rest -32603."""
    theirs = error.code in ("invalid", "not_found", "too_large", "conflict", "not_yours", "refused")
    return MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, str(error), {"code": error.code, **data})


def _session(toolbox: Toolbox, context: Context) -> str:
    """The HTTP session, where the transport has checked that it is one; requests of the new era have none."""
    headers = getattr(context.request, "headers", None)
    if not toolbox.sessions or headers is None or is_modern(context):
        return ""
    return str(headers.get("mcp-session-id", ""))
