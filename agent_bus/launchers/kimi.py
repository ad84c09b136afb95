"""Kimi Code: `kimi --output-format stream-json`, `-p` last."""

from __future__ import annotations

from agent_bus.launchers import Command, Evidence, Failure, Launcher, Permission, Start, events
from agent_bus.launchers.cli import Cli, model, texts
from agent_bus.launchers.reading import conclude
from agent_bus.launchers.workfiles import by_file

_LEVELS: dict[Permission, str] = {"read": "--plan", "edit": "--auto", "full": "--yolo"}
_RETRYABLE, _NO_MODEL = 75, 1
_KINDS = frozenset({"assistant", "result", "error", "meta"})


class Kimi(Cli):
    """Its events are messages with a `role`; a session id stands in some of them."""

    name = "kimi"
    executables: tuple[str, ...] = ("kimi",)
    npm_package = "@moonshot-ai/kimi-code"
    env_prefixes: tuple[str, ...] = ("KIMI_", "MOONSHOT_")
    required_flags = frozenset({"--output-format", "--session"})
    session_keys: tuple[str, ...] = ("session_id", "sessionId")

    def command(self, start: Start) -> Command:
        """What to start."""
        self.keep_level(start)
        argv = [*start.executable, "--output-format", "stream-json", _LEVELS[start.permission], *model(start, "-m")]
        argv += ["-S", start.session_id] if start.resume and start.session_id else []
        return by_file(start, *argv, *start.args, "-p")

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says; code 75 means "later", code 1 before any event that no model is set."""
        found = events.read(output, _KINDS)
        forced: Failure = "quota" if exit_code == _RETRYABLE else ""
        evidence = conclude(
            exit_code=exit_code,
            said=[*texts(found.last("error").get("message")), *texts(found.last("error").get("error"))],
            notes=found.notes,
            finished=exit_code == 0 and bool(found.events),
            wrong=False,
            now=now,
            forced=forced,
            session_id=self.session_in(output),
        )
        if exit_code == _NO_MODEL and not found.events and not evidence.failure:
            return Evidence(**{**vars(evidence), "failure": "config"})
        return evidence


LAUNCHER: Launcher = Kimi()
