"""VS Code. Its map is `servers`; `mcpServers` in its file has no effect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import JSONC, Client, Home, Limits, Signs


@dataclass(frozen=True)
class VSCode(Client):
    """Its user file lies in the profile's folder."""

    def user_path(self, home: Home) -> Path | None:
        """`mcp.json` of the usual profile."""
        folder = home.app_data("Code/User", "Code/User", ".config/Code/User")
        return folder / "mcp.json" if folder else None

    def dead_places(self, home: Home, project: Path | None) -> tuple[tuple[Path, tuple[str, ...]], ...]:
        """The map of other clients, in its own files."""
        paths = (self.user_path(home), self.project_path(project) if project else None)
        return tuple((path, ("mcpServers",)) for path in paths if path is not None)


CLIENT = VSCode(
    name="vscode",
    title="VS Code",
    project_file=".vscode/mcp.json",
    format=JSONC,
    servers=("servers",),
    extras={"type": "stdio"},
    url_extras={"type": "http"},
    token_reference="${{env:{}}}",
    signs=Signs(("code",), (".config/Code", "Library/Application Support/Code", "AppData/Roaming/Code")),
    limits=Limits(notes=("tool_count_128",)),
    after=("start_server",),
)
