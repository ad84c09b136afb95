"""Our server, started as a client would start it: the proof that an entry works."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_bus import __version__
from agent_bus.clients import PROJECT, SPARSE, Client
from agent_bus.clients.found import Entry, FoundFile, options
from agent_bus.doctor import Finding, fail, good, info, warn
from agent_bus.doctor.entry import SECRET_NAME, is_trusted
from agent_bus.doctor.ground import Ground
from agent_bus.doctor.schemas import faults
from agent_bus.doctor.talk import Heard, Question, Start, converse
from agent_bus.errors import BusError
from agent_bus.launchers.environment import ALLOWED_WINDOWS

NAME = "agent-bus"
SLOW_S = 2.0
LEAST_S = 3.0
NEW, OLDER = "2026-07-28", ("2025-06-18", "2025-11-25")
_META = "io.modelcontextprotocol/"
_ABOUT = {"name": "agent-bus-doctor", "version": __version__}
_ENVELOPE = {
    f"{_META}protocolVersion": NEW, f"{_META}clientInfo": _ABOUT, f"{_META}clientCapabilities": {},
}  # fmt: skip
_SHORT_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""What applications get on macOS, whatever the user's shell says."""
_OF_A_RUN = ("AGENT_BUS_RUN_ID", "AGENT_BUS_LEASE_ID", "AGENT_BUS_TASK_ID", "AGENT_BUS_WORKER", "AGENT_BUS_AGENT",
             "AGENT_BUS_ROOT")  # fmt: skip
"""Not in the environment of a client that a person starts."""
DISCOVER = (
    Question("server/discover", {"_meta": _ENVELOPE}, "discover"),
    Question("tools/list", {"_meta": _ENVELOPE}, "tools"),
    Question("tools/call", {"_meta": _ENVELOPE, "name": "system_health", "arguments": {}}, "call"),
)


def _greeting(version: str) -> Question:
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": _ABOUT}
    return Question("initialize", about, version)


INITIALIZE = (_greeting(OLDER[0]), Question("notifications/initialized"), _greeting(OLDER[1]))


