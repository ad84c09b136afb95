"""Codex CLI. In `exec` mode it cancels every tool that may write unless the entry approves them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_bus.clients import TOKEN_VARIABLE, TOML, Client, Home, Limits, Server, Signs


@dataclass(frozen=True)
class Codex(Client):
    """Its folder moves with CODEX_HOME; a token stands as the name of a variable."""

    def user_path(self, home: Home) -> Path:
        """`config.toml` in CODEX_HOME, else in `~/.codex`."""
        return home.moved("CODEX_HOME", ".codex") / "config.toml"

    def header(self, server: Server) -> dict[str, Any]:
        """The name of the variable, never a token."""
        return {"bearer_token_env_var": TOKEN_VARIABLE}


_LIMITS = {"startup_timeout_sec": 30, "tool_timeout_sec": 120, "default_tools_approval_mode": "approve"}
"""`required` is left out: a broken bus must not keep Codex from starting."""
CLIENT = Codex(
    name="codex",
    title="Codex",
    project_file=".codex/config.toml",
    format=TOML,
    servers=("mcp_servers",),
    extras=_LIMITS,
    url_extras=_LIMITS,
    token_reference="{}",
    signs=Signs(("codex",), (".codex",)),
    limits=Limits(timeout_key="tool_timeout_sec", timeout_unit_s=1, default_timeout_s=60, sparse=True,
                  notes=("approval_exec", "trusted_project")),
)  # fmt: skip
