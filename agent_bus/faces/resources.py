"""Documents under an address: the four that are always there, and one of each kind by its id (docs/resources.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextResourceContents,
)
from mcp.types import Resource as Shown
from mcp.types import ResourceTemplate as ShownTemplate

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.faces.answers import as_object, as_text, settled
from agent_bus.faces.requests import Context, caller_of, protocol_error
from agent_bus.faces.toolbox import Toolbox
from agent_bus.offers import Resource, resources

MIME = "application/json"
URI_CHARS = 1000
_NO_ID = re.compile(r"[\x00-\x1f\x7f/\\]|^\.|^$")


@dataclass(frozen=True)
class Address:
    """An address of ours: what lies under it, and the id that it ends in ("" = none)."""

    uri: str
    resource: Resource
    id: str = ""

    def get(self, bus: Bus) -> dict[str, Any]:
        """The document.

        Raises:
            BusError: `not_found` or `invalid` if there is none.
        """
        return as_object(self.resource.verb(bus, *([self.id] if self.resource.parameter else [])))


class Documents:
    """The resources that one server offers."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self.offered = {uri: one for uri, one in resources().items() if one.group in toolbox.groups}

    def address(self, uri: str) -> Address:
        """The address that a text is; the id is decoded once and checked again by the verb, before any look.

        Raises:
            MCPError: -32602, an unknown resource.
        """
        fixed = self.offered.get(uri)
        if fixed is not None and not fixed.parameter:
            return Address(uri, fixed)
        stem, slash, rest = uri.rpartition("/")
        found = next((r for r in self.offered.values() if r.parameter and r.stem == stem + slash), None)
        id = _decoded(rest)
        if found is None or len(uri) > URI_CHARS or _NO_ID.search(id):
            raise unknown(uri)
        return Address(uri, found, id)

    async def list(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """The addresses that are always there."""
        shown = [
            Shown(uri=one.uri, name=one.name, description=one.text, mime_type=MIME)
            for one in self.offered.values()
            if not one.parameter
        ]
        return ListResourcesResult(resources=shown)

    async def templates(self, context: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """The kinds of address that end in an id."""
        shown = [
            ShownTemplate(uri_template=one.uri, name=one.name, description=one.text, mime_type=MIME)
            for one in self.offered.values()
            if one.parameter
        ]
        return ListResourceTemplatesResult(resource_templates=shown)

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """One document as JSON."""
        address = self.address(params.uri)
        try:
            found = await settled(self._toolbox.look(address.get, caller_of(self._toolbox, context)))
        except BusError as error:
            raise refusal(address.uri, error) from None
        text = TextResourceContents(uri=address.uri, mime_type=MIME, text=as_text(found))
        return ReadResourceResult(contents=[text])


def unknown(uri: str) -> MCPError:
    """The protocol's error for an address under which there is nothing."""
    return MCPError(INVALID_PARAMS, "Unknown resource", {"uri": uri[:URI_CHARS]})


def refusal(uri: str, error: BusError) -> MCPError:
    """Why a document cannot be read: there is none, or what stands against it."""
    return unknown(uri) if error.code in ("not_found", "invalid") else protocol_error(error, uri=uri)


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return ""
