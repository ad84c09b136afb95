"""`agent-bus mcp`: from the words of the command line to a running server."""

from __future__ import annotations

import logging
import logging.handlers
import os
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path

from agent_bus import app
from agent_bus.bus import Caller
from agent_bus.commands import DuplicateCommand
from agent_bus.errors import BusError
from agent_bus.ids import check_agent
from agent_bus.settings import Settings
from agent_bus.store.layout import Layout

LOG_BYTES, LOG_FILES = 1_000_000, 3


def serve_mcp(
    settings: Settings,
    transport: str = "stdio",
    agent: str = "",
    tools: str = "",
    role: str = "worker",
    host: str = "127.0.0.1",
    port: int = 8200,
    stateful: bool = False,
) -> int:
    """Serves MCP until the client, or a signal, ends it.

    Args:
        settings: of this process; the bus folder need not exist.
        transport: stdio, http or sse.
        agent: the identity of a server that belongs to one agent; "" = AGENT_BUS_AGENT, or none.
        tools: groups with commas between them, `all`, or "" for the role's own.
        role: worker, orchestrator, reviewer or operator.
        host, port: where HTTP listens; port 0 = any free one.
        stateful: keep HTTP sessions in this process.

    Returns:
        The exit code: 0, or 2 for wrong use (stdio ends the process itself).
    """
    agent = agent or os.environ.get("AGENT_BUS_AGENT", "")
    try:
        if agent:
            check_agent(agent, "--agent")
        caller = Caller(agent=agent, role=role)
        if transport == "stdio":
            return _serve_stdio(settings, caller, tools)
        from agent_bus.faces.listen import Listening, serve_http

        log_to(settings)
        app.load_features()
        return serve_http(settings, caller, Listening(host, port, tools, transport == "sse", stateful))
    except (BusError, DuplicateCommand) as error:
        sys.stderr.write(f"agent-bus mcp: {error}\n")
        return 2


def _serve_stdio(settings: Settings, caller: Caller, tools: str) -> int:
    from agent_bus.faces import stdio
    from agent_bus.faces.toolbox import Toolbox, offered

    wire = stdio.claim_wire()
    log_to(settings)
    app.load_features()
    environ = os.environ
    caller = replace(
        caller,
        channel="mcp",
        process=True,
        run=environ.get("AGENT_BUS_RUN_ID", ""),
        lease_id=environ.get("AGENT_BUS_LEASE_ID", ""),
    )
    toolbox = Toolbox(app.Opener(settings, caller), caller, offered(tools, caller.role))
    from agent_bus.faces.mcp import build_server

    stdio.serve(build_server(toolbox), wire)


def log_to(settings: Settings) -> None:
    """Warnings to stderr, and to a file of this host beside the bus's state, if there is a bus."""
    logging.raiseExceptions = False  # a log that cannot be written must not reach the client's terminal
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [stderr]
    state = Layout.of(Path(settings.root).expanduser(), settings.state_dir).state if settings.root else None
    if state is not None and state.is_dir():
        try:
            handlers.append(_log_file(state / "log"))
        except OSError as error:
            sys.stderr.write(f"agent-bus mcp: no log file ({error.strerror})\n")
    logging.basicConfig(
        level=logging.INFO,
        handlers=handlers,
        force=True,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


def _log_file(folder: Path) -> logging.Handler:
    folder.mkdir(exist_ok=True)
    host = re.sub(r"[^\w-]", "_", socket.gethostname())
    path = folder / f"mcp-{host}.log"
    file = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8", delay=True
    )
    file.setLevel(logging.WARNING)
    return file
