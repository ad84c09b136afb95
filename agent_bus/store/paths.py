"""Where a key lies on disk: the bus folder, the machine's side and the archive; links that leave them are refused."""

from __future__ import annotations

import os
import stat

from agent_bus.errors import BusError
from agent_bus.store.codec import bad_key, check_prefix, is_name

SUFFIX = ".json"
_KNOWN = 4096
_REPARSE_POINT = 0x400  # Windows: junctions are no symbolic links, but lead away as well


class Paths:
    """The paths of one bus folder.

    Args:
        root: the bus folder.
        state: where `.bus/…` lies.
        archive: where `archive/…` lies.
    """

    def __init__(self, root: str, state: str, archive: str) -> None:
        self.root = root
        self.state = state
        self._archive = archive
        self._real_roots = tuple(os.path.realpath(p) for p in (root, state, archive))
        self._known: dict[str, tuple[str, tuple[str, ...]]] = {"": (root, ())}

    def file(self, key: str) -> str:
        """The file of a key.

        Raises:
            BusError: `invalid` for no key, `refused` if a link leads its folder out of the bus.
        """
        prefix, slash, name = key.rpartition("/")
        if not is_name(name) or (slash and not prefix):
            raise bad_key(key)
        return f"{self._checked(prefix)}{os.sep}{name}{SUFFIX}"

    def folder(self, prefix: str) -> str:
        """The folder of a prefix; errors as `file`."""
        if not prefix:
            raise bad_key(prefix)
        return self._checked(prefix)

    def stays_inside(self, path: str) -> bool:
        """Whether a path, all links followed, lies in the bus folder."""
        real = os.path.realpath(path)
        return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in self._real_roots)

    def check_link(self, path: str) -> None:
        """Raises BusError `refused` for a link that leaves the bus folder."""
        if not self.stays_inside(path):
            name = os.path.basename(path)
            raise BusError(
                "refused", f"{name} is a link that leaves the bus folder.", "Put a real folder or file there."
            )

    def is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry of a listing is a folder of the bus."""
        if not entry.is_dir():
            return False
        return not is_link(entry.stat(follow_symlinks=False)) or self.stays_inside(entry.path)

    def _checked(self, prefix: str) -> str:
        folder, steps = self._known.get(prefix) or self._learn(prefix)
        for step in steps:
            try:
                found = os.lstat(step)
            except OSError:
                break  # not there, nor what is below it
            if is_link(found):
                self.check_link(step)
        return folder

    def _learn(self, prefix: str) -> tuple[str, tuple[str, ...]]:
        check_prefix(prefix)
        head, *rest = prefix.split("/")
        here = {".bus": self.state, "archive": self._archive}.get(head) or os.path.join(self.root, head)
        steps = [] if head in (".bus", "archive") else [here]
        for segment in rest:
            here = os.path.join(here, segment)
            steps.append(here)
        if len(self._known) >= _KNOWN:
            self._known = {"": (self.root, ())}
        found = self._known[prefix] = (here, tuple(steps))
        return found


def is_link(found: os.stat_result) -> bool:
    """Whether an lstat shows a symbolic link or a junction."""
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_file_attributes", 0) & _REPARSE_POINT)


def document_name(file_name: str) -> str:
    """The name of the document in a file of this name, "" if it is no document's."""
    name = file_name[: -len(SUFFIX)]
    return name if file_name.endswith(SUFFIX) and is_name(name) else ""
