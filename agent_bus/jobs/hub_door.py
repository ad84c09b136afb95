"""Who may come into the hub: by its own names, from its own pages, with a token."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from websockets.datastructures import Headers

from agent_bus.bus import Caller
from agent_bus.settings import HttpSettings

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Door:
    """What is checked of a connection.

    Args:
        tokens: who it is, by the SHA-256 (hex) of the token.
        hosts: further names of this server (Host header).
        origins: further pages that may connect (Origin header).
    """

    tokens: Mapping[str, Caller]
    hosts: frozenset[str] = field(default_factory=frozenset)
    origins: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, token: str, settings: HttpSettings, caller: Caller) -> Door:
        """The door for the user's own token, which stands for `caller`, and for those that the settings bind."""
        own = {hashlib.sha256(token.encode()).hexdigest(): caller}
        bound = {t.token_sha256: Caller(t.agent, t.role, channel="ws") for t in settings.tokens}
        hosts = frozenset(name.lower() for name in settings.allowed_hosts)
        return cls({**bound, **own}, hosts, frozenset(settings.allowed_origins))

    def why_not(self, headers: Headers, host: str, port: int) -> str:
        """Why a request is refused whatever its token is; "" if it is not.

        Args:
            host, port: where the hub listens.
        """
        names = {f"{name}:{port}" for name in (*LOOPBACK, f"[{host}]" if ":" in host else host)}
        names |= self.hosts | {f"{name}:{port}" for name in self.hosts}
        given = headers.get_all("Host")
        if len(given) != 1 or given[0].lower() not in names:
            return "the Host header names another server"
        origins = headers.get_all("Origin")
        allowed = {f"http://{name}" for name in names} | self.origins
        return "" if all(o in allowed for o in origins) else "the request comes from a foreign page (Origin)"

    def admit(self, token: object) -> Caller | None:
        """Whom a token stands for; None for a wrong one."""
        digest = hashlib.sha256(str(token).encode("utf-8", "replace")).hexdigest()
        found = [caller for known, caller in self.tokens.items() if hmac.compare_digest(known, digest)]
        return found[0] if found and isinstance(token, str) else None


def token_in(path: str) -> str | None:
    """The token in a request's query, None without one."""
    values = parse_qs(urlsplit(path).query, keep_blank_values=True).get("token")
    return values[0] if values else None
