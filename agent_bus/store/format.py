"""The content of `.bus/format.json`: the format's number, the bus, its owner host, and where each host keeps the
machine's side (docs/vault-format.md "The owner host").
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from datetime import datetime
from pathlib import Path
from typing import Any, TypeGuard

from agent_bus import host
from agent_bus.times import stamp

FORMAT = 1
MOVED = 2
"""The number in the format.json that stands where older programs look when `state_dir` is set: they refuse to work."""
_HOST_CHARS = 8
_HASH_CHARS = 12


def new_format(now: datetime, epoch: int = 1) -> dict[str, Any]:
    """The content of a new format.json, owned by this host."""
    return {
        "schema": FORMAT,
        "bus_id": f"b-{secrets.token_hex(8)}",
        "owner": {
            "host": host.host_id(),
            "name": socket.gethostname(),
            "boot": host.boot_id(),
            "epoch": epoch,
            "since": stamp(now),
        },
        "created_at": stamp(now),
    }


def is_format(found: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this has the shape of a format.json, of this version or a newer one."""
    if not isinstance(found, dict) or not isinstance(found.get("schema", 1), int):
        return False
    owner = found.get("owner", {})
    return (
        isinstance(owner, dict)
        and isinstance(owner.get("host", ""), str)
        and isinstance(owner.get("epoch", 1), int)
        and isinstance(found.get("former_owners", []), list)
        and isinstance(found.get("state_dirs", {}), dict)
    )


def epoch_of(found: dict[str, Any]) -> int:
    """How often the bus has changed hands; a folder of an older program has had one owner. 0 without an owner."""
    owner = found.get("owner", {})
    return int(owner.get("epoch", 1)) if owner else 0


def label(owner: dict[str, Any]) -> str:
    """The owner as people and notes name it: the host's name and eight digits of its id; "" without an owner."""
    return f"{owner.get('name', '?')}-{short(str(owner['host']))}" if owner.get("host") else ""


def short(host_id: str) -> str:
    """The part of a host id by which notes tell hosts apart: its first eight digits."""
    return host_id.removeprefix("h-")[:_HOST_CHARS]


def is_owner(owner: dict[str, Any]) -> bool:
    """Whether this host is the owner, by its id or by the boot of its kernel: one machine may have several homes
    (clients run servers in sandboxes). A bus without an owner is everybody's.
    """
    return owner.get("host", host.host_id()) == host.host_id() or owner.get("boot") == host.boot_id()


def place_hash(path: Path) -> str:
    """Twelve hex digits for a folder, all links followed: paths are nobody's business on other hosts."""
    return hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogateescape")).hexdigest()[:_HASH_CHARS]


def noted_state(found: dict[str, Any], default: str) -> str:
    """The hash of the state folder that this host uses by format.json; "" if it says nothing of this host.

    Args:
        found: the content of format.json.
        default: the hash of `.bus` in the bus folder, where the owner's state lies if nothing else is noted.
    """
    noted, owner = found.get("state_dirs", {}), found.get("owner", {})
    if host.host_id() in noted:
        return str(noted[host.host_id()])
    if owner and is_owner(owner):
        return str(noted.get(owner.get("host"), default))
    return ""
