"""Gemini CLI. Headless runs are offered no tools of a server that is not trusted."""

from __future__ import annotations

from agent_bus.clients import JSONC, Client, Limits, Signs

CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    user_file=".gemini/settings.json",
    project_file=".gemini/settings.json",
    format=JSONC,
    extras={"timeout": 120_000},
    approving={"trust": True},
    url_key="httpUrl",
    url_extras={"timeout": 120_000},
    token_reference="${}",
    signs=Signs(("gemini",), (".gemini/settings.json", ".gemini/oauth_creds.json")),
    limits=Limits(timeout_key="timeout", default_timeout_s=600, name_chars=64, notes=("trust_headless",)),
)
