"""Waking up early: a hint that something may have changed, from any process. Whoever waits recomputes from state.

One watcher a process on the one folder into which every writer appends; started by the first wait. If the system's
watcher cannot start or drops events, waits wake by their own timer: latency, never truth.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Event

log = logging.getLogger(__name__)


class Listener:
    """One waiter's ear: a hint that comes while it is not waiting is kept for its next wait."""

    def __init__(self) -> None:
        import asyncio  # wanted only by who waits: a verb of the command line need not pay for it

        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._event: Event = asyncio.Event()

    def wake(self) -> None:
        """Wakes the waiter; from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and with it the waiter
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, timeout_s: float) -> None:
        """Returns at the next hint (or one since the last wait), at the latest after `timeout_s` seconds."""
        import asyncio

        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), timeout_s)
        self._event.clear()


class Watch:
    """A set of ears. In memory the engine rings it itself; `FolderWatch` rings it for files."""

    def __init__(self) -> None:
        self._wakes: set[Callable[[], None]] = set()
        self._guard = threading.Lock()

    @contextmanager
    def listen(self) -> Iterator[Listener]:
        """An ear for the running event loop. Listen first, then look at the state, then wait."""
        listener = Listener()
        with self.subscribe(listener.wake):
            yield listener

    @contextmanager
    def subscribe(self, wake: Callable[[], None]) -> Iterator[None]:
        """Calls `wake` (from any thread) at each hint."""
        with self._guard:
            self._wakes.add(wake)
        self.start()
        try:
            yield
        finally:
            with self._guard:
                self._wakes.discard(wake)

    def ring(self) -> None:
        """Wakes everybody."""
        with self._guard:
            wakes = tuple(self._wakes)
        for wake in wakes:
            wake()

    def start(self) -> None:
        """Starts what rings; nothing to start here."""

    def close(self) -> None:
        """Ends it."""
        with self._guard:
            self._wakes.clear()


class FolderWatch(Watch):
    """Rings whenever something in one folder is written.

    Args:
        folder: the folder; need not exist until the first wait.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self._observer: Any = None
        self._warned = False

    def start(self) -> None:
        with self._guard:
            if self._observer is not None:
                return
            from watchdog.events import FileSystemEventHandler
            from watchdog.observers import Observer

            watch = self

            class Handler(FileSystemEventHandler):
                def on_any_event(self, event: Any) -> None:
                    if event.event_type in ("modified", "created"):
                        watch.ring()

            observer = Observer()
            observer.daemon = True
            try:
                observer.schedule(Handler(), self._folder)
                observer.start()
                self._observer = observer
            except OSError as error:  # out of watches, or no folder: the timers still find everything
                if not self._warned:
                    log.warning("cannot watch %s (%s); waits look once a second instead", self._folder, error)
                self._warned = True  # each wait tries again

    def close(self) -> None:
        super().close()
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(timeout=2)
