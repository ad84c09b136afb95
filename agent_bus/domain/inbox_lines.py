"""The lines of `commands/Inbox.md`: one order a line (docs/vault-notes.md "The inbox")."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from agent_bus.domain import notes
from agent_bus.domain.human import word

ARROW, WARNING = " → ", " ⚠ "
_BOX = re.compile(r"^(\s*)(?:[-*+]\s+)?(?:[\[［]([^\]］])[\]］]\s+)?")
_ORDER = re.compile(r"[@＠]([^\s@＠:：,、]+)[:：,、]?\s+(.*)")
_FLAG = re.compile(r"[!！](high|low|again)(?:\s+|$)", re.IGNORECASE)
_STOPS = ("stop", "停止")


@dataclass(frozen=True)
class Line:
    """An order.

    Args:
        start: its first character in the body.
        raw: the line as it stands, without its end.
        indent: the white space before it.
        agent, text, priority, again: what is wanted; no agent: the line is a stop.
        identity: what makes it the same line wherever it moves.
        checked: it was taken before.
        warned: a reason against it stands at its end.
    """

    start: int
    raw: str
    indent: str
    agent: str
    text: str
    priority: str
    again: bool
    identity: str
    checked: bool
    warned: bool

    @property
    def is_stop(self) -> bool:
        """Whether it stops all agents."""
        return not self.agent

    def taken(self, task_id: str) -> str:
        """The line after it was taken."""
        return f"{self.indent}- [x] {self._order()}" + (f"{ARROW}[[{task_id}]]" if task_id else "")

    def refused(self, reason: str) -> str:
        """The line with the reason why it was not taken."""
        return f"{self.indent}- [ ] {self._order()}{WARNING}{reason}"

    def _order(self) -> str:
        kept = _BOX.sub("", self.raw, count=1)
        return kept.partition(WARNING)[0].rstrip()


def read(body: str) -> list[Line]:
    """The orders outside of fences and regions; a line that does not end yet is none.

    Raises:
        BrokenNote: the markers do not fit.
    """
    ours = [(region.start, region.end) for region in notes.regions(body).values()]
    seen: dict[str, int] = {}
    found = []
    for line in notes.lines(body):
        inside = any(start <= line.start < end for start, end in ours)
        if inside or line.start + len(line.text) >= len(body):
            continue
        if (one := _line(line.start, line.text, seen)) is not None:
            found.append(one)
    return found


def unended(body: str) -> bool:
    """Whether the last line is an order that misses its end."""
    last = body.rpartition("\n")[2]
    return bool(last.strip()) and _line(0, last, {}) is not None


def replaced(body: str, changes: dict[str, str]) -> str:
    """The body with these lines changed, by identity."""
    for line in reversed(read(body)):
        if line.identity in changes:
            body = body[: line.start] + changes[line.identity] + body[line.start + len(line.raw) :]
    return body


def _line(start: int, raw: str, seen: dict[str, int]) -> Line | None:
    text = raw.rstrip("\r")
    box = _BOX.match(text)
    assert box is not None  # everything in it is optional
    mark = unicodedata.normalize("NFKC", box[2] or " ").lower()
    if mark not in (" ", "x"):
        return None
    rest, warning, _ = text[box.end() :].partition(WARNING)
    if mark == "x":
        rest = rest.rpartition(ARROW)[0] or rest
    is_item = bool(text[len(box[1]) : box.end()].strip())
    stops = is_item and word(rest) in _STOPS
    order = _ORDER.fullmatch(rest.strip())
    if not stops and order is None:
        return None
    agent, wanted = (order[1], order[2]) if order and not stops else ("", word(rest))
    flags, wanted = _flags(wanted)
    if not wanted.strip():
        return None
    priority = next((flag for flag in flags if flag != "again"), "normal")
    same = "\x00".join((word(agent), priority, " ".join(wanted.split())))
    seen[same] = number = seen.get(same, 0) + 1
    identity = hashlib.sha256(f"{same}\x00{number}".encode()).hexdigest()[:32]
    return Line(start, raw, box[1], agent, wanted.strip(), priority, "again" in flags, identity,
                mark == "x", bool(warning))  # fmt: skip


def _flags(text: str) -> tuple[list[str], str]:
    found = list[str]()
    while mark := _FLAG.match(text):
        found.append(mark[1].lower())
        text = text[mark.end() :]
    return found, text
