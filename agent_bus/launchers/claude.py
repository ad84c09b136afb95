"""Claude Code: `claude -p` with stream-json. Its result object's `is_error` counts, its `subtype` proves nothing."""

from __future__ import annotations

from typing import Any

from agent_bus.launchers import Command, Evidence, Failure, Launcher, Permission, Start, events
from agent_bus.launchers.cli import SERVER, Cli, known, model, server_file, session_id, texts
from agent_bus.launchers.reading import conclude

_MODES: dict[Permission, str] = {"read": "dontAsk", "edit": "acceptEdits", "full": "bypassPermissions"}
_READ_TOOLS = ("Read", "Grep", "Glob")
_STATUS: dict[int, Failure] = {401: "login", 403: "login", 429: "quota", 529: "quota"}
_TOKENS = ("input_tokens", "output_tokens", "cache_creation_input_tokens")


class Claude(Cli):
    """The prompt is standard input; variadic flags stand before other flags, so that they take no word but theirs."""

    name = "claude"
    executables: tuple[str, ...] = ("claude",)
    npm_package = "@anthropic-ai/claude-code"
    env_prefixes: tuple[str, ...] = (
        "ANTHROPIC_",
        "AWS_",
        "GOOGLE_",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_",
        "DISABLE_",
        "MCP_",
    )
    mints_session = True
    optional_flags = frozenset({"--permission-prompts", "--max-budget-usd", "--disallowedTools", "--settings"})
    required_flags = frozenset(
        {"--output-format", "--session-id", "--resume", "--permission-mode", "--allowedTools", "--mcp-config"}
    )

    def command(self, start: Start) -> Command:
        """What to start: a minted session is made by `--session-id` and gone on with by `--resume`."""
        self.keep_level(start)
        files = server_file(start, alwaysLoad=True)
        argv = [*start.executable, "-p"]
        if start.session_id:
            argv += ["--resume" if start.resume else "--session-id", start.session_id]
        argv += ["--allowedTools", *self._tools(start)]
        argv += known(start, "--disallowedTools", "AskUserQuestion")
        argv += [word for path in files for word in ("--mcp-config", str(path))]
        argv += [*known(start, "--settings", start.settings_file)] if start.settings_file else []
        argv += ["--permission-mode", _MODES[start.permission], *known(start, "--permission-prompts", "none")]
        argv += [*known(start, "--max-budget-usd", f"{start.budget_usd:.2f}")] if start.budget_usd > 0 else []
        argv += [*model(start), "--output-format", "stream-json", "--verbose", *start.args]
        return Command(tuple(argv), files=files)

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says."""
        found = events.read(output, frozenset({"system", "result"}))
        result = found.last("result")
        status = result.get("api_error_status")
        return conclude(
            exit_code=exit_code,
            said=[*texts(result.get("result")), *texts(result.get("errors"))],
            notes=found.notes,
            finished=bool(result),
            wrong=result.get("is_error") is True,
            now=now,
            forced=_STATUS.get(status, "") if isinstance(status, int) else "",
            session_id=session_id(result.get("session_id")) or self.session_in(output),
            cost_usd=events.number(result.get("total_cost_usd")),
            tokens=events.total(result.get("usage"), *_TOKENS),
            turns=events.whole(result.get("num_turns")),
            denials=_denials(result.get("permission_denials")),
            session_totals=("cost_usd",),
        )

    def _tools(self, start: Start) -> list[str]:
        own = _READ_TOOLS if start.permission == "read" else ()
        return [f"mcp__{SERVER}", *own, *start.allowed_tools]


def _denials(value: Any) -> tuple[str, ...]:
    """The names of the tools that were not allowed, each once, at most 20."""
    found = [events.text(events.inside(one, "tool_name")) for one in value] if isinstance(value, list) else []
    return tuple(dict.fromkeys(name[:100] for name in found if name))[:20]


LAUNCHER: Launcher = Claude()
