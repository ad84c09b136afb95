"""What the Dashboard's properties say, as far as other parts ask for it."""

from __future__ import annotations

import re
from pathlib import Path

from agent_bus.notes.template import LANGUAGES
from agent_bus.store.claim import DASHBOARD

_HEAD_BYTES = 8192
_LANGUAGE = re.compile(r"^ab_lang:[ \t]*[\"']?([a-z]{2})[\"']?[ \t]*$", re.MULTILINE)


def language_of(root: Path) -> str:
    """The language that the notes of a bus folder were installed in; "" if they were not."""
    try:
        with open(root / DASHBOARD, "rb") as note:
            head = note.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    found = _LANGUAGE.search(head.replace("\r\n", "\n"))
    return found[1] if found and found[1] in LANGUAGES else ""
