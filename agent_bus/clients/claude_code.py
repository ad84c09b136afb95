"""Claude Code. `mcpServers` in its settings.json has no effect: it reads `.claude.json` and a project's `.mcp.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import USER, Client, Home, Limits, Signs


@dataclass(frozen=True)
class ClaudeCode(Client):
    """Its user file moves with CLAUDE_CONFIG_DIR, but lies beside `~/.claude` without it."""

    def user_path(self, home: Home) -> Path:
        """`.claude.json` in CLAUDE_CONFIG_DIR, else in home."""
        return home.moved("CLAUDE_CONFIG_DIR", "") / ".claude.json"

    def dead_places(self, home: Home, project: Path | None) -> tuple[tuple[Path, tuple[str, ...]], ...]:
        """Its settings files."""
        here = [project / ".claude" / name for name in ("settings.json", "settings.local.json")] if project else []
        return tuple((path, ("mcpServers",)) for path in (settings_folder(home) / "settings.json", *here))

    def allowing(
        self, scope: str, home: Home, project: Path | None, key: str
    ) -> tuple[tuple[Path, tuple[str, ...], str], ...]:
        """All tools of our server; in a project also the server itself, which is else asked about once."""
        if scope == USER or project is None:
            return ((settings_folder(home) / "settings.json", ("permissions", "allow"), f"mcp__{key}"),)
        path = project / ".claude" / "settings.json"
        return (path, ("permissions", "allow"), f"mcp__{key}"), (path, ("enabledMcpjsonServers",), key)


def settings_folder(home: Home) -> Path:
    """Where its settings, commands, skills and sub-agents lie."""
    return home.moved("CLAUDE_CONFIG_DIR", ".claude")


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
    hot=True,
)
