"""The files engine: one JSON document a file, in folders that people can read (docs/vault-format.md).

A create is temp file + link, a replace temp file + compare + rename, a move a replace and then a rename; all but create
hold the name's lock. Links that leave the bus folder are refused; only regular files are documents.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

from agent_bus.errors import BusError, invalid
from agent_bus.store import atomic
from agent_bus.store.codec import READ_BYTES, dump, is_name, parse
from agent_bus.store.feed import FolderFeed
from agent_bus.store.feeds import Feeds
from agent_bus.store.locks import WAIT_S, Locks
from agent_bus.store.paths import Paths, document_name
from agent_bus.store.port import Doc, Exists, Stale, Unreadable, Value
from agent_bus.store.revision import looks_like, revision

_NOT_THERE = (FileNotFoundError, NotADirectoryError)
_A_LINK = {errno.ELOOP, errno.EMLINK}  # what open() says of a link that it must not follow
_NO_REGULAR_FILE = {errno.EISDIR, errno.ENXIO, *_A_LINK}


class FileStore:
    """The engine over one bus folder.

    Args:
        root: the bus folder.
        state_dir: where the machine's side (`.bus/…`) lies; None: in the bus folder.
        archive_dir: where `archive/…` lies; None: in the bus folder.
        durable: False turns every fsync off (setting `durability = "none"`).
        temp_dir: where temp files of documents outside `.bus/…` lie; None: beside those of the machine's side.
    """

    def __init__(
        self,
        root: Path,
        state_dir: Path | None = None,
        archive_dir: Path | None = None,
        durable: bool = True,
        temp_dir: Path | None = None,
    ) -> None:
        self.root = str(root)
        state = str(state_dir or root / ".bus")
        self._paths = Paths(self.root, state, str(archive_dir or root / "archive"))
        self._durable = durable
        self._state_temp = os.path.join(state, "tmp")
        self._temp = str(temp_dir or self._state_temp)
        self._locks = Locks(os.path.join(state, "locks"))
        self._errors = atomic.InWords(self.root)
        self._feeds = Feeds(os.path.join(state, "hints"))

    # --- reading

    def get(self, key: str) -> Doc | None:
        try:
            data, stat = self._read(self._paths.file(key))
        except _NOT_THERE:
            return None
        except OSError as error:
            raise self._unreadable(key, error) from error
        return Doc(key, parse(key, data), revision(stat, data))

    def list(self, prefix: str) -> Iterator[Doc]:
        for key in self.keys(prefix):
            try:
                doc = self.get(key)
            except Unreadable:
                continue
            except BusError as error:
                if error.code != "refused":  # a link that leaves the bus folder is no document
                    raise
                continue
            if doc is not None:
                yield doc

    def keys(self, prefix: str) -> Sequence[str]:
        try:
            names = os.listdir(self._paths.folder(prefix))
        except _NOT_THERE:
            return []
        except OSError as error:
            raise atomic.unavailable(error, self.root) from error
        return [f"{prefix}/{name}" for name in sorted(filter(None, map(document_name, names)))]

    def folders(self, prefix: str) -> Sequence[str]:
        try:
            with os.scandir(self._paths.folder(prefix)) as entries:
                return sorted(e.name for e in entries if is_name(e.name) and self._paths.is_folder(e))
        except _NOT_THERE:
            return []
        except OSError as error:
            raise atomic.unavailable(error, self.root) from error

    def exists(self, key: str) -> bool:
        return os.path.lexists(self._paths.file(key))

    # --- writing

    def create(self, key: str, value: Value, *, durable: bool = True, private: bool = False) -> Doc:
        path, data = self._paths.file(key), dump(key, value)
        mode = 0o600 if private else 0o666
        with self._errors:
            temp, stat = atomic.write_temp(self._temp_of(key), data, durable and self._durable, mode)
            try:
                self._put_new(key, temp, path)
            except FileExistsError:
                atomic.discard(temp)
                raise Exists(key) from None
            except BaseException:
                atomic.discard(temp)
                raise
            self._commit(path, durable)
        self._feeds.tell(key)
        return Doc(key, value, revision(stat, data))

    def replace(self, doc: Doc, value: Value, *, durable: bool = True) -> Doc:
        path, data = self._paths.file(doc.key), dump(doc.key, value)
        if not looks_like(path, doc.rev):  # of many that want one task all but one need not write at all
            raise Stale(doc.key)
        with self._errors:
            temp, stat = atomic.write_temp(self._temp_of(doc.key), data, durable and self._durable)
            try:
                with self.lock(doc.name):
                    self._compare(doc, path)
                    atomic.put_over(temp, path, durable and self._durable)
                    self._commit(path, durable)
            except BaseException:
                atomic.discard(temp)
                raise
        self._feeds.tell(doc.key)
        return Doc(doc.key, value, revision(stat, data))

    def delete(self, doc: Doc) -> None:
        path = self._paths.file(doc.key)
        with self._errors, self.lock(doc.name):
            self._compare(doc, path)
            try:
                atomic.remove(path)
            except FileNotFoundError:  # taken away by hand after the comparison
                raise Stale(doc.key) from None
            self._commit(path, True)
        self._feeds.tell(doc.key)

    def move(self, doc: Doc, key: str, value: Value, *, durable: bool = True) -> Doc:
        if key == doc.key:
            return self.replace(doc, value, durable=durable)
        path, target, data = self._paths.file(doc.key), self._paths.file(key), dump(key, value)
        if key.rpartition("/")[2] != doc.name:
            raise invalid("key", "must keep its name in a move")
        with self._errors:
            temp, stat = atomic.write_temp(self._temp_of(key), data, durable and self._durable)
            try:
                with self.lock(doc.name):
                    self._move(doc, path, key, target, temp, durable)
                    self._commit(target, durable)
                    self._commit(path, durable)
            except BaseException:
                atomic.discard(temp)
                raise
        self._feeds.tell(doc.key)
        self._feeds.tell(key)
        return Doc(key, value, revision(stat, data))

    def lock(self, name: str, pool: str = "doc", wait_s: float = WAIT_S) -> AbstractContextManager[None]:
        return self._locks.hold(name, pool, wait_s)

    # --- changes

    def feed(self, prefix: str) -> FolderFeed:
        return self._feeds.open(self, prefix)

    def distribute_hints(self) -> None:
        """Hands what was written since the last look to every feed it concerns."""
        self._feeds.distribute()

    def hint_folder(self) -> str:
        """The folder in which something is appended whenever a document changes; a watcher's place."""
        return self._feeds.folder

    def sweep(self, older_than: float) -> None:
        """Unlinks temp files that killed processes left before a time (seconds since the epoch), and old hints."""
        with self._errors:
            for folder in {self._temp, self._state_temp}:
                for path in (os.path.join(folder, name) for name in os.listdir(folder)):
                    with suppress(FileNotFoundError):
                        if os.lstat(path).st_mtime < older_than:
                            atomic.discard(path)
            self._feeds.sweep()

    def close(self) -> None:
        self._locks.close()
        self._feeds.close()

    # --- inside

    def folder(self, prefix: str) -> str:
        """The folder of a prefix, refused if a link leads out of the bus folder."""
        return self._paths.folder(prefix)

    def _temp_of(self, key: str) -> str:
        """Renames do not cross filesystems; the machine's side may lie on another one."""
        return self._state_temp if key.startswith(".bus/") else self._temp

    def _read(self, path: str) -> tuple[bytes, os.stat_result]:
        try:
            return atomic.read(path, READ_BYTES, follow=False)
        except OSError as error:
            if error.errno not in _A_LINK or not os.path.islink(path):
                raise
        self._paths.check_link(path)
        return atomic.read(path, READ_BYTES)

    def _put_new(self, key: str, temp: str, path: str) -> None:
        guard = partial(self.lock, key.rpartition("/")[2])
        try:
            atomic.put_new(temp, path, guard)
        except FileNotFoundError:
            self._make_folder(os.path.dirname(path))
            atomic.put_new(temp, path, guard)

    def _move(self, doc: Doc, path: str, key: str, target: str, temp: str, durable: bool) -> None:
        if os.path.lexists(target):
            self._compare(doc, path)  # of two movers the slower one is stale, not surprised by the other's file
            raise Exists(key)
        self._make_folder(os.path.dirname(target))
        self._compare(doc, path)
        # A kill between the two steps leaves the new content under the old key; its status says where it belongs.
        atomic.put_over(temp, path, durable and self._durable)
        try:
            atomic.rename_new(path, target)
        except FileExistsError:  # made since the look, by a create
            raise Exists(key) from None
        except FileNotFoundError:
            if os.path.lexists(path):
                raise
            raise Stale(doc.key) from None  # taken away by hand after the comparison

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        if not os.path.isdir(self.root):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.root)
        atomic.make_folder(folder, self._durable)

    def _compare(self, doc: Doc, path: str) -> None:
        try:
            data, stat = self._read(path)
        except _NOT_THERE:
            raise Stale(doc.key) from None
        except OSError as error:
            if isinstance(self._unreadable(doc.key, error), Unreadable):
                raise Stale(doc.key) from None
            raise
        if revision(stat, data) != doc.rev:
            raise Stale(doc.key)

    def _commit(self, path: str, durable: bool) -> None:
        if durable and self._durable:
            atomic.sync_folder(os.path.dirname(path))

    def _unreadable(self, key: str, error: OSError) -> Unreadable | BusError:
        if error.errno in _NO_REGULAR_FILE:
            return Unreadable(key, "not a regular file")
        if error.errno == errno.EFBIG:
            return Unreadable(key, str(error.strerror))
        if isinstance(error, PermissionError):
            return Unreadable(key, "no permission to read it")
        return atomic.unavailable(error, self.root)
