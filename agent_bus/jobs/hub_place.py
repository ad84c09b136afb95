"""Where the hub listens, and what the system must give it."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from dataclasses import dataclass

from agent_bus.errors import BusError

PORT = 8123
"""The seed's."""
_FILES = 4096


@dataclass(frozen=True)
class Place:
    """An address; port 0 = any free one."""

    host: str = "127.0.0.1"
    port: int = PORT


def bind(place: Place) -> socket.socket:
    """A bound socket.

    Raises:
        BusError: `conflict` if the port is taken, or the host is none of this machine's.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in place.host else socket.AF_INET)
    if sys.platform == "win32":  # there, reuse would let two hubs share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((place.host, place.port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = f"{place.host}:{place.port} is taken, or no address here ({error.strerror})."
        raise BusError("conflict", why, "End what listens there, or give another port (0 = any free one).") from error
    return listener


def allow_many_files() -> None:
    """Room for a thousand connections, where the system allows it; elsewhere the limit stays."""
    if sys.platform == "win32":
        return  # there, sockets are no files with such a limit
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
