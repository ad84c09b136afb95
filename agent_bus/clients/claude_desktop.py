"""Claude Desktop (macOS and Windows). Its file takes programs only; servers over HTTP are added in the application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import Client, Home, Limits, Signs


@dataclass(frozen=True)
class ClaudeDesktop(Client):
    """Has no file on Linux."""

    def user_path(self, home: Home) -> Path | None:
        """`claude_desktop_config.json` in the application's folder."""
        folder = home.app_data("Claude", "Claude")
        return folder / "claude_desktop_config.json" if folder else None


CLIENT = ClaudeDesktop(
    name="claude-desktop",
    title="Claude Desktop",
    url_key="",
    signs=Signs((), ("Library/Application Support/Claude", "AppData/Roaming/Claude")),
    limits=Limits(default_timeout_s=60, notes=("fixed_timeout", "short_path")),
    after=("restart_full",),
)
