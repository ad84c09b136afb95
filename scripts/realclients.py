#!/usr/bin/env python3
"""Lets the real Claude Code, Codex and Gemini CLI judge what install wrote: `python3 scripts/realclients.py`.

For each, on an empty home: install, the client's own list of servers, install again, uninstall; a table says what each
step showed. Then Claude Code is asked for its first request, with a model's endpoint on loopback: our command, our MCP
prompt and the tools that are always loaded must be in it. The clients come from the npm registry into
`.cache/realclients/`; `--programs FOLDER` takes those in a folder instead. Run by hand: it needs npm, and 1.2 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import _env
from scripted_model import model

HOME = _env.CACHE / "realclients"
PACKAGES = ("node@24", "@anthropic-ai/claude-code@2", "@openai/codex@0", "@google/gemini-cli@0")
TIMEOUT_S = 90
ALWAYS = ("dispatch_task", "receive_task", "submit_report", "update_status", "get_reports")
STEPS = ("install", "seen", "again", "uninstall")


@dataclass(frozen=True)
class Real:
    """A real client: its program, how it shows a server, and what that shows when all is well."""

    program: str
    asks: tuple[str, ...]
    is_well: Callable[[str], bool]


CLIENTS = {
    "claude-code": Real("claude", ("mcp", "get", "bus"), lambda text: "Connected" in text),
    "codex": Real("codex", ("mcp", "get", "bus", "--json"), lambda text: json.loads(text)["enabled"] is True),
    "gemini": Real("gemini", ("mcp", "list"), lambda text: "bus" in text and "Connected" in text),
}
"""Codex starts no server to list it: it says only that it has read the entry."""


def main() -> int:
    """Runs the steps of each client; 1 if one of them went wrong."""
    _env.enter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder with claude, codex and gemini")
    programs = parser.parse_args().programs or installed()
    rows = {name: tried(name, real, programs) for name, real in CLIENTS.items()}
    print(f"{'client':<14}" + "".join(f"{step:<12}" for step in STEPS))
    for name, row in rows.items():
        print(f"{name:<14}" + "".join(f"{'ok' if row[step] == '' else 'FAILED':<12}" for step in STEPS))
    wrong = [f"{name}, {step}: {why}" for name, row in rows.items() for step, why in row.items() if why]
    for name, why in first_requests(programs).items():
        print(f"claude-code, {name}: {why or 'ok'}")
        wrong += [f"{name}: {why}"] if why else []
    print(
        "\n".join(wrong) or "All three clients take the entry, and give it back; the first request is as it should be."
    )
    return 1 if wrong else 0


def installed() -> Path:
    """The folder of the clients' programs, filled from the registry at the first run."""
    npm = shutil.which("npm")
    programs = HOME / "node_modules" / ".bin"
    if programs.is_dir():
        return programs
    if npm is None:
        _env.fail("npm is not on PATH. Install Node 22 or newer (nodejs.org); it brings npm.")
    _env.say(f"npm install into {HOME} (about 1.2 GB, a few minutes)")
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    words = ["install", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES]
    if subprocess.run([npm, *words], cwd=HOME, check=False).returncode != 0:
        _env.fail("npm install failed (its words are above).\n  The network? Run the same again.")
    return programs


def tried(name: str, real: Real, programs: Path) -> dict[str, str]:
    """What went wrong at each step, "" for nothing."""
    with tempfile.TemporaryDirectory(prefix="realclients ") as folder:
        desk = Desk(Path(folder), programs)
        desk.bus("init", "-p", str(desk.root))
        found = {"install": desk.became(name, "added", "install")}
        shown = desk.run([str(programs / real.program), *real.asks])
        found["seen"] = "" if is_well(real, shown) else shown
        found["again"] = desk.became(name, "unchanged", "install")
        found["uninstall"] = desk.became(name, "removed", "uninstall")
        return found


def first_requests(programs: Path) -> dict[str, str]:
    """What is missing in Claude Code's first request to its model, by what was asked; "" for nothing."""
    asks = {
        "/bus-work by and by": ("Take one task from the agent bus", "for this run: by and by"),
        "/mcp__bus__work_loop claude-code": ("You are the agent claude-code of the agent bus",),
    }
    found = {}
    with tempfile.TemporaryDirectory(prefix="realclients ") as folder:
        desk = Desk(Path(folder), programs)
        desk.bus("init", "-p", str(desk.root))
        desk.bus("install", "claude-code", "--with", "roles,commands,approve", "--language", "en")
        for ask, words in asks.items():
            with model() as asked:
                desk.environment |= {
                    "ANTHROPIC_BASE_URL": asked.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
                }  # fmt: skip
                shown = desk.run([str(programs / "claude"), "-p", ask, "--output-format", "json"])
            missing = [f"mcp__bus__{tool}" for tool in ALWAYS if f"mcp__bus__{tool}" not in asked.tools()]
            missing += [word for word in words if word not in asked.text()]
            found[ask] = f"missing {', '.join(missing)}; it said {shown[:500]}" if missing else ""
    return found


def is_well(real: Real, shown: str) -> bool:
    """Whether the client's answer says that all is well."""
    try:
        return real.is_well(shown)
    except (ValueError, KeyError):
        return False


class Desk:
    """An empty home with a bus in it."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.root = folder / "My Vault" / "09_AgentSync"
        self.home = folder / "home"
        self.work = folder / "work"
        for one in (self.home, self.work, folder / "temp"):
            one.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "COMSPEC") if name in os.environ}
        node = programs.parent / "node" / "bin"
        path = os.pathsep.join([str(programs), str(node), kept.pop("PATH", "")])
        homes = {"HOME": str(self.home), "USERPROFILE": str(self.home), "TMPDIR": str(folder / "temp")}
        self.environment = {**kept, **homes, "PATH": path, "LANG": "C.UTF-8", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def run(self, words: list[str]) -> str:
        """What a program prints, on both streams one after the other."""
        done = subprocess.run(
            words, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", errors="replace", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return done.stdout or done.stderr

    def bus(self, *words: str) -> str:
        """What our command line prints."""
        program = Path(sys.prefix) / ("Scripts" if _env.WINDOWS else "bin") / "agent-bus"
        return self.run([str(program), *words, "--root", str(self.root)])

    def became(self, name: str, wanted: str, verb: str) -> str:
        """ "" if the client's file became what was wanted, else what was said."""
        said = self.bus(verb, name, "--json")
        files = json.loads(said).get("files", [])
        return "" if [file["what"] for file in files][:1] == [wanted] else said


if __name__ == "__main__":
    sys.exit(main())
