"""Qwen Code: as Gemini CLI, in a folder of its own."""

from __future__ import annotations

from dataclasses import replace

from agent_bus.clients import Signs, gemini

CLIENT = replace(
    gemini.CLIENT,
    name="qwen",
    title="Qwen Code",
    user_file=".qwen/settings.json",
    project_file=".qwen/settings.json",
    signs=Signs(("qwen",), (".qwen",)),
)
