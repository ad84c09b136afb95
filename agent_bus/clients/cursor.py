"""Cursor. It drops tools whose name, with the server's, is longer than 60 characters."""

from __future__ import annotations

from agent_bus.clients import Client, Limits, Signs

CLIENT = Client(
    name="cursor",
    title="Cursor",
    user_file=".cursor/mcp.json",
    project_file=".cursor/mcp.json",
    token_reference="${{env:{}}}",
    signs=Signs(("cursor", "cursor-agent"), (".cursor",)),
    limits=Limits(default_timeout_s=60, name_chars=60, notes=("tool_count_40", "approve_advice")),
)
