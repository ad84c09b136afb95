"""Who may call over HTTP, checked before anything else sees a request: Host, Origin, token, size of the body.

Only by this server's own names (else any web page could reach it by a name of the page's own), with the token on
every request, and the body is cut off while it is read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_bus.errors import HTTP_STATUS, BusError
from agent_bus.faces.exchange import EXCHANGE_KEY, Exchange

BODY_BYTES = 4 * 1024 * 1024
IDENTITY_KEY = "agent_bus.identity"
OPEN_PATH = "/health"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_FIXED = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


@dataclass(frozen=True)
class Names:
    """The names under which this server may be called.

    Args:
        hosts: values of the Host header.
        origins: values of the Origin header.
    """

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def of(cls, host: str, port: int, hosts: list[str], origins: list[str]) -> Names:
        """The own names at a port, and those that the settings add."""
        shown = f"[{host}]" if ":" in host else host
        own = {f"{name}:{port}" for name in (*LOOPBACK, shown) if name not in ("0.0.0.0", "[::]")}
        own |= {known for name in hosts for known in (name.lower(), f"{name.lower()}:{port}")}
        return cls(frozenset(own), frozenset({f"http://{name}" for name in own} | set(origins)))

    def check(self, headers: Headers, path: str) -> None:
        """Raises BusError `refused` for a request that came by another name or from another page."""
        hosts, origin = headers.getlist("host"), headers.get("origin")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if path == OPEN_PATH and host.rpartition(":")[0] in LOOPBACK:
            return  # anybody on this machine may ask who listens here
        if host not in self.hosts:
            hint = "Use http://127.0.0.1 with the port, or add the name to http.allowed_hosts."
            raise BusError("refused", "the Host header names another server.", hint)
        if origin is not None and origin not in self.origins:
            raise BusError("refused", "the request comes from a foreign page (Origin).", "See http.allowed_origins.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise BusError("refused", "the request comes from a foreign page (Sec-Fetch-Site).")


class Guard:
    """ASGI middleware in front of everything.

    Args:
        app: what is guarded.
        names: the server's own names.
        tokens: identity by SHA-256 (hex) of the token.
    """

    def __init__(self, app: ASGIApp, names: Names, tokens: Mapping[str, str]) -> None:
        self._app = app
        self._names = names
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request: checked, read, and followed until its answer is out."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        send = _with_fixed_headers(send)
        try:
            self._names.check(Headers(scope=scope), scope["path"])
            if scope["path"] != OPEN_PATH:
                scope[IDENTITY_KEY] = self._identity(Headers(scope=scope))
            body = await _read(scope, receive)
        except BusError as error:
            await refusal(error)(scope, receive, send)
            return
        if body is not None:
            await _Followed(body, receive, send).run(self._app, scope)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _identity(self, headers: Headers) -> str:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(given.strip().encode()).hexdigest()
        found = [name for known, name in self._tokens.items() if hmac.compare_digest(known, digest)]
        if scheme.lower() != "bearer" or not found:
            hint = "Send Authorization: Bearer TOKEN; the server says at its start where the token is."
            raise BusError("unauthorized", "the token is missing or wrong.", hint)
        return found[0]


async def _read(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None if the client went away before its end.

    Raises:
        BusError: `too_large`, as soon as that is known.
    """
    declared = Headers(scope=scope).get("content-length", "")
    size = int(declared) if declared.isascii() and declared.isdigit() else 0
    parts = bytearray()
    while size <= BODY_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts += message.get("body", b"")
        size = max(size, len(parts)) if len(parts) > BODY_BYTES else size
        if len(parts) <= BODY_BYTES and not message.get("more_body", False):
            return bytes(parts)
    raise BusError("too_large", f"the body has {size} bytes or more, the limit is {BODY_BYTES}.")


class _Followed:
    """A request whose client may leave: then its waits end, and what it took is given back."""

    def __init__(self, body: bytes, receive: Receive, send: Send) -> None:
        self._exchange = Exchange()
        self._body: bytes | None = body
        self._receive = receive
        self._send = send
        self._answered = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        """Lets the app answer; it is cancelled if the client leaves before the answer is out."""
        scope[EXCHANGE_KEY] = self._exchange
        try:
            async with anyio.create_task_group() as around:
                around.start_soon(self._watch, around.cancel_scope)
                await app(scope, self._replay, self._forward)
                around.cancel_scope.cancel()
        finally:
            if not self._answered:
                await self._exchange.lost()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._answered:  # what an app does after its answer goes on
            await self._exchange.lost()
            scope.cancel()

    async def _replay(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._exchange.gone.wait()
        return {"type": "http.disconnect"}

    async def _forward(self, message: Message) -> None:
        await self._send(message)
        ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        if ended and not self._exchange.gone.is_set():
            self._answered = True
            self._exchange.arrived()


def refusal(error: BusError, status: int = 0) -> Response:
    """An error as every answer of this face has it."""
    headers = {"WWW-Authenticate": "Bearer"} if error.code == "unauthorized" else None
    return answer({"error": error.as_dict()}, status or HTTP_STATUS[error.code], headers)


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, in the characters it was written in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(), status, headers, "application/json")


def _with_fixed_headers(send: Send) -> Send:
    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() != b"cache-control"]
            message = {**message, "headers": [*kept, *_FIXED]}
        await send(message)

    return forward
