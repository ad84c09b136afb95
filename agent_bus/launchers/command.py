"""Any program: the array of the settings as it is. What it may do we cannot know, so only `full` is promised."""

from __future__ import annotations

from agent_bus.launchers import Command, Evidence, Launcher, Permission, Start, events
from agent_bus.launchers.cli import Cli, session_id, texts
from agent_bus.launchers.output import OURS
from agent_bus.launchers.reading import conclude

_TAIL = 64 * 1024


class Program(Cli):
    """`{session}` and `{prompt_file}` in the array are replaced; with the latter standard input is empty."""

    name = "command"
    permissions: tuple[Permission, ...] = ("full",)

    def command(self, start: Start) -> Command:
        """What to start."""
        self.keep_level(start)
        words = (*start.executable, *start.args)
        named = any("{prompt_file}" in word for word in words)
        session = start.session_id if start.resume else ""
        argv = (w.replace("{session}", session).replace("{prompt_file}", str(start.prompt_file)) for w in words)
        return Command(tuple(argv), stdin_prompt=not named)

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """The exit code, and what the last line says if it is a JSON object."""
        said = _last_object(output)
        evidence = conclude(
            exit_code=exit_code,
            said=list(texts(said.get("error"))),
            notes=(),
            finished=exit_code >= 0,
            wrong=False,
            now=now,
            session_id=session_id(said.get("session_id")),
            cost_usd=events.number(said.get("cost_usd")),
            tokens=events.whole(said.get("tokens")),
        )
        return Evidence(**{**vars(evidence), "failure": "", "option": "", "until": 0.0})

    def session_in(self, output: bytes) -> str:
        """Known at the end only."""
        return session_id(_last_object(output).get("session_id"))


def _last_object(output: bytes) -> events.Event:
    """The JSON object of the last line that is not ours, {} if it is none."""
    lines = [line for line in output[-_TAIL:].split(b"\n") if line.strip() and not line.startswith(OURS.encode())]
    found = events.load(lines[-1].decode("utf-8", "replace")) if lines else None
    return found if isinstance(found, dict) else {}


LAUNCHER: Launcher = Program()
