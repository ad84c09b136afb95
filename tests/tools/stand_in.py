"""A program that stands in for a coding CLI: it answers --version and --help, then does what a scenario file says.

    python stand_in.py SCENARIO [words of the CLI …]

The scenario is JSON: `{"help": text, "version": text, "runs": [[step, …], …], "rest": [step, …]}`; the n-th start
does the n-th list, later ones `rest`. Every start leaves `<scenario>.d/<n>.json`: its argv, stdin, environment, folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CHECKOUT = str(Path(__file__).resolve().parents[2])
HELP = """--output-format --session-id --resume --permission-mode --allowedTools --mcp-config --permission-prompts
--disallowedTools --settings --model --max-budget-usd --verbose --json --skip-git-repo-check --cd --sandbox --config
--prompt --approval-mode --allowed-mcp-server-names --skip-trust"""


def main() -> None:
    scenario_file, words = Path(sys.argv[1]), sys.argv[2:]
    scenario = json.loads(scenario_file.read_text(encoding="utf-8"))
    if "--version" in words:
        count(scenario_file, "probe")
        print(scenario.get("version", "1.2.3 (stand-in)"))
        return
    if "--help" in words:
        print(scenario.get("help", HELP))
        return
    number = count(scenario_file, "start")
    runs = scenario.get("runs", [])
    steps = runs[number - 1] if number <= len(runs) else scenario.get("rest", [])
    note(scenario_file, number, words)
    for step in steps:
        name, *values = step if isinstance(step, list) else [step]
        STEPS[name](*[filled(v, words) for v in values])


def count(scenario_file: Path, kind: str) -> int:
    """The number of this start, also among several processes."""
    folder = Path(f"{scenario_file}.d")
    folder.mkdir(exist_ok=True)
    for n in range(1, 100_000):
        with suppress(FileExistsError):
            os.close(os.open(folder / f"{kind}-{n}", os.O_CREAT | os.O_EXCL))
            return n
    raise AssertionError("too many starts")


def note(scenario_file: Path, number: int, words: list[str]) -> None:
    data = {
        "argv": words,
        "stdin": sys.stdin.read(),
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "pid": os.getpid(),
        "at": time.time(),
        "program": sys.argv[0],
    }
    target = Path(f"{scenario_file}.d") / f"{number}.json"
    temp = target.with_suffix(".part")
    temp.write_text(json.dumps(data), encoding="utf-8")
    os.replace(temp, target)


def filled(value: Any, words: list[str]) -> Any:
    """A step's value with `{session}` replaced by the session that was asked for, and variables by their values."""
    if not isinstance(value, str):
        return value
    flags = ("--session-id", "--resume", "-r")
    session = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in flags), "none")
    return value.replace("{session}", session).replace("{task}", os.environ.get("AGENT_BUS_TASK_ID", ""))


def say(text: str) -> None:
    print(text, flush=True)


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def flood(megabytes: int) -> None:
    """Much output, a line of 10 MB and bytes that are no UTF-8."""
    out = sys.stdout.buffer
    for n in range(megabytes):
        out.write(b'{"type":"noise","text":"' + b"x" * 1_048_500 + b'"}\n')
        if n == 1:
            out.write(b"\xff\xfe\x00broken\n" + b"y" * 10_000_000 + b"\n")
    out.flush()


def report(status: str = "completed", summary: str = "done") -> None:
    """Reports through the yard's door: the verb of the command line, without the time of a further Python."""
    knock("report", status=status, summary=summary)


def call_bus() -> None:
    """A call that is no report: the worker has received its task."""
    knock("receive")


def knock(verb: str, **given: str) -> None:
    """Lets the yard call a verb as this run's worker, with the run's own environment, and waits for it."""
    import socket

    port = int(Path(f"{sys.argv[1]}.door").read_text(encoding="ascii"))
    with socket.create_connection(("127.0.0.1", port), 20) as door:
        ours = {k: v for k, v in os.environ.items() if k.startswith("AGENT_BUS_")}
        door.sendall(json.dumps({"verb": verb, "env": ours, **given}).encode() + b"\n")
        answer = door.makefile("rb").readline().decode()
    if answer.strip() != "ok":
        complain(f"{verb}: {answer}")


