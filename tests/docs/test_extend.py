"""The examples of launchers and notifiers work as they stand, found by the entry points that their pages show."""

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent_bus.clients.registry import GROUP as CLIENTS
from agent_bus.launchers.registry import GROUP as LAUNCHERS
from agent_bus.notifiers import GROUP as NOTIFIERS
from tests.docs import checkout
from tests.docs.checkout import PACKAGE, read

ROBO = """
import json, os, sys
sys.path.insert(0, {package!r})
from agent_bus.faces.cli import main
if "--version" in sys.argv:
    print("robo 1.2.0")
elif "--help" in sys.argv:
    print("--json --allow LEVEL --session ID --no-colour" if sys.argv[1] == "run" else "run")
else:
    sys.stdin.read()
    print(json.dumps({{"type": "begin", "session": "s-1", "argv": sys.argv[1:]}}), flush=True)
    held = ["--lease", os.environ["AGENT_BUS_LEASE_ID"], "--worker", os.environ["AGENT_BUS_WORKER"]]
    main(["report", os.environ["AGENT_BUS_TASK_ID"], *held, "--status", "completed", "--summary", "Said hello."])
    print(json.dumps({{"type": "end", "ok": True, "cost_usd": 0.25}}))
"""
RUN = """
import asyncio, json, threading, time
from agent_bus.app import open_bus
from agent_bus.bus import Caller
from agent_bus.commands import bind
from agent_bus.jobs.launcher import LauncherJob
from agent_bus.jobs.loop import Job, Loop
from agent_bus.settings import load_settings
from agent_bus.store.layout import Layout
from pathlib import Path
settings = load_settings()
assert not settings.problems, settings.problems
bus = open_bus(settings, Caller(role="orchestrator"))
loop, woken = Loop(bus, [Job("launcher", LauncherJob(0.2).tick)]), threading.Event()
deadline = time.monotonic() + 40
with bus.watch.subscribe(woken.set):
    loop.start()
    task_id = bind(bus).dispatch_task("robo", "Say hello.").task_id
    while time.monotonic() < deadline:
        rows = bind(bus).runs(task_id=task_id).runs
        if rows and rows[0]["state"] == "ended":
            break
        woken.wait(0.2)
        woken.clear()
loop.end()
found = asyncio.run(bind(bus).get_reports(task_id=task_id))
print(json.dumps([rows, found.model_dump(mode="json")["reports"]]))
"""


def block(page: str, language: str, number: int = 0) -> str:
    """A code block of a page."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)
    return found[number]


def installed(page: str, group: str, folder: Path) -> dict[str, str]:
    """Puts a page's module into a folder as an installed package would be; the environment in which it is found."""
    ((name, module),) = tomllib.loads(block(page, "toml"))["project"]["entry-points"][group].items()
    package, _, file = module.partition(".")
    (folder / package).mkdir()
    (folder / package / f"{file}.py").write_text(block(page, "python"), encoding="utf-8")
    described = folder / f"{package}-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n", encoding="utf-8")
    (described / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(PACKAGE.parent)))}


def ask(code: str, folder: Path, config: str, **more: str) -> Any:
    """What the code prints as JSON, with the bus in `folder/bus` and these settings."""
    made = checkout.python("from agent_bus.faces.cli import main; sys.exit(main(['init', 'bus']))", folder)
    assert made.returncode == 0, made.stderr
    own = folder / "own.toml"
    own.write_text(f"root = {json.dumps(str(folder / 'bus'))}\n{config}", encoding="utf-8")
    done = checkout.python(code, folder, AGENT_BUS_CONFIG=str(own), **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_example_of_a_launcher_runs_a_task(tmp_path: Path) -> None:
    page = "docs/extend/launcher.md"
    found = installed(page, LAUNCHERS, tmp_path)
    program = tmp_path / "robo.py"
    program.write_text(ROBO.format(package=str(PACKAGE.parent)), encoding="utf-8")
    table = block(page, "toml", 1).replace('"/path/to/project"', json.dumps(str(tmp_path)))
    table += f"command = {json.dumps([sys.executable, str(program)])}\n"
    (run,), (report,) = ask(RUN, tmp_path, table, **found)
    assert (run["outcome"], run["session_id"], run["cost_usd"]) == ("reported", "s-1", 0.25)
    assert report["summary"] == "Said hello."
    log = (tmp_path / "bus" / ".bus" / "runs" / run["task_id"] / "1.log").read_text(encoding="utf-8")
    assert '"argv": ["run", "--json", "--allow", "edit", "--no-colour"]' in log


def test_the_example_of_a_notifier_tells_what_it_is_sent(tmp_path: Path) -> None:
    page = "docs/extend/notifier.md"
    found = installed(page, NOTIFIERS, tmp_path)
    table = block(page, "toml", 1).replace('"/path/to/file"', json.dumps(str(tmp_path / "told")))
    code = "from agent_bus.faces.cli import main; print(main(['notify', 'test', 'tofile']))"
    assert ask(code, tmp_path, table, **found) == 0
    assert " alarm " in (tmp_path / "told").read_text(encoding="utf-8")


@pytest.mark.req("clients:36")
def test_the_example_of_a_client_is_installed_as_its_page_says(tmp_path: Path) -> None:
    page = "docs/extend/client.md"
    found = installed(page, CLIENTS, tmp_path)
    code = "from agent_bus.faces.cli import main; main(['snippet', 'acme', '--json'])"
    entry = json.loads(ask(code, tmp_path, "", **found)["text"])["tools"]["mcp"]["bus"]
    shown = json.loads(block(page, "json"))["tools"]["mcp"]["bus"]
    assert list(entry) == list(shown)
    assert (entry["args"][3:5], entry["on"], entry["timeoutMs"]) == (["--agent", "acme"], True, 120_000)


@pytest.mark.parametrize(
    ("page", "number"),
    [("README.md", 0), ("docs/launcher.md", 0), ("docs/notifications.md", 0), ("docs/extend/launcher.md", 1)],
)
def test_the_settings_that_a_page_shows_are_read_without_a_problem(page: str, number: int, tmp_path: Path) -> None:
    shown = block(page, "toml", number).replace("/path/to/project", tmp_path.as_posix())
    (tmp_path / "shown.toml").write_text(shown, encoding="utf-8")
    code = "from agent_bus.settings import load_settings; print(list(load_settings(sys.argv[-1]).problems))"
    done = checkout.python(code.replace("sys.argv[-1]", repr(str(tmp_path / "shown.toml"))), tmp_path)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
