"""Names of files and folders in a vault that every desktop, phone and synchroniser takes (docs/obsidian.md "Names")."""

from __future__ import annotations

import re
import unicodedata

STEM_BYTES = 120
PATH_CHARS = 200
"""Inside the vault; Windows counts the folders above too (MAX_PATH is 260)."""
_FORBIDDEN = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f\x7f]|%%')
"""What Windows forbids, and what has a meaning in a link or a comment of Obsidian."""
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))}


def fault(name: str) -> str:
    """What is wrong with a name, in words that follow "must"; "" if nothing is."""
    if not name:
        return "must not be empty"
    if found := _FORBIDDEN.search(name):
        return f"must not contain {found[0]!r}"
    if emoji := next((c for c in name if unicodedata.category(c) in ("So", "Cs", "Co") or c == "\ufe0f"), ""):
        return f"must not contain {emoji!r}"
    if name[0] in ".-" or name[-1] in ". ":
        return "must not begin with . or - nor end with . or a space"
    if name != unicodedata.normalize("NFC", name):
        return "must be in the Unicode form NFC"
    if name.split(".")[0].casefold() in _DEVICES:
        return "must not be the name of a Windows device"
    return f"must have at most {STEM_BYTES} bytes in UTF-8" if len(_stem(name).encode()) > STEM_BYTES else ""


def same(name: str) -> str:
    """What two names have in common that some file system takes for one."""
    return unicodedata.normalize("NFKC", name).casefold()


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
