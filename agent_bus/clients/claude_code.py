"""Claude Code. `mcpServers` in its settings.json has no effect: it reads `.claude.json` and a project's `.mcp.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import Client, Home, Limits, Signs


@dataclass(frozen=True)
class ClaudeCode(Client):
    """Its user file moves with CLAUDE_CONFIG_DIR, but lies beside `~/.claude` without it."""

    def user_path(self, home: Home) -> Path:
        """`.claude.json` in CLAUDE_CONFIG_DIR, else in home."""
        return home.moved("CLAUDE_CONFIG_DIR", "") / ".claude.json"


CLIENT = ClaudeCode(
    name="claude-code",
    title="Claude Code",
    project_file=".mcp.json",
    extras={"type": "stdio", "timeout": 120_000, "alwaysLoad": True},
    url_extras={"type": "http"},
    token_reference="${{{}}}",
    signs=Signs(("claude",), (".claude", ".claude.json")),
    limits=Limits(timeout_key="timeout", notes=("background", "results")),
    after=("approve_project",),
)
