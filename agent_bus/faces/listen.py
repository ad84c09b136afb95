"""A listening server: its socket, its tokens, its process life. What it answers is http.py's."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn

from agent_bus.app import Opener
from agent_bus.bus import Caller
from agent_bus.errors import BusError
from agent_bus.faces.guard import LOOPBACK, Names
from agent_bus.faces.http import Site, build_app
from agent_bus.faces.toolbox import Toolbox, offered
from agent_bus.host import state_folder
from agent_bus.settings import HttpToken, Settings
from agent_bus.store.layout import Layout

SHUTDOWN_S = 1
HEALTH_S = 0.5
OWNER = "owner"
"""The identity of whoever can read the token's file: the user who runs this."""


@dataclass(frozen=True)
class Listening:
    """What the command line said about an HTTP server."""

    host: str
    port: int
    tools: str = ""
    sse: bool = False
    stateful: bool = False


def serve_http(settings: Settings, caller: Caller, want: Listening) -> int:
    """Listens until a signal ends it.

    Args:
        settings: of this process; the bus folder need not exist.
        caller: agent and role of whoever sends the user's own token.
        want: where and what.

    Returns:
        The exit code: 0.

    Raises:
        BusError: `conflict` if the port is taken, naming by whom; `invalid` for tools that do not exist.
    """
    token, path = token_of(bus_id(settings) or "no-bus")
    toolboxes = _toolboxes(settings, replace(caller, channel="http"), want, token)
    bound = bind(want.host, want.port)
    port = bound.getsockname()[1]
    tokens = {_digest(token): OWNER} | {t.token_sha256: t.token_sha256 for t in settings.http.tokens}
    names = Names.of(want.host, port, settings.http.allowed_hosts, settings.http.allowed_origins)
    app = build_app(Site(names, toolboxes, tokens, lambda: bus_id(settings), want.sse))
    config = uvicorn.Config(
        app,
        loop="asyncio",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    server = _Server(config)
    server.listen_to_signals()
    _announce(want, port, path)
    server.run(sockets=[bound])
    return 0


class _Server(uvicorn.Server):
    """Ends with 0 on a signal (uvicorn would raise it again), the second time at once."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals as `listen_to_signals` has set them."""
        yield

    def listen_to_signals(self) -> None:
        """To be called before anybody is told that the server is there."""
        names = ("SIGTERM", "SIGINT", "SIGBREAK")
        for number in [getattr(signal, name) for name in names if hasattr(signal, name)]:
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        if self.should_exit:
            os._exit(0)
        self.should_exit = True


def _toolboxes(settings: Settings, caller: Caller, want: Listening, token: str) -> dict[str, Toolbox]:
    """What each token's holder may call: the user's own, and those that the settings bind to an agent."""
    opener = Opener(settings, caller)
    seal = hashlib.sha256(f"request-state {token}".encode()).digest()  # any process may get a client's next request

    def toolbox(who: Caller, tools: str, api: str) -> Toolbox:
        return Toolbox(opener, who, offered(tools, who.role), offered(api, who.role), want.stateful, seal)

    def bound(token: HttpToken) -> Toolbox:
        who = replace(caller, agent=token.agent, role=token.role)
        return toolbox(who, token.tools, token.tools or "all")

    return {OWNER: toolbox(caller, want.tools, "all")} | {t.token_sha256: bound(t) for t in settings.http.tokens}


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        BusError: `conflict` if the port is taken, naming by whom; `invalid` for what is no address here.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform == "win32":  # there, reuse would let two servers share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            hint = "End it, or give another --port (0 = any free one)."
            raise BusError("conflict", f"port {port} is taken{_holder(host, port)}.", hint) from error
        raise BusError("invalid", f"--host {host} cannot be bound: {error.strerror}.", "Use 127.0.0.1.") from error
    return listener


def _holder(host: str, port: int) -> str:
    """Who answers /health at a port, as ` by …`; "" if nobody does in a moment."""
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/health", timeout=HEALTH_S) as response:
            found = json.loads(response.read(10_000))
        return f" by {found['product']} {found['version']} for the bus {found['bus_id'] or '(none)'}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def token_of(bus: str) -> tuple[str, Path]:
    """The user's own token for a bus, made at the first start, and the file that holds it (mode 0600).

    Raises:
        BusError: `unavailable` if it can neither be read nor made.
    """
    path = state_folder() / bus / "http-token"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make_token(path)
        return path.read_text(encoding="ascii").strip(), path
    except OSError as error:
        reason = f"the token file cannot be made: {error.strerror}."
        raise BusError("unavailable", reason, "Make the user's state folder writable.") from error


def _make_token(path: Path) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_urlsafe(32)}\n")
    try:
        os.link(fresh, path)  # two first starts at once: one wins, both read the winner
    except FileExistsError:
        pass
    except OSError:
        if not path.exists():
            os.replace(fresh, path)
    fresh.unlink(missing_ok=True)


def bus_id(settings: Settings) -> str:
    """The id of the bus that the settings name, "" while there is none."""
    if not settings.root:
        return ""
    try:
        layout = Layout.of(Path(settings.root).expanduser(), settings.state_dir, settings.archive_dir)
        return str(layout.read_format().get("bus_id", ""))
    except (BusError, OSError):
        return ""


def _announce(want: Listening, port: int, token: Path) -> None:
    host = f"[{want.host}]" if ":" in want.host else want.host
    say = sys.stderr.write
    say(f"agent-bus mcp: listening on http://{host}:{port}/mcp; the token is in {token}\n")
    if want.sse:
        say("agent-bus mcp: /sse is for old clients only, new ones use /mcp; the SSE transport will go\n")
    if host not in LOOPBACK:
        say(f"agent-bus mcp: warning: other machines can reach {host}, and nothing encrypts the token\n")
    sys.stderr.flush()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
