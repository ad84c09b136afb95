"""opencode: `opencode run --format json --auto`. Auto approves what is not denied, so the edit level is a deny list."""

from __future__ import annotations

import json

from agent_bus.launchers import Command, Evidence, Launcher, Permission, Start, events
from agent_bus.launchers.cli import Cli, model, texts
from agent_bus.launchers.reading import conclude
from agent_bus.launchers.workfiles import by_file

DENIED = ("bash", "webfetch", "websearch", "external_directory")
"""What the edit level denies unless `allowed_tools` names it."""


class OpenCode(Cli):
    """There is no level that only reads."""

    name = "opencode"
    executables: tuple[str, ...] = ("opencode",)
    npm_package = "opencode-ai"
    env_prefixes: tuple[str, ...] = ("OPENCODE_",)
    permissions: tuple[Permission, ...] = ("edit", "full")
    required_flags = frozenset({"--format", "--session", "--auto"})
    help_words: tuple[str, ...] = ("run",)
    session_keys: tuple[str, ...] = ("sessionID",)

    def command(self, start: Start) -> Command:
        """What to start; the deny list is inline configuration, which goes before the project's own."""
        self.keep_level(start)
        argv = [*start.executable, "run", "--format", "json", "--dir", str(start.work_dir), "--auto"]
        argv += ["-s", start.session_id] if start.resume and start.session_id else []
        started = by_file(start, *argv, *model(start, "-m"), *start.args)
        denied = {tool: "deny" for tool in DENIED if tool not in start.allowed_tools}
        env = {"OPENCODE_CONFIG_CONTENT": json.dumps({"permission": denied})} if start.permission == "edit" else {}
        return Command(started.argv, stdin_prompt=False, files=started.files, env=env)

    def read(self, output: bytes, exit_code: int, signal: int, now: float = 0.0) -> Evidence:
        """What the output of a run says."""
        found = events.read(output, frozenset({"step_finish", "error"}))
        steps = [event for event in found.events if event.get("type") == "step_finish"]
        costs = [c for s in steps if (c := events.number(events.inside(s, "part", "cost"))) is not None]
        counts = [events.total(events.inside(s, "part", "tokens"), "input", "output") for s in steps]
        return conclude(
            exit_code=exit_code,
            said=list(texts(found.last("error").get("error"))),
            notes=found.notes,
            finished=bool(steps) and events.inside(steps[-1], "part", "reason") == "stop",
            wrong=False,
            now=now,
            session_id=self.session_in(output),
            cost_usd=sum(costs) if costs else None,
            tokens=sum(n or 0 for n in counts) if counts else None,
            turns=len(steps) or None,
        )


LAUNCHER: Launcher = OpenCode()
