"""Antigravity. Versions read several places: the shared one is written, the older ones are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import Client, Home, Limits, Signs


@dataclass(frozen=True)
class Antigravity(Client):
    """Its project file is not read reliably, so it has none here."""

    def older_paths(self, home: Home) -> tuple[Path, ...]:
        """The places of earlier versions."""
        return home.at(".gemini/antigravity/mcp_config.json"), home.at(".gemini/antigravity-cli/mcp_config.json")


CLIENT = Antigravity(
    name="antigravity",
    title="Antigravity",
    user_file=".gemini/config/mcp_config.json",
    url_key="serverUrl",
    signs=Signs(("antigravity", "agy"), (".gemini/antigravity", ".gemini/antigravity-cli", ".antigravity")),
    limits=Limits(default_timeout_s=180, notes=("fixed_timeout", "freezes")),
    after=("refresh",),
)
