"""The HTTP server of this bus, if one runs: it answers, to us, for this bus, and to nobody else."""

from __future__ import annotations

import http.client
import json
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_bus import __version__, host
from agent_bus.clients.entries import LOCAL
from agent_bus.clients.found import Entry, FoundFile
from agent_bus.doctor import Finding, fail, good, warn
from agent_bus.doctor.ground import Ground
from agent_bus.operations.health import identity
from agent_bus.store import records

RECORD = "up"
ANSWER_S = 3.0
_ANY = ("0.0.0.0", "::", "")
_FOREIGN = "agent-bus-doctor.invalid"
"""A name that no machine has (RFC 6761): what a page of somebody else would call us by."""


def look(ground: Ground) -> Iterator[Finding]:
    """The server that `agent-bus up` has noted; nothing if none runs."""
    assert ground.layout is not None
    assert ground.bus is not None
    record = records.read(ground.layout, RECORD)
    if record is None or not records.alive(record):
        return
    bus_id, address, port = identity(ground.bus)[1], str(record.get("host", "")), int(record.get("http_port", 0))
    found = [
        *_answers(address, port, bus_id, ground),
        *_refuses(address, port),
        *_open(address),
        *_token(host.state_folder() / bus_id / "http-token"),
    ]
    yield from found or [good("http", f"{address}:{port}")]


def entry(ground: Ground, file: FoundFile, one: Entry) -> Iterator[Finding]:
    """The server whose address a client's entry holds."""
    assert ground.layout is not None
    address, client = file.client.address(one.value), file.client.name
    try:
        url = urlsplit(address)
        name, port = url.hostname or "", url.port or 80
    except ValueError:
        yield fail("http", "silent", client, url=address[:200], reason="no address")
        return
    if name not in LOCAL:
        return  # another machine's server, which this one is not asked to call
    bus_id = identity(ground.bus)[1] if ground.bus else ""
    yield from list(_answers(name, port, bus_id, ground, client)) or [good("http", address, client)]


def _answers(address: str, port: int, bus_id: str, ground: Ground, client: str = "") -> Iterator[Finding]:
    url = f"http://{_called(address)}:{port}"
    try:
        _, body = _ask(address, port, "GET", "/health")
        health: Any = json.loads(body)
    except (OSError, ValueError, http.client.HTTPException) as error:
        yield fail("http", "silent", client, url=url, reason=error or type(error).__name__)
        return
    if not isinstance(health, dict) or health.get("product") != "agent-bus":
        yield fail("http", "stranger", client, url=url)
    elif bus_id and health.get("bus_id") != bus_id:
        yield fail("http", "other_bus", client, url=url, found=health.get("bus_id"), here=bus_id)
    elif health.get("version") != __version__:
        yield warn("version", "running", client, url=url, found=health.get("version"), ours=__version__)


def _refuses(address: str, port: int) -> Iterator[Finding]:
    foreign = {"Host": {"Host": f"{_FOREIGN}:{port}"}, "Origin": {"Origin": f"http://{_FOREIGN}"}, "token": {}}
    for what, headers in foreign.items():
        try:
            status, _ = _ask(address, port, "POST", "/api/system_health", headers)
        except (OSError, http.client.HTTPException):
            return  # that it does not answer has been said
        if status not in (401, 403):
            yield fail("http", "unguarded", what=what, status=status, url=f"http://{_called(address)}:{port}")


def _open(address: str) -> Iterator[Finding]:
    if address not in LOCAL:
        yield warn("http", "open", address=address)


def _token(path: Path) -> Iterator[Finding]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        yield fail("http", "token_gone", path=path, reason=error.strerror or error)
        return
    if sys.platform != "win32" and mode & 0o077:
        yield fail("http", "token_mode", path=path, mode=f"{mode:o}")


def _ask(
    address: str, port: int, method: str, path: str, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    line = http.client.HTTPConnection(_called(address).strip("[]"), port, timeout=ANSWER_S)
    try:
        line.putrequest(method, path, skip_host="Host" in (headers or {}))
        for name, value in {"Content-Type": "application/json", "Content-Length": "0", **(headers or {})}.items():
            line.putheader(name, value)
        line.endheaders()
        answer = line.getresponse()
        return answer.status, answer.read(100_000)
    finally:
        line.close()


def _called(address: str) -> str:
    """Where a server that listens at an address is called from this machine."""
    here = "127.0.0.1" if address in _ANY else address
    return f"[{here}]" if ":" in here else here
