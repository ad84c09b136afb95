"""Text by others in a note, so that no link, box, tag, comment or HTML comes of it; and values of properties."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

SHOWN_CHARS = 20_000
TITLE_CHARS = 80
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BREAKS = re.compile(r"[\s\u0085\u2028\u2029]+")
_SPECIAL = re.compile(r"([\[\]|#^`<>*_$\\~=%])")
_TICKS = re.compile(r"`+")
_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


class Plain(str):
    """A value of a property that is written as it stands: an id, a word of ours, a time."""


Value = str | int | bool | Sequence[str]


def fence(text: str) -> str:
    """A text as a fenced block that shows it as it is, cut to 20,000 characters, ending in a line feed."""
    shown = clean(text[:SHOWN_CHARS])
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    return f"{ticks}text\n{shown}\n{ticks}\n" if not shown.endswith("\n") else f"{ticks}text\n{shown}{ticks}\n"


def clean(text: str) -> str:
    """Line feeds alone; other control characters become U+FFFD."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("\ufffd", text).encode("utf-8", "replace").decode("utf-8")


def one_line(text: str, most: int = TITLE_CHARS) -> str:
    """A text on one line, by so many characters at most, its signs as they are (for properties)."""
    flat = clean(_BREAKS.sub(" ", text)).strip()
    flat = unicodedata.normalize("NFC", flat)
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def flat(text: str, most: int = TITLE_CHARS) -> str:
    """A text on one line in the body of a note: signs that mean something there are escaped."""
    return _SPECIAL.sub(r"\\\1", one_line(text, most)).replace("agent-bus:", "agent-bus\\:")


def title(instruction: str) -> str:
    """The first line of an instruction that says something, for people."""
    first = next((line for line in clean(instruction).split("\n") if line.strip()), "")
    return one_line(first) or "–"


def property_lines(name: str, value: Value) -> str:
    """A property as lines of YAML 1.2; a text that came from outside stands in double quotes with JSON's escapes."""
    if isinstance(value, str | int | bool):
        return f"{name}: {_scalar(value)}\n"
    items = "".join(f"  - {_scalar(item)}\n" for item in value)
    return f"{name}:\n{items}" if items else f"{name}: []\n"


def _scalar(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Plain | int) and value != "":
        return str(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
