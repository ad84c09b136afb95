"""The conformance suite's legs: which release of it, of which revision, against which server of ours."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import _env
import anyio

from conformance.bridge import over_stdio
from conformance.node import Tools
from conformance.served import Served, new_bus, with_fixtures

PROGRAM = "dist/index.js"
OLD, NEW = "conformance-0.1", "conformance-0.2"
LEG_S = 600
RANK = ("INFO", "SUCCESS", "SKIPPED", "WARNING", "FAILURE")
"""From good to bad: a check that is made twice counts as its worst."""
STAMPED = re.compile(r"^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$")
BEGUN = re.compile(r"^=== Running scenario: ([\w-]+) ===$", re.MULTILINE)
SUMMARY = "=== SUMMARY ==="
MISSING = "missing fixture"


@dataclass(frozen=True)
class Leg:
    """One run of the suite."""

    name: str
    package: str
    server: str
    revision: str = ""

    def words(self) -> list[str]:
        """What the suite is told beside the address."""
        return ["--suite", "all", *(["--spec-version", self.revision] if self.revision else [])]


@dataclass(frozen=True)
class Ran:
    """What a leg found: per scenario each check's worst status, and what the suite said of it."""

    leg: Leg
    checks: dict[str, dict[str, str]]
    told: dict[str, str]
    missing: list[str]


STDIO, SESSIONS, DEFAULT = "stdio", "HTTP, `--stateful`", "HTTP"
LEGS = {
    leg.name: leg
    for leg in (
        Leg("released", OLD, SESSIONS),
        Leg("2025", NEW, SESSIONS, "2025-11-25"),
        Leg("2026", NEW, SESSIONS, "2026-07-28"),
        Leg("2025-default", NEW, DEFAULT, "2025-11-25"),
        Leg("2026-default", NEW, DEFAULT, "2026-07-28"),
        Leg("2025-stdio", NEW, STDIO, "2025-11-25"),
        Leg("2026-stdio", NEW, STDIO, "2026-07-28"),
    )
}
OF_HTTP = ("server-stateless", "server-session-*", "server-sse-*", "dns-*", "http-*")
"""Scenarios about HTTP itself; over stdio they would test the bridge."""


def known(tools: Tools) -> dict[str, set[str]]:
    """The server scenarios that each release of the suite has."""
    found = {}
    for package in (OLD, NEW):
        words = [*tools.command(package, PROGRAM), "list", "--server"]
        listed = _run(words, env=tools.environment())
        found[package] = set(re.findall(r"^\s+- ([\w-]+)", listed.stdout, re.MULTILINE))
    return found


def run(tools: Tools, leg: Leg, folder: Path) -> Ran:
    """Runs a leg against a server of its own, once the fixtures are known to be there."""
    _env.say(f"suite: {leg.name}")
    results = folder / "results"
    with _server(leg, folder) as served:
        anyio.run(assert_fixtures, served.url)
        words = [*tools.command(leg.package, PROGRAM), "server", "--url", served.url, *leg.words(), "-o", str(results)]
        done = _run(words, cwd=folder, env=tools.environment(), timeout=LEG_S)
    if SUMMARY not in done.stdout:
        _env.fail(f"the suite did not come to its end: {(done.stderr or done.stdout).strip()[-1000:]}")
    checks, told = read(results)
    for name in BEGUN.findall(done.stdout):
        checks.setdefault(name, {"no-result": RANK[-1]})
    if leg.server == STDIO:
        checks = {name: seen for name, seen in checks.items() if not any(fnmatchcase(name, one) for one in OF_HTTP)}
    return Ran(leg, checks, told, [line for line in served.lines if line.startswith(MISSING)])


def _run(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False, **options)


@contextmanager
def _server(leg: Leg, folder: Path) -> Iterator[Served]:
    """The leg's server, with the fixtures."""
    if leg.server == STDIO:
        with over_stdio(new_bus(folder), folder) as served:
            yield served
    else:
        with with_fixtures(folder, leg.server == SESSIONS) as served:
            yield served


def read(results: Path) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Per scenario the checks with their worst status, and the suite's words for what is not well."""
    checks: dict[str, dict[str, str]] = {}
    told: dict[str, str] = {}
    for folder in sorted(results.iterdir()):
        found = STAMPED.match(folder.name)
        if found is None:
            continue
        seen = checks.setdefault(found[1], {})
        for check in json.loads((folder / "checks.json").read_text(encoding="utf-8")):
            name, status = str(check["id"]), str(check["status"])
            seen[name] = worst((seen.get(name, RANK[0]), status))
            words = check.get("errorMessage") or (check.get("details") or {}).get("message")
            if words and status != "SUCCESS":
                told[f"{found[1]}:{name}"] = " ".join(str(words).split())[:200]
    return checks, told


def worst(statuses: Iterable[str]) -> str:
    """The worst of some statuses; one that we do not know is a failure."""
    return max((status if status in RANK else RANK[-1] for status in statuses), key=RANK.index)


async def assert_fixtures(url: str) -> None:
    """Ends the script unless the server shows every fixture, in both eras, beside its own tools.

    Two of the suite's scenarios take "Unknown tool" for success, so that a missing fixture would go unseen.
    """
    from mcp.client.client import Client

    from tests.faces.suite_answers import PROMPTS, RESOURCES, TEMPLATE, TOOLS

    for mode in ("auto", "legacy"):
        async with Client(url, mode=mode) as client:
            there = {
                *(tool.name for tool in (await client.list_tools()).tools),
                *(prompt.name for prompt in (await client.list_prompts()).prompts),
                *(str(resource.uri) for resource in (await client.list_resources()).resources),
                *(one.uri_template for one in (await client.list_resource_templates()).resource_templates),
            }
        lost = {*TOOLS, *PROMPTS, *RESOURCES, TEMPLATE, "dispatch_task"} - there
        if lost:
            _env.fail(f"fixtures are missing ({mode}): {', '.join(sorted(lost))}")
