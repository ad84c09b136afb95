"""Windsurf."""

from __future__ import annotations

from agent_bus.clients import Client, Limits, Signs

CLIENT = Client(
    name="windsurf",
    title="Windsurf",
    user_file=".codeium/windsurf/mcp_config.json",
    url_key="serverUrl",
    token_reference="${{env:{}}}",
    signs=Signs(("windsurf",), (".codeium/windsurf",)),
    limits=Limits(notes=("tool_count_100",)),
    after=("refresh",),
)