def look(ground: Ground, file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """All checks of one entry's server; what follows from an earlier failure is not said again."""
    client = file.client.name
    start = start_of(ground, file, entry)
    if not is_trusted(ground, file, entry):
        yield info("server.start", "foreign", client, path=file.path, program=start.argv[0])
        return
    try:
        patience = _patience_s(ground)
        first = converse(start, DISCOVER, patience)
        if not first.answers and first.fault:
            yield from _noise(client, first)
            yield _dead(client, first, start, patience)
            return
        second = converse(start, INITIALIZE, _patience_s(ground))
    except OSError as error:
        yield fail("server.start", "spawn", client, program=start.argv[0], reason=error)
        return
    yield from judge(client, start.argv, first, second, options(file.client, entry.value))


def judge(
    client: str, argv: tuple[str, ...], first: Heard, second: Heard, given: Mapping[str, str]
) -> Iterator[Finding]:
    """What two conversations show: `first` with the questions DISCOVER, `second` with INITIALIZE.

    Args:
        given: the options of the entry.
    """
    yield from _noise(client, first, second)
    about = first.result("discover").get("serverInfo") or second.result(OLDER[0]).get("serverInfo")
    about = about if isinstance(about, dict) else {}
    if about.get("name", NAME) != NAME:
        yield fail("server.start", "other", client, name=str(about.get("name"))[:60], program=argv[0])
        return
    yield good("server.start", " ".join(argv)[:200], client)
    yield from _version(client, str(about.get("version", "")))
    yield _discover(client, first)
    yield _initialize(client, second)
    yield _time(client, first, second)
    yield from _tools(client, first, given)
    yield _call(client, first)
    if not (first.noise or second.noise):
        yield _end(client, first, second)


def _patience_s(ground: Ground) -> float:
    """How long an answer is waited for. Raises BusError `timeout` if too little time is left to judge by."""
    left = ground.deadline.left(ground.patience_s)
    if left < min(ground.patience_s, LEAST_S):
        raise BusError("timeout", "there was no time left to try it.", "Name fewer clients: --client")
    return left


def start_of(ground: Ground, file: FoundFile, entry: Entry) -> Start:
    """The command line, folder and environment that the client gives a server."""
    value: Mapping[str, Any] = entry.value
    project = ground.project if file.scope == PROJECT else None
    cwd = value.get("cwd")
    folder = Path(cwd) if isinstance(cwd, str) and os.path.isabs(cwd) else project or ground.home.folder
    return Start(file.client.started(value), _environment(ground, file.client, value), folder)


def _environment(ground: Ground, client: Client, value: Mapping[str, Any]) -> dict[str, str]:
    whole = ground.home.environ
    if client.limits.sparse:
        names = {*SPARSE, *(("PATH", "TEMP", "TMP", *ALLOWED_WINDOWS) if sys.platform == "win32" else ())}
        base = {name: text for name, text in whole.items() if name in names or name.upper() in names}
    else:
        base = {name: text for name, text in whole.items() if not SECRET_NAME.search(name) and name not in _OF_A_RUN}
    if ground.home.platform == "darwin" and "short_path" in client.limits.notes:
        base["PATH"] = _SHORT_PATH
    own = value.get("env", value.get("environment"))
    return base | ({str(name): str(text) for name, text in own.items()} if isinstance(own, dict) else {})


def _dead(client: str, heard: Heard, start: Start, patience_s: float) -> Finding:
    """A server that never answered rightly."""
    check = "server.discover" if heard.fault == "wrong_id" else "server.start"
    values = {"program": start.argv[0], "code": heard.code, "seconds": f"{patience_s:.0f}"}
    return replace(fail(check, heard.fault, client, **values), lines=heard.stderr)


def _noise(client: str, *heards: Heard) -> Iterator[Finding]:
    for heard in heards:
        if heard.noise:
            yield fail("server.stdout", "noise", client, line=heard.noise[0])
            return


def _version(client: str, version: str) -> Iterator[Finding]:
    if version != __version__:
        yield warn("version", "entry", client, found=version or "?", ours=__version__)


def _discover(client: str, heard: Heard) -> Finding:
    offered = heard.result("discover").get("supportedVersions")
    if isinstance(offered, list) and NEW in offered:
        return good("server.discover", NEW, client)
    return fail("server.discover", "refused", client, reason=_error(heard, "discover"))


def _initialize(client: str, heard: Heard) -> Finding:
    for version in OLDER:
        given = heard.result(version).get("protocolVersion")
        if given != version:
            reason = _error(heard, version) if given is None else str(given)[:40]
            return fail("server.initialize", "refused", client, version=version, reason=reason)
    return good("server.initialize", ", ".join(OLDER), client)


def _error(heard: Heard, name: str) -> str:
    """Why a question was not answered well, in few words."""
    error = heard.answers.get(name, {}).get("error")
    if isinstance(error, dict):
        return f"{error.get('code')} {str(error.get('message'))[:200]}"
    return heard.fault or "no such result"


def _time(client: str, first: Heard, second: Heard) -> Finding:
    slowest = max(first.first_s, second.first_s)
    if slowest <= SLOW_S:
        return good("server.time", f"{slowest:.1f} s", client)
    return warn("server.time", "slow", client, seconds=f"{slowest:.1f}")


def _tools(client: str, heard: Heard, given: Mapping[str, str]) -> Iterator[Finding]:
    tools = heard.result("tools").get("tools")
    if not isinstance(tools, list):
        yield fail("server.tools", "none", client, reason=_error(heard, "tools"))
        return
    wrong = faults(tools, given.get("tools", ""))
    yield from (fail("server.tools", "wrong", client, fault=fault) for fault in wrong[:3])
    if not wrong:
        yield good("server.tools", len(tools), client)


def _call(client: str, heard: Heard) -> Finding:
    result = heard.result("call")
    if result.get("isError") is False:
        return good("server.call", "", client)
    content = result.get("content")
    text = content[0].get("text", "") if isinstance(content, list) and content and isinstance(content[0], dict) else ""
    reason = str(text)[:300] or _error(heard, "call")
    return replace(fail("server.call", "refused", client, reason=reason), lines=heard.stderr)


def _end(client: str, first: Heard, second: Heard) -> Finding:
    if first.left and second.left:
        return good("server.stdout", "", client)
    return fail("server.stdout", "stays", client)
