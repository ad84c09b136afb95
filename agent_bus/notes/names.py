"""Names of files and folders in a vault that every desktop, phone and synchroniser takes (docs/obsidian.md "Names")."""

from __future__ import annotations

import hashlib
import re
import unicodedata

STEM_BYTES = 120
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


def of_agent(name: str) -> str:
    """The file name of an agent's note: the name itself, or as much of it as fits with eight digits of its hash.

    At most 100 bytes (Dropbox, Syncthing and phones cut longer ones with their own suffixes).
    """
    if len(name.encode()) <= 100:
        return name
    short = name.encode()[:91].decode("utf-8", "ignore")
    return f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
