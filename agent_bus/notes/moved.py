"""Finding a note of ours that a person has moved or renamed: by its properties, anywhere in the vault."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

_HEAD_BYTES = 4096
_KIND = re.compile(r"^ab_kind:[ \t]*[\"']?([\w-]+)[\"']?[ \t]*$", re.MULTILINE)
_ID = re.compile(r"^ab_id:[ \t]*[\"']?([^\"'\n]+?)[\"']?[ \t]*$", re.MULTILINE)
FRESH_S, AGAIN_S = 30.0, 600.0


class MovedNotes:
    """Looks through a vault, at most once in thirty seconds, and for one note at most once in ten minutes.

    Args:
        vault: the vault.
        root: the bus folder in it.
        now_s: a clock that never goes back, in seconds.
    """

    def __init__(self, vault: Path, root: Path, now_s: Callable[[], float]) -> None:
        self._vault = vault
        self._root = root
        self._now_s = now_s
        self._seen_s = float("-inf")
        self._index: dict[tuple[str, str], list[str]] = {}
        self._asked: dict[tuple[str, str], float] = {}

    def find(self, kind: str, id: str) -> list[str]:
        """Where a note is now: its paths from the bus folder, without `.md`; one that was not found is not looked for
        again at once.
        """
        now = self._now_s()
        if now - self._asked.get((kind, id), float("-inf")) < AGAIN_S:
            return []
        self._asked[kind, id] = now
        if now - self._seen_s >= FRESH_S:
            self._seen_s, self._index = now, self._look()
        found = self._index.get((kind, id), [])
        if found:
            del self._asked[kind, id]
        return sorted(found)

    def _look(self) -> dict[tuple[str, str], list[str]]:
        index: dict[tuple[str, str], list[str]] = {}
        for folder, folders, files in os.walk(self._vault):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in files:
                path = Path(folder, name)
                if name.endswith(".md") and not name.startswith((".", "~")) and (what := _what(path)) is not None:
                    place = os.path.relpath(path.with_name(name[:-3]), self._root).replace(os.sep, "/")
                    index.setdefault(what, []).append(place)
        return index


def _what(path: Path) -> tuple[str, str] | None:
    """The kind and id that a note says of itself."""
    try:
        if path.is_symlink():
            return None
        with open(path, "rb") as note:
            head = note.read(_HEAD_BYTES).decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    except OSError:
        return None
    if not head.startswith("---\n"):
        return None
    front = head[: head.find("\n---\n", 3) + 1] or head
    kind, id = _KIND.search(front), _ID.search(front)
    return (kind[1], id[1]) if kind and id else None
