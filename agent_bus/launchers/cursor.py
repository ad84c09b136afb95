"""Cursor's CLI: `agent` or `cursor-agent`. It may stay after its result, so its end is not waited for for ever."""

from __future__ import annotations

from agent_bus.launchers import Command, Evidence, Launcher, Permission, Start, events
from agent_bus.launchers.cli import Cli, model, session_id, texts
from agent_bus.launchers.reading import conclude
from agent_bus.launchers.workfiles import by_file


class Cursor(Cli):
    """`read` on a living run's output shows by `finished` that its turn is over."""

    name = "cursor"
    executables: tuple[str, ...] = ("cursor-agent", "agent")
    env_prefixes: tuple[str, ...] = ("CURSOR_",)
    permissions: tuple[Permission, ...] = ("edit", "full")
    optional_flags = frozenset({"--approve-mcps", "--trust"})
    required_flags = frozenset({"--output-format", "--resume", "--workspace"})

    def command(self, start: Start) -> Command:
        """What to start."""
        self.keep_level(start)
        argv = [*start.executable, "-p", "--output-format", "stream-json", "--workspace", str(start.work_dir)]
        argv += [flag for flag in ("--trust", "--approve-mcps") if flag in start.flags]
        argv += ["--resume", start.session_id] if start.resume and start.session_id else []
        argv += [*model(start), *(("--force",) if start.permission == "full" else ())]
        return by_file(start, *argv, *start.args)

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says."""
        found = events.read(output, frozenset({"system", "result", "error"}))
        result = found.last("result")
        wrong = result.get("is_error") is True
        return conclude(
            exit_code=exit_code,
            said=[*(texts(result.get("result")) if wrong else ()), *texts(found.last("error").get("message"))],
            notes=found.notes,
            finished=bool(result),
            wrong=wrong,
            now=now,
            session_id=session_id(result.get("session_id")) or self.session_in(output),
        )


LAUNCHER: Launcher = Cursor()
