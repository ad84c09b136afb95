"""Qwen Code: `qwen -o stream-json`, the prompt as standard input."""

from __future__ import annotations

from agent_bus.launchers import Command, Evidence, Launcher, Permission, Start, events
from agent_bus.launchers.cli import Cli, model, server_file, session_id, texts
from agent_bus.launchers.reading import conclude

_MODES: dict[Permission, str] = {"read": "plan", "edit": "auto-edit", "full": "yolo"}


class Qwen(Cli):
    """Its output may be one JSON array; the events in it are the same."""

    name = "qwen"
    executables: tuple[str, ...] = ("qwen",)
    npm_package = "@qwen-code/qwen-code"
    env_prefixes: tuple[str, ...] = ("OPENAI_", "DASHSCOPE_", "QWEN_")
    mints_session = True
    optional_flags = frozenset({"--mcp-config"})
    required_flags = frozenset({"--output-format", "--session-id", "--resume", "--approval-mode"})

    def command(self, start: Start) -> Command:
        """What to start."""
        self.keep_level(start)
        files = server_file(start) if "--mcp-config" in start.flags else {}
        argv = [*start.executable, *(word for path in files for word in ("--mcp-config", str(path)))]
        if start.session_id:
            argv += ["-r" if start.resume else "--session-id", start.session_id]
        argv += ["--approval-mode", _MODES[start.permission], *model(start, "-m"), "-o", "stream-json", *start.args]
        return Command(tuple(argv), files=files)

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says."""
        found = events.read(output, frozenset({"system", "init", "result", "error"}))
        result = found.last("result")
        wrong = result.get("is_error") is True
        return conclude(
            exit_code=exit_code,
            said=[*texts(result.get("error")), *(texts(result.get("result")) if wrong else ())],
            notes=found.notes,
            finished=bool(result),
            wrong=wrong,
            now=now,
            session_id=session_id(result.get("session_id")) or self.session_in(output),
            cost_usd=events.number(result.get("total_cost_usd")),
            tokens=events.total(result.get("usage"), "input_tokens", "output_tokens"),
            turns=events.whole(result.get("num_turns")),
        )


LAUNCHER: Launcher = Qwen()
