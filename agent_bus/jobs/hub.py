"""The WebSocket hub: shows the journal live, and replays it from an id. A view: whoever misses it has lost nothing.

The forms of its frames: `domain/frames.py`. It runs on an event loop in a thread of its own; nobody listening costs
nothing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from agent_bus import __version__, commands
from agent_bus.bus import Bus, Caller
from agent_bus.domain import frames
from agent_bus.errors import BusError
from agent_bus.jobs.hub_client import Client
from agent_bus.jobs.hub_door import Door, token_in
from agent_bus.jobs.hub_place import Place, allow_many_files, bind
from agent_bus.launchers.output import redact
from agent_bus.operations import stop
from agent_bus.store import records
from agent_bus.store.follow import FileFollower, Follower, JournalFollower

CLIENTS = 1000
REPLAY_LINES = 10_000
AUTH_S, GRACE_S, PING_S, POLL_S = 5.0, 0.3, 20.0, 0.2
FRAME_BYTES = 64 * 1024
NO_TOKEN = 4401
_BAD_FRAMES = 3
_AT_ONCE = 50
_RECORD = "job-hub"
_BEAT_S = 5.0

log = logging.getLogger(__name__)
_wire_log = logging.getLogger(f"{__name__}.wire")
_wire_log.setLevel(logging.CRITICAL)  # its lines name request paths, in which a token may stand


class Hub:
    """One hub over one bus.

    Args:
        bus: the open bus.
        door: who may come in.
        place: where it listens.
        ping_s: seconds between two pings.
    """

    def __init__(self, bus: Bus, door: Door, place: Place, ping_s: float = PING_S) -> None:
        self._bus = bus
        self._door = door
        self._place = place
        self._ping_s = ping_s
        self._clients: set[Client] = set()
        self._follower: Follower | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event
        self._wake: asyncio.Event
        self.port = 0

    # --- life

    def start(self) -> int:
        """Listens, and gives the port.

        Raises:
            BusError: `conflict` if the port is taken, `unavailable` if it does not start.
        """
        listener = bind(self._place)
        self.port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(listener, ready)), name="hub", daemon=True)
        self._thread.start()
        while not ready.wait(0.1):
            if not self._thread.is_alive():
                raise BusError("unavailable", "the hub did not start.", "The log says why.")
        return self.port

    def end(self, within_s: float = 5.0) -> None:
        """Closes every connection and ends."""
        if self._loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # its loop has ended by itself
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(within_s)
        if self._bus.layout is not None:
            records.remove(self._bus.layout, _RECORD)

    async def _run(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop, self._ended, self._wake = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        allow_many_files()
        async with self._serve(listener):
            ready.set()
            wake = self._wake.set
            with self._bus.watch.subscribe(lambda: self._call(wake)):
                tasks = [asyncio.create_task(part) for part in (self._follow(), self._ping(), self._beat())]
                await self._ended.wait()
                for task in tasks:
                    task.cancel()

    def _serve(self, listener: socket.socket) -> AbstractAsyncContextManager[Server]:
        return serve(
            self._connection, sock=listener, process_request=self._check, compression=None, ping_interval=None,
            max_size=FRAME_BYTES, close_timeout=10, logger=_wire_log, server_header=None, backlog=CLIENTS,
        )  # fmt: skip

    def _call(self, act: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            assert self._loop is not None
            self._loop.call_soon_threadsafe(act)

    async def _beat(self) -> None:
        """The hub's sign of life, for system_health and for whoever looks for its port."""
        while self._bus.layout is not None:
            value = {"job": "hub", "last_tick": self._bus.stamp(), "failures": 0, "error": "", "port": self.port}
            with suppress(OSError):
                records.write(self._bus.layout, _RECORD, value)
            await asyncio.sleep(_BEAT_S)

    # --- what happens goes out

    async def _follow(self) -> None:
        while True:
            if not self._clients:
                self._wake.clear()
                await self._wake.wait()
                continue
            for number, line in enumerate(self._look(), 1):
                frame = frames.event_frame(line)
                for client in tuple(self._clients):
                    client.offer(line, frame)
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)  # whoever reads takes these before the next come
            with suppress(TimeoutError):  # the journal's line comes after the hint of its change
                await asyncio.wait_for(self._wake.wait(), POLL_S)
            self._wake.clear()

    def _look(self) -> list[dict[str, Any]]:
        try:
            return self._follower.poll() if self._follower else []
        except OSError as error:
            log.warning("hub: the journal cannot be read (%s)", error.strerror)
            return []

    def _come_in(self, connection: ServerConnection, caller: Caller) -> Client:
        """A new client, from the journal's present end on."""
        if not self._clients:
            folder = self._bus.layout.state / "journal" if self._bus.layout is not None else None
            self._follower = FileFollower(folder) if folder else JournalFollower(self._bus.journal)
        assert self._follower is not None
        client = Client(connection, caller, self._follower.last)
        self._clients.add(client)
        self._wake.set()
        return client

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_s)
            for client in tuple(self._clients):
                client.ping()

    # --- a connection

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        why = self._door.why_not(request.headers, self._place.host, self.port)
        if why:
            return connection.respond(HTTPStatus.FORBIDDEN, f"refused: {why}.\n")
        if len(self._clients) >= CLIENTS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"busy: {CLIENTS} clients are here already.\n")
        return None

    async def _connection(self, connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            caller = await self._who(connection)
            if caller is None:
                await connection.close(NO_TOKEN, "the token is missing or wrong")
                return
            client = self._come_in(connection, caller)
            writer = asyncio.create_task(client.write())
            grace = asyncio.create_task(self._go_live_soon(client))
            try:
                client.say(type="hello", id=client.began, version=__version__, stopped=stop.read(self._bus))
                async for message in connection:
                    await self._receive(client, message)
            finally:
                self._clients.discard(client)
                for task in (writer, grace):
                    task.cancel()

    async def _who(self, connection: ServerConnection) -> Caller | None:
        """Whom the token in the address, or else in the first frame, stands for."""
        assert connection.request is not None
        token: object = token_in(connection.request.path)
        if token is None:
            with suppress(TimeoutError, ValueError):
                frame = frames.read_frame(await asyncio.wait_for(connection.recv(), AUTH_S))
                token = frame.get("token") if frame.get("type") == "auth" else None
        return self._door.admit(token)

    async def _go_live_soon(self, client: Client) -> None:
        """A client that does not subscribe gets everything from its hello on."""
        await asyncio.sleep(GRACE_S)
        if client.waits:
            client.go_live()

    async def _receive(self, client: Client, message: str | bytes) -> None:
        try:
            frame = frames.read_frame(message)
            kind = frame.get("type")
            if kind == "pong":
                client.unanswered = 0
            elif kind == "subscribe":
                self._subscribe(client, frame)
            elif kind == "emergency_stop":
                await self._stop(client, frame)
            elif kind is None and "event" in frame:
                await self._push(client, frame)
            elif kind != "auth":
                raise ValueError("unknown type")
        except ValueError as error:
            client.faults += 1
            client.say(type="error", code="invalid", message=str(error)[:200])
            if client.faults >= _BAD_FRAMES:
                client.close(1008, "three frames that nobody understands")

    def _subscribe(self, client: Client, frame: Mapping[str, Any]) -> None:
        """Replay and live without a gap or a double: what came after the hello came live, or is held for the end."""
        wanted, since = frames.read_filter(frame), frames.read_since(frame)
        if client.replaying:
            raise ValueError("a replay is under way")
        client.filter = wanted
        if since:
            client.go_live(self._replay(client, since))
        elif client.waits:
            client.go_live()

    async def _replay(self, client: Client, since: str) -> Iterator[str]:
        lines = await asyncio.to_thread(self._lines_after, since, client.began)
        if lines is None:
            client.say(type="resync", id=client.began)
        return (frames.event_frame(line) for line in lines or () if client.filter.lets(line))

    def _lines_after(self, since: str, upto: str) -> list[dict[str, Any]] | None:
        """The lines after `since` up to an id; None if `since` is unknown or too far back."""
        before = frames.id_before(since)
        found = self._bus.journal.read(before, REPLAY_LINES + 2) if before else []
        if not found or found[0].get("id") != since or len(found) > REPLAY_LINES + 1:
            return None
        return [line for line in found[1:] if str(line.get("id", "")) <= upto]

    async def _stop(self, client: Client, frame: Mapping[str, Any]) -> None:
        given = {k: frame[k] for k in ("reason", "mode") if k in frame}
        bus = self._bus.called_by(client.caller)
        try:
            done = await asyncio.to_thread(commands.run_sync, bus, commands.find("emergency_stop"), given)
            client.say(type="result", ok=True, result=done.model_dump(mode="json"))
        except BusError as error:
            client.say(type="result", ok=False, error=error.as_dict())

    async def _push(self, client: Client, frame: Mapping[str, Any]) -> None:
        """What another program tells everybody; it goes out as every line of the journal does."""
        line = frames.pushed_line(frames.read_frame(redact(frames.encode(frame))))
        by = {"agent": client.caller.agent, "channel": client.caller.channel}
        line = {"at": self._bus.stamp(), **line, "by": by, "outcome": "passed on"}
        await asyncio.to_thread(self._bus.journal.write, self._bus.now(), line)
        self._wake.set()
