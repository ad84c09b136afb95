"""The words by which CLIs say why they failed, and when a quota ends. Pure.

They are looked for only where a CLI itself speaks (its error object, its error events, the last lines of its standard
error) and only in a run that failed: a worker may well write about rate limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from agent_bus.launchers import Failure

DETAIL = 300
_SAID: dict[Failure, str] = {
    "nested": r"cannot be launched inside another",
    "unknown_option": (
        r"unknown (?:option|arguments?|flag)|unexpected argument|unrecognized (?:option|argument)|no such option"
    ),
    "session_in_use": r"session(?: id)? \S+ is already in use|already exists\. Use --resume",
    "session_unknown": (
        r"no conversation found|no rollout found|invalid session identifier|unknown (?:session|conversation)"
        r"|no (?:saved|previous) sessions? found|(?:session|conversation|thread)\S*(?: \S+){0,3} (?:was )?not found"
    ),
    "not_approved": r"user cancelled MCP tool call",
    "config": r"cannot be used with root|untrusted (?:folder|workspace)|not a trusted|required MCP servers failed",
    "quota": (
        r"rate.?limit|usage limit|limit reached|hit your (?:\w+ )?limit|(?<!disk )quota|too many requests|overloaded"
        r"|out of credits|credit balance|resource.?exhausted|(?:http|status|error|code)\W{0,3}(?:429|529)\b"
    ),
    "login": (
        r"not logged in|log ?in again|please (?:run )?/?log ?in|/login|not authenticated|unauthori[sz]ed"
        r"|authentication[ _](?:failed|error|required|expired)|(?:failed to|could not|cannot) authenticate"
        r"|(?:invalid|incorrect|missing) (?:x-)?api.?key|set an auth method|token (?:has )?expired"
        r"|(?:http|status|error|code)\W{0,3}(?:401|403)\b"
    ),
}
_WORDS = {failure: re.compile(pattern, re.IGNORECASE) for failure, pattern in _SAID.items()}
_OPTION = re.compile(r"(?:option|arguments?|flag)s?:?\s+['\"`]?(-{0,2}[A-Za-z][\w-]*)", re.IGNORECASE)
_EPOCH = re.compile(r"(?:\||reset\w*\W{1,4}(?:at\W{1,3})?)(\d{10})(\d{3})?\b", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)")
_AFTER = re.compile(
    r"(?:retry.?(?:after|delay|in)|(?:try|available) again in|resets? (?:in|after))\W{0,4}"
    r"((?:\d+(?:\.\d+)?\s*[a-z]*[\s,]{0,2}(?:and )?){1,4})",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m(?!s)|ms|s|$)?", re.IGNORECASE)
_SPAN_S = {"d": 86_400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "ms": 0.001, "s": 1.0, "": 1.0}
_CLOCK = re.compile(
    r"(?:resets?|try again|available again)(?: at| on)?\s+"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:,? (?P<year>\d{4}))?,?(?: at)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap])?\.?m?\b\.?(?:\s*\((?P<zone>[\w/+-]{2,40})\))?",
    re.IGNORECASE,
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True)
class Finding:
    """What the words of a failure say; the fields are those of `Evidence`."""

    failure: Failure = ""
    detail: str = ""
    option: str = ""
    until: float = 0.0


def find(texts: Iterable[str], now: float) -> Finding:
    """The first failure that the texts name, in the order of the table; the texts in theirs.

    Args:
        texts: what a failed CLI said of itself, the most telling first.
        now: seconds since the epoch.
    """
    said = [text for text in texts if text]
    for failure, words in _WORDS.items():
        for text in said:
            match = words.search(text)
            if match:
                until = next((t for each in said if (t := reset_at(each, now))), 0.0) if failure == "quota" else 0.0
                return Finding(failure, _around(text, match.start()), option_in(text, failure), until)
    return Finding(detail=said[0][:DETAIL] if said else "")


def option_in(text: str, failure: Failure) -> str:
    """The flag that a CLI does not know, with its dashes; "" if the text names none."""
    match = _OPTION.search(text) if failure == "unknown_option" else None
    name = match[1] if match else ""
    return name if not name or name.startswith("-") else f"{'-' if len(name) == 1 else '--'}{name}"


def reset_at(text: str, now: float) -> float:
    """When a quota ends by a text (epoch, time, span or clock time), seconds since the epoch; 0 = not named."""
    epoch, iso, after, clock = (pattern.search(text) for pattern in (_EPOCH, _ISO, _AFTER, _CLOCK))
    if epoch:
        return float(epoch[1])
    try:
        if iso and "reset" in text.lower():
            return datetime.fromisoformat(iso[0]).timestamp()
        if after and (span := _seconds(after[1])):
            return now + span
        return _clock_time(clock, now) if clock else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def _around(text: str, start: int) -> str:
    begin = max(0, start - DETAIL // 2) if len(text) > DETAIL else 0
    return text[begin : begin + DETAIL]


def _seconds(words: str) -> float:
    return sum(float(n) * _SPAN_S[unit.lower()] for n, unit in _SPAN.findall(words))


def _clock_time(match: re.Match[str], now: float) -> float:
    """The next time that a clock of that zone shows what is said; without a zone it is this machine's."""
    if not match["half"] and not match["minute"]:
        return 0.0
    today = datetime.fromtimestamp(now, _zone(match["zone"]))
    hour = (
        int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0) if match["half"] else int(match["hour"])
    )
    then = today.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
    if match["month"]:
        year = int(match["year"]) if match["year"] else today.year
        return then.replace(year, _MONTHS.index(match["month"].lower()) + 1, int(match["day"])).timestamp()
    return (then if then > today else then + timedelta(days=1)).timestamp()


def _zone(name: str | None) -> tzinfo | None:
    if not name:
        return datetime.now(UTC).astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return UTC
