"""Where each client looks for role texts and commands, as its documentation says.

Of user folders: `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and the like move them as they move the client's other files. Codex
takes commands as skills; it had prompts, which it has stopped reading. What a client has no place for is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One place of one client.

    Args:
        part: `roles`, `commands` or `hook`.
        form: how the text is written, one of `render.FORMS`.
        user: the path in the client's folder of the user, "" if it has none; `{name}` is a command's name, `{short}`
            the same without `bus-`.
        project: the path in a project, likewise.
        below_home: `user` begins in the home folder instead.
    """

    part: str
    form: str
    user: str = ""
    project: str = ""
    below_home: bool = False


_AGENTS = "AGENTS.md"
PLACES: Mapping[str, tuple[Place, ...]] = {
    "antigravity": (Place("roles", "block", project=_AGENTS),),
    "claude-code": (
        Place("roles", "skill", "skills/using-agent-bus/SKILL.md", ".claude/skills/using-agent-bus/SKILL.md"),
        Place("roles", "agent", "agents/bus-worker.md", ".claude/agents/bus-worker.md"),
        Place("commands", "command", "commands/{name}.md", ".claude/commands/{name}.md"),
        Place("hook", "hook", "settings.json", ".claude/settings.json"),
    ),
    "codex": (
        Place("roles", "block", _AGENTS, _AGENTS),
        Place("commands", "skill_command", ".agents/skills/{name}/SKILL.md", ".agents/skills/{name}/SKILL.md", True),
    ),
    "cursor": (
        Place("roles", "mdc", project=".cursor/rules/agent-bus.mdc"),
        Place("commands", "plain", "commands/{name}.md", ".cursor/commands/{name}.md"),
    ),
    "gemini": (
        Place("roles", "block", "GEMINI.md", "GEMINI.md"),
        Place("commands", "toml", "commands/bus/{short}.toml", ".gemini/commands/bus/{short}.toml"),
    ),
    "kimi": (
        Place("roles", "block", _AGENTS, _AGENTS),
        Place("commands", "skill_command", "skills/{name}/SKILL.md", ".kimi-code/skills/{name}/SKILL.md"),
    ),
    "opencode": (
        Place("roles", "block", _AGENTS, _AGENTS),
        Place("commands", "described", "command/{name}.md", ".opencode/command/{name}.md"),
    ),
    "qwen": (
        Place("roles", "block", "QWEN.md", "QWEN.md"),
        Place("commands", "toml", "commands/bus/{short}.toml", ".qwen/commands/bus/{short}.toml"),
    ),
    "vscode": (
        Place("roles", "block", project=_AGENTS),
        Place("commands", "prompt", "prompts/{name}.prompt.md", ".github/prompts/{name}.prompt.md"),
    ),
    "windsurf": (
        Place("roles", "rule", project=".windsurf/rules/agent-bus.md"),
        Place("commands", "workflow", "global_workflows/{name}.md", ".windsurf/workflows/{name}.md"),
    ),
}
"""The places by client, in the order in which their files are named to people."""
