"""Gemini CLI: `gemini -p ""` with stream-json. Our server is the user's installed entry; exit codes tell most."""

from __future__ import annotations

from agent_bus.launchers import Command, Evidence, Failure, Launcher, Permission, Start, events
from agent_bus.launchers.cli import SERVER, Cli, known, model, texts
from agent_bus.launchers.reading import conclude

_MODES: dict[Permission, str] = {"read": "default", "edit": "auto_edit", "full": "yolo"}
_CODES: dict[int, Failure] = {41: "login", 52: "config", 55: "config"}
_BAD_INPUT, _TURN_LIMIT = 42, 53


class Gemini(Cli):
    """What would ask is denied without a terminal, so `default` reads only."""

    name = "gemini"
    executables: tuple[str, ...] = ("gemini",)
    npm_package = "@google/gemini-cli"
    env_prefixes: tuple[str, ...] = ("GEMINI_", "GOOGLE_")
    mints_session = True
    optional_flags = frozenset({"--resume", "--skip-trust", "--allowed-mcp-server-names"})
    required_flags = frozenset({"--output-format", "--session-id", "--approval-mode"})

    def command(self, start: Start) -> Command:
        """What to start; a session that cannot be resumed is a new one of the CLI's own naming."""
        self.keep_level(start)
        argv = [*start.executable, "-p", "", *known(start, "--allowed-mcp-server-names", SERVER)]
        if start.session_id and start.resume:
            argv += ["-r", start.session_id] if "--resume" in start.flags else []
        elif start.session_id:
            argv += ["--session-id", start.session_id]
        argv += ["--approval-mode", _MODES[start.permission], *model(start, "-m"), *known(start, "--skip-trust")]
        return Command((*argv, "-o", "stream-json", *start.args))

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says."""
        found = events.read(output, frozenset({"init", "result", "error"}))
        result = found.last("result")
        errors = [text for event in reversed(found.events) for text in (*texts(event.get("error")), *_message(event))]
        limit = exit_code == _TURN_LIMIT
        evidence = conclude(
            exit_code=exit_code,
            said=["the turn limit was reached"] if limit else errors,
            notes=() if limit else found.notes,
            finished=bool(result),
            wrong=result.get("status") == "error",
            now=now,
            forced=_CODES.get(exit_code, ""),
            session_id=self.session_in(output),
            tokens=events.whole(events.inside(result, "stats", "total_tokens")),
        )
        if exit_code == _BAD_INPUT and not evidence.failure:
            return Evidence(**{**vars(evidence), "failure": "config"})
        return evidence


def _message(event: events.Event) -> list[str]:
    return list(texts(event.get("message"))) if event.get("type") == "error" else []


LAUNCHER: Launcher = Gemini()
