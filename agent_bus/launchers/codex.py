"""Codex: `codex exec --json`. Its MCP servers get almost no environment, and tools must be approved in their entry."""

from __future__ import annotations

import json
from typing import Any

from agent_bus.launchers import Command, Evidence, Launcher, Permission, Start, events
from agent_bus.launchers.cli import CALL_MS, SERVER, Cli, model, session_id, texts
from agent_bus.launchers.reading import conclude

_LEVELS: dict[Permission, tuple[str, ...]] = {
    "read": ("-s", "read-only"),
    "edit": ("-s", "workspace-write"),
    "full": ("--dangerously-bypass-approvals-and-sandbox",),
}
_KINDS = frozenset({"thread.started", "turn.completed", "turn.failed", "error", "item.completed"})
_CANCELLED = "user cancelled MCP tool call"
_OUR_SERVERS = (SERVER, "agent-bus", None)


class Codex(Cli):
    """All flags stand before `resume`, which takes neither a folder nor a sandbox of its own."""

    name = "codex"
    executables: tuple[str, ...] = ("codex",)
    npm_package = "@openai/codex"
    env_prefixes: tuple[str, ...] = ("OPENAI_", "CODEX_", "AZURE_")
    required_flags = frozenset({"--json", "--skip-git-repo-check", "--cd", "--sandbox", "--config"})
    help_words: tuple[str, ...] = ("exec",)
    session_keys: tuple[str, ...] = ("thread_id",)

    def command(self, start: Start) -> Command:
        """What to start; the last word `-` means that the prompt is standard input."""
        self.keep_level(start)
        argv = [*start.executable, "exec", "--json", "--skip-git-repo-check", "-C", str(start.work_dir)]
        argv += [*_LEVELS[start.permission], *model(start, "-m"), *_server(start), *start.args]
        argv += ["resume", start.session_id] if start.resume and start.session_id else []
        return Command((*argv, "-"))

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says. An error event is no end by itself: Codex warns and reconnects with them."""
        found = events.read(output, _KINDS)
        failed, done = found.last("turn.failed"), found.last("turn.completed")
        errors = [text for event in reversed(found.events) for text in _error_texts(event)]
        refused = any(map(_was_refused, found.events)) or any(_CANCELLED in note for note in found.notes)
        return conclude(
            exit_code=exit_code,
            said=[text for text in errors if not text.startswith("Reconnecting")],
            notes=found.notes,
            finished=bool(failed or done),
            wrong=bool(failed),
            now=now,
            forced="not_approved" if refused else "",
            session_id=session_id(events.inside(found.last("thread.started"), "thread_id")),
            tokens=events.total(done.get("usage"), "input_tokens", "output_tokens"),
            session_totals=("tokens",),
        )


def _server(start: Start) -> list[str]:
    """Our server as overrides of the configuration; variables by name only, so that no value stands in argv."""
    if not start.server:
        return []
    entry: dict[str, Any] = {"command": start.server[0], "args": list(start.server[1:])}
    entry |= {"env_vars": sorted(start.server_env), "required": True, "default_tools_approval_mode": "approve"}
    entry |= {"startup_timeout_sec": 30, "tool_timeout_sec": CALL_MS // 1000}
    pairs = (f"mcp_servers.{SERVER}.{key}={_toml(value)}" for key, value in entry.items())
    return [word for pair in pairs for word in ("-c", pair)]


def _toml(value: Any) -> str:
    """A value as TOML; its basic strings are JSON's but for DEL and escaped surrogates, so none is made."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _error_texts(event: events.Event) -> list[str]:
    item = event.get("item")
    if event.get("type") == "item.completed":
        return list(texts(item.get("message"))) if isinstance(item, dict) and item.get("type") == "error" else []
    return [*texts(event.get("message")), *texts(event.get("error"))]


def _was_refused(event: events.Event) -> bool:
    item = event.get("item")
    if not isinstance(item, dict) or item.get("type") != "mcp_tool_call" or item.get("server") not in _OUR_SERVERS:
        return False
    return any(_CANCELLED in text for text in texts(item.get("error")))


LAUNCHER: Launcher = Codex()
