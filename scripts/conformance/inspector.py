"""The inspector's command line against `agent-bus mcp`, by exit code: 0 done, 1 no connection, 5 a tool's error."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import _env

from conformance.node import Tools
from conformance.served import agent_bus, new_bus, plain, state

PACKAGE, PROGRAM = "@modelcontextprotocol/inspector", "clients/launcher/build/index.js"
CALL_S = 60
ERAS = ("legacy", "modern")
METHODS = {
    "tools/list": (0, ["--method", "tools/list"]),
    "tools/call": (0, ["--method", "tools/call", "--tool-name", "system_health"]),
    "a call that fails": (
        5,
        ["--method", "tools/call", "--tool-name", "acknowledge_report", "--tool-arg", "task_id=t-20200101-000000-000"],
    ),
    "resources/read": (0, ["--method", "resources/read", "--uri", "bus://health"]),
    "prompts/get": (0, ["--method", "prompts/get", "--prompt-name", "work_loop", "--prompt-args", "agent=coder"]),
    "tools/list --strict": (0, ["--method", "tools/list", "--strict"]),
}
OUR_LINE = "agent-bus mcp: "


@dataclass(frozen=True)
class Seen:
    """One call of the inspector: what was asked over what, the exit code, what else was wrong."""

    what: str
    way: str
    wanted: int
    got: int
    wrong: str = ""


def run(tools: Tools, folder: Path) -> list[Seen]:
    """Every method over both transports in both eras, and a server that cannot start."""
    _env.say("inspector")
    root = new_bus(folder / "stdio")
    env = tools.environment(AGENT_BUS_STATE_HOME=state(folder)["AGENT_BUS_STATE_HOME"])
    own = [agent_bus(), "mcp", "--root", str(root), "--tools", "all"]
    with plain(folder / "http") as served:
        token = served.token.read_text(encoding="ascii").strip()
        http = ["--server-url", served.url, "--transport", "http", "--header", f"Authorization: Bearer {token}"]
        return [*_all(tools, env, "stdio", ["--", *own]), *_all(tools, env, "http", http), _broken(tools, env, root)]


def _all(tools: Tools, env: dict[str, str], way: str, target: list[str]) -> Iterator[Seen]:
    for era in ERAS:
        for what, (wanted, words) in METHODS.items():
            done = _call(tools, env, ["--protocol-era", era, *words, *target])
            wrong = "" if done.stdout.strip() else "nothing on stdout"
            yield Seen(what, f"{way}, {era}", wanted, done.returncode, wrong)


def _broken(tools: Tools, env: dict[str, str], root: Path) -> Seen:
    """A configuration that our server refuses: it says so in one line of its own."""
    target = ["--method", "tools/list", "--", agent_bus(), "mcp", "--root", str(root), "--tools", "nonsense"]
    done = _call(tools, env, target)
    ours = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    clear = len(ours) == 1 and ours[0].startswith(OUR_LINE)
    return Seen("a server that cannot start", "stdio", 1, done.returncode, "" if clear else f"stderr: {ours}")


def _call(tools: Tools, env: dict[str, str], words: list[str]) -> subprocess.CompletedProcess[str]:
    command = [*tools.command(PACKAGE, PROGRAM), "--cli", *words]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=env, timeout=CALL_S, check=False
    )
