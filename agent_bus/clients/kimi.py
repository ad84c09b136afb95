"""Kimi Code CLI, and the Kimi CLI before it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import Client, Home, Limits, Signs


@dataclass(frozen=True)
class Kimi(Client):
    """The older program's folder is used if only that is there."""

    def user_path(self, home: Home) -> Path:
        """`mcp.json` in KIMI_CODE_HOME, `~/.kimi-code`, or `~/.kimi` if that is the only one."""
        folder = home.moved("KIMI_CODE_HOME", ".kimi-code")
        older = home.at(".kimi")
        return (older if older.is_dir() and not folder.is_dir() else folder) / "mcp.json"


CLIENT = Kimi(
    name="kimi",
    title="Kimi Code",
    project_file=".kimi-code/mcp.json",
    extras={"startupTimeoutMs": 30_000, "toolTimeoutMs": 120_000},
    url_extras={"startupTimeoutMs": 30_000, "toolTimeoutMs": 120_000},
    signs=Signs(("kimi",), (".kimi-code", ".kimi")),
    limits=Limits(timeout_key="toolTimeoutMs", default_timeout_s=60, notes=("trusted_project", "approve_advice")),
)
