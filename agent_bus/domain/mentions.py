"""Mentions: whom a text addresses by `@name`. Pure, and linear in the length of the text.

What is not scanned: code (fenced as CommonMark has it, indented, spans), comments of HTML and of Obsidian, addresses of
the web and of mail, and quoted lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent_bus import ids

ALL = "all"
SIGNS = "@＠"
SHOWN = 20
"""So many unknown names are reported of a text."""
NEAR = 2
"""An unknown name is answered with a known one at most so many edits away."""
_AT = re.compile(f"(?<![\\w{SIGNS}./\\\\`])[{SIGNS}]")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]{0,30}://|www\.|mailto:)\S*", re.IGNORECASE)
_MAIL = re.compile(rf"(?<![\w.{SIGNS}])\w[\w.+-]{{0,64}}@[\w-]+(?:\.[\w-]+)+")
_HANDLE = re.compile(r"[\w.-]+")
_TAIL = re.compile(r"[-_.]+(?![^\W_])")


@dataclass(frozen=True)
class Found:
    """Whom a text addresses.

    Args:
        handles: members in the order of the text, each once.
        everyone: whether @all stands in it.
        unknown: each unknown name as it was written, with the nearest known one or "".
    """

    handles: tuple[str, ...]
    everyone: bool
    unknown: tuple[tuple[str, str], ...]


def key(handle: str) -> str:
    """The key of a handle that is written with or without its sign."""
    return ids.fold(handle.strip().lstrip(SIGNS))


def find(text: str, names: Mapping[str, str], scan_quotes: bool = False) -> Found:
    """The mentions of a text.

    Args:
        names: by key (`ids.fold` of a handle or an alias) the handle that it means.
        scan_quotes: whether lines that begin with > are scanned as well.
    """
    known = {**names, ALL: ALL}
    shown = scanned(unicodedata.normalize("NFC", text), scan_quotes)
    longest = 2 * max(map(len, known))  # a half-width sign of voicing is a character of its own
    handles: dict[str, None] = {}
    unknown: dict[str, str] = {}
    everyone = False
    for match in _AT.finditer(shown):
        key = _known(shown, match.end(), known, longest)
        if key == ALL:
            everyone = True
        elif key:
            handles[known[key]] = None
        elif len(unknown) < SHOWN and (run := _HANDLE.match(shown, match.end())):
            unknown[run[0].rstrip("-_.")[:80]] = ""
    unknown = {word: nearest(word, names) for word in unknown if word}
    return Found(tuple(handles), everyone, tuple(unknown.items()))


def nearest(word: str, names: Mapping[str, str]) -> str:
    """The handle whose name is nearest to a word, "" if none is near."""
    key = ids.fold(word)
    near = sorted((d, name) for name in names if (d := _distance(key, name)) <= min(NEAR, len(name) - 1))
    return names[near[0][1]] if near else ""


def scanned(text: str, scan_quotes: bool = False) -> str:
    """The text with everything blanked where no mention counts."""
    lines = "\n".join(_open_lines(text.split("\n"), scan_quotes))
    parts = re.split(r"(\n[ \t]*\n)", lines)
    bare = "".join(_without_spans(part) for part in parts)
    for start, end in (("<!--", "-->"), ("%%", "%%")):
        bare = _without(bare, start, end)
    return _MAIL.sub(" ", _ADDRESS.sub(" ", bare))


def _open_lines(lines: Iterable[str], scan_quotes: bool) -> Iterable[str]:
    """The lines that are neither code nor quoted; the others are blank."""
    fence, after_text, code = "", False, False
    for line in lines:
        if fence:
            closing = re.fullmatch(r" {0,3}(`+|~+)[ \t]*", line)
            if closing and closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
                fence = ""
            yield ""
            continue
        if opening := _FENCE.match(line):
            fence, after_text = opening[1], False
            yield ""
            continue
        indented = bool(re.match(r" {4}| {0,3}\t", line))
        code = indented and bool(line.strip()) and not after_text
        quoted = not scan_quotes and re.match(r" {0,3}>", line)
        after_text = bool(line.strip()) and not code
        yield "" if code or quoted else line


def _without_spans(text: str) -> str:
    """A paragraph without its code spans; a run of backticks without a partner is text."""
    runs = [(m.start(), m.end()) for m in re.finditer("`+", text)]
    partner: dict[int, int] = {}
    later: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        length = runs[place][1] - runs[place][0]
        partner[place] = later.get(length, -1)
        later[length] = place
    out, end, place = [], 0, 0
    while place < len(runs):
        if partner[place] < 0:
            place += 1
            continue
        out.append(text[end : runs[place][0]] + "`")
        end = runs[partner[place]][1]
        place = partner[place] + 1
    return "".join(out) + text[end:]


def _without(text: str, start: str, end: str) -> str:
    out, place = [], 0
    while (opened := text.find(start, place)) >= 0:
        closed = text.find(end, opened + len(start))
        if closed < 0:
            break
        out.append(text[place:opened] + " ")
        place = closed + len(end)
    return "".join(out) + text[place:]


def _known(text: str, start: int, known: Mapping[str, str], longest: int) -> str:
    """The key of the longest known name that stands at a place and ends there; "" if there is none."""
    line = text[start : start + longest]
    for length in range(len(line), 0, -1):
        key = ids.fold(line[:length])
        if key in known and _ends(text, start + length, line[:length]):
            return key
    return ""


def _ends(text: str, end: int, name: str) -> bool:
    rest = text[end : end + 1]
    if not rest or not (rest.isalnum() or rest in "_-." or unicodedata.category(rest)[0] == "M"):
        return True
    if _TAIL.match(text, end):
        return True
    return rest.isalpha() and script(rest) != next((script(c) for c in reversed(name) if c.isalpha()), script(rest))


def script(letter: str) -> str:
    """The script of a letter, from its Unicode name: LATIN, HIRAGANA, CJK …"""
    plain = unicodedata.normalize("NFKC", letter)[:1]
    first = unicodedata.name(plain, "").split(" ")[0].split("-")[0]
    return "CJK" if first == "IDEOGRAPHIC" else first


def _distance(one: str, other: str) -> int:
    """The edit distance (Levenshtein), or a number above NEAR if the lengths alone say so."""
    if abs(len(one) - len(other)) > NEAR:
        return NEAR + 1
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]
