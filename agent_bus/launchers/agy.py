"""Antigravity's CLI: `agy`. `-p` takes the next word, so it stands last."""

from __future__ import annotations

from agent_bus.launchers import Command, Evidence, Failure, Launcher, Permission, Start, events
from agent_bus.launchers.cli import Cli, model, session_id, texts
from agent_bus.launchers.reading import conclude
from agent_bus.launchers.workfiles import by_file

_LEVELS: dict[Permission, tuple[str, ...]] = {
    "read": ("--mode", "plan"),
    "edit": ("--mode", "accept-edits"),
    "full": ("--dangerously-skip-permissions",),
}


class Agy(Cli):
    """Refused tools end it with code 0, no output and a note on standard error."""

    name = "agy"
    executables: tuple[str, ...] = ("agy",)
    env_prefixes: tuple[str, ...] = ("GEMINI_", "GOOGLE_", "ANTIGRAVITY_")
    required_flags = frozenset({"--output-format", "--conversation"})
    session_keys: tuple[str, ...] = ("conversation_id",)

    def command(self, start: Start) -> Command:
        """What to start."""
        self.keep_level(start)
        argv = [*start.executable, "--output-format", "stream-json", "--print-timeout", f"{start.runtime_s}s"]
        argv += [*_LEVELS[start.permission], *model(start)]
        argv += ["--conversation", start.session_id] if start.resume and start.session_id else []
        return by_file(start, *argv, *start.args, "-p")

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says."""
        found = events.read(output, frozenset({"init", "result", "error"}))
        result = found.last("result")
        denied: Failure = "not_approved" if exit_code == 0 and found.notes and not self._said(output) else ""
        return conclude(
            exit_code=exit_code,
            said=[text for event in reversed(found.events) for text in _error_texts(event)],
            notes=found.notes,
            finished=bool(result),
            wrong=result.get("is_error") is True or result.get("status") == "error",
            now=now,
            forced=denied,
            session_id=session_id(events.inside(found.last("init"), "conversation_id")) or self.session_in(output),
            tokens=events.whole(events.inside(result, "stats", "total_tokens")),
        )

    def _said(self, output: bytes) -> bool:
        return any(events.parse(line) for line in events.lines(output))


def _error_texts(event: events.Event) -> list[str]:
    own = texts(event.get("message")) if event.get("type") == "error" else ()
    return [*texts(event.get("error")), *own]


LAUNCHER: Launcher = Agy()
