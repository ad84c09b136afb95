"""The feeds of one store, and the hints that tell them what was written."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress

from agent_bus.store.feed import FolderFeed, Source
from agent_bus.store.hints import HintLog


class Feeds:
    """Who reads changes in this process; a feed that nobody holds any more is forgotten.

    Args:
        folder: where the hint files lie.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._log: HintLog | None = None
        self._guard = threading.RLock()
        self._feeds: weakref.WeakSet[FolderFeed] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._feeds)

    def open(self, store: Source, prefix: str) -> FolderFeed:
        """A feed of what changes under a prefix from now on."""
        self.distribute()  # before the first listing, so that nothing falls between the two
        feed = FolderFeed(store, prefix)
        with self._guard:
            self._feeds.add(feed)
        return feed

    def distribute(self) -> None:
        """Hands what was written since the last look to every feed it concerns."""
        with self._guard:  # whoever comes second waits until its hints have been handed out
            try:
                keys = self._hint_log().read()
            except OSError:
                return  # a folder without hints is read by listing
            for key in keys:
                for feed in self._feeds:
                    feed.note(key)

    def tell(self, key: str) -> None:
        """Tells every process that a document may have changed."""
        with suppress(OSError):  # the document stands; a lost hint costs latency only
            self._hint_log().append(key)

    def sweep(self) -> None:
        """Removes old hint files."""
        self._hint_log().sweep()

    def close(self) -> None:
        """Closes the hint files."""
        if self._log is not None:
            self._log.close()

    def _hint_log(self) -> HintLog:
        if self._log is None:
            with self._guard:
                self._log = self._log or HintLog(self.folder)
        return self._log
