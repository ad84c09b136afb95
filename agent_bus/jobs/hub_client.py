"""One client of the hub: what waits for it, the seam between replay and live, and its end if it does not keep up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from agent_bus.bus import Caller
from agent_bus.domain.frames import Filter, encode

QUEUE_FRAMES, QUEUE_CHARS = 1000, 4 * 1024 * 1024
Event = tuple[Mapping[str, Any], str]
"""A journal line and its frame."""
REPLAY_FRAMES = 500
"""A replay fills the queue so far only: it waits for its reader instead of counting as one that does not keep up."""
SLOW, SLOW_WORDS = 4408, "too slow: reconnect and subscribe with since"
CLOSE_S = 10.0
PINGS = 2


class Client:
    """A connection that has shown its token.

    Args:
        socket: the connection.
        caller: whom its token stands for.
        last: the id of the last journal line before the live ones that it will get.
    """

    def __init__(self, socket: ServerConnection, caller: Caller, last: str) -> None:
        self.socket = socket
        self.caller = caller
        self.began = last
        self.filter = Filter()
        self.unanswered = 0
        self.faults = 0
        self._queue: deque[str] = deque()
        self._held: deque[Event] | None = deque()  # live events, while a replay or its announcement is awaited
        self._pump: asyncio.Task[None] | None = None
        self._size = 0
        self._filled, self._room = asyncio.Event(), asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    @property
    def waits(self) -> bool:
        """Whether live events are held back, and nobody is letting them go yet."""
        return self._held is not None and not self.replaying

    @property
    def replaying(self) -> bool:
        """Whether a replay, or what was held, is on its way."""
        return self._pump is not None and not self._pump.done()

    def offer(self, line: Mapping[str, Any], frame: str) -> None:
        """A live event, if the client wants it; never waits."""
        if self._held is None:
            if self.filter.lets(line):
                self.put(frame)
        elif self._has_room(len(self._held), frame):
            self._held.append((line, frame))

    def put(self, frame: str) -> None:
        """A frame for the queue."""
        if self._has_room(len(self._queue), frame):
            self._queue.append(frame)
            self._filled.set()

    def _has_room(self, waiting: int, frame: str) -> bool:
        """Whether a frame may wait; a client that does not keep up is closed, and has what it needs to come back."""
        if self._closing is not None:
            return False
        self._size += len(frame)
        if waiting >= QUEUE_FRAMES or self._size > QUEUE_CHARS:
            self.close(SLOW, SLOW_WORDS)
        return self._closing is None

    def say(self, **frame: Any) -> None:
        """A frame that is no event."""
        self.put(encode(frame))

    def go_live(self, replay: Awaitable[Iterable[str]] | None = None) -> None:
        """Sends a replay, then what is held from now on, then lets live events through; in that order.

        Args:
            replay: gives the frames of the replay.
        """
        self._held = deque() if self._held is None else self._held
        self._pump = asyncio.create_task(self._go_live(replay))

    async def _go_live(self, replay: Awaitable[Iterable[str]] | None) -> None:
        for frame in () if replay is None else await replay:
            await self._wait_for_room()
            self.put(frame)
        while self._held:
            line, frame = self._held.popleft()
            self._size -= len(frame)
            await self._wait_for_room()
            if self.filter.lets(line):
                self.put(frame)
        self._held = None

    async def write(self) -> None:
        """Sends what is queued until the connection ends."""
        with suppress(ConnectionClosed):
            while True:
                while self._queue:
                    frame = self._queue.popleft()
                    self._size -= len(frame)
                    self._room.set()
                    await self.socket.send(frame)
                self._filled.clear()
                await self._filled.wait()

    def ping(self) -> None:
        """Asks for a sign of life; closes after two that were not given."""
        if self.unanswered >= PINGS:
            self.close(SLOW, "no pong")
            return
        self.unanswered += 1
        self.say(type="ping")

    def close(self, code: int, words: str) -> None:
        """Begins to close: at once for one that is too slow, else after what waits for it."""
        if self._closing is None:
            if code == SLOW:
                self._queue.clear()
            self._held = None if self._held is None else deque()
            self._room.set()
            self._closing = asyncio.create_task(self._close(code, words))

    async def _close(self, code: int, words: str) -> None:
        """A reader that never reads keeps the closing handshake from ending: then the connection is cut."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while self._queue:
                    self._room.clear()
                    await self._room.wait()
                await self.socket.close(code, words)
                return
        self.socket.transport.abort()

    async def _wait_for_room(self) -> None:
        while len(self._queue) >= REPLAY_FRAMES and self._closing is None:
            self._room.clear()
            await self._room.wait()