def report_by_cli(summary: str = "done by CLI") -> None:
    """Reports by the command line, as the prompt says to workers without bus tools."""
    import subprocess

    words = ["report", os.environ["AGENT_BUS_TASK_ID"], "--worker", os.environ["AGENT_BUS_WORKER"]]
    words += ["--lease", os.environ["AGENT_BUS_LEASE_ID"], "--status", "completed", "--summary-file", "-"]
    code = f"import sys; sys.path.insert(0, {CHECKOUT!r})\nfrom agent_bus.faces.cli import main\nsys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, *words], input=summary, text=True, capture_output=True)
    if done.returncode:
        complain(f"agent-bus report: {done.stderr}")


def report_by_mcp(summary: str = "done by MCP") -> None:
    """Reports as a real client does: receive_task, then submit_report, over stdio to the server it was told of."""
    import subprocess

    words = sys.argv[2:]
    entry = json.loads(Path(words[words.index("--mcp-config") + 1]).read_text(encoding="utf-8"))["mcpServers"]["bus"]
    env = {**os.environ, **entry.get("env", {})}
    server = subprocess.Popen(
        [entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    )
    sink, source = server.stdin, server.stdout
    assert sink is not None
    assert source is not None
    replies: dict[int, Any] = {}

    def ask(number: int, method: str, params: dict[str, Any]) -> Any:
        sink.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        sink.flush()
        while number not in replies:
            line = json.loads(source.readline())
            if "id" in line:
                replies[line["id"]] = line
        return replies[number]["result"]

    client = {"name": "stand-in", "version": "1"}
    ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    sink.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    sink.flush()
    got = ask(2, "tools/call", {"name": "receive_task", "arguments": {"agent_name": os.environ["AGENT_BUS_AGENT"]}})
    held = got["structuredContent"]
    assert held["already_held"], held
    arguments = {
        "task_id": held["task"]["task_id"],
        "worker": os.environ["AGENT_BUS_WORKER"],
        "status": "completed",
        "summary": summary,
        "lease_id": held["lease_id"],
    }
    ask(3, "tools/call", {"name": "submit_report", "arguments": arguments})
    sink.close()
    server.wait(10)


def child(kind: str = "sleep", seconds: float = 60.0) -> None:
    """A child that outlives this process: `sleep`, `deaf` (ignores TERM)."""
    import subprocess

    code = "import signal,time,sys\n"
    code += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if kind == "deaf" else ""
    code += f"print('child', flush=True)\ntime.sleep({seconds})\n"
    started = subprocess.Popen([sys.executable, "-c", code])
    with open(f"{sys.argv[1]}.d/children", "a", encoding="ascii") as file:
        file.write(f"{started.pid}\n")


def born_late() -> None:
    """On TERM a child is born, then this process ends."""

    def give_birth(*_: object) -> None:
        child("sleep", 60.0)
        os._exit(0)

    signal.signal(signal.SIGTERM, give_birth)


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def wait_for(path: str, seconds: float = 30.0) -> None:
    """Until a file is there."""
    deadline = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.02)


def tick(path: str, seconds: float = 30.0) -> None:
    """Counts in a file until it is told to end, so that one sees whether it runs."""
    deadline = time.monotonic() + seconds
    n = 0
    while not os.path.exists(f"{path}.end") and time.monotonic() < deadline:
        n += 1
        Path(f"{path}.part").write_text(str(n), encoding="ascii")
        os.replace(f"{path}.part", path)
        time.sleep(0.02)


STEPS: dict[str, Callable[..., None]] = {
    "print": say,
    "stderr": complain,
    "flood": flood,
    "exit": lambda code: os._exit(code),
    "sleep": time.sleep,
    "report": report,
    "call": call_bus,
    "cli": report_by_cli,
    "mcp": report_by_mcp,
    "child": child,
    "born_late": born_late,
    "deaf": deaf,
    "wait_for": wait_for,
    "tick": tick,
}

if __name__ == "__main__":
    main()
    sys.stdout.flush()
