"""Notices: what people are told, worked out from documents. Pure.

Rules (source: docs/notifications.md):
1. A notice has a key, `<event>:<id>:<attempt>`; what has been told is known by its key, so nothing is told twice.
2. It follows from the present document alone, so nothing is lost if the teller was dead when it happened.
3. What agents wrote is quoted: no control characters, no mentions, no links in disguise, at most 200 characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Any

from agent_bus import ids
from agent_bus.domain.report import BUS
from agent_bus.domain.task import BLOCKED, DEAD_LETTER, FAILED, IN_PROGRESS, PENDING_APPROVAL, Task
from agent_bus.locale.messages import LANGUAGES
from agent_bus.locale.notices import NOTICES
from agent_bus.times import parse_stamp, stamp

LEVELS = ("info", "need", "alarm")
LEVEL_OF = {
    "task.dispatched": "info",
    "task.started": "info",
    "report.submitted": "info",
    "task.approval_needed": "need",
    "report.needs_review": "need",
    "task.blocked": "need",
    "task.silent": "need",
    "task.failed": "alarm",
    "task.dead_letter": "alarm",
    "agent.parked": "alarm",
    "bus.stopped": "alarm",
    "bus.resumed": "alarm",
    "notify.test": "alarm",
}
QUOTE_CHARS = 200
ALARM_KEEP_H = 7 * 24
_MENTION = re.compile(r"@|<(?=[@#:&!/a-z])|\](?=\()", re.IGNORECASE)
_BREAK = "\u200b"


@dataclass(frozen=True)
class Notice:
    """One thing to tell, or several about one subject that were put together.

    Args:
        key: `<event>:<subject>:<attempt>`.
        event: one of LEVEL_OF.
        subject: the task, account or stop that it is about; notices about one subject keep their order.
        level: info, need or alarm.
        at: when it happened, as documents say it.
        sender, to: from whom, to whom; "" if that says nothing.
        quote: the instruction, summary or reason, as it was written.
        command: what a person types to see or do more.
        text: the words for people, once they are made.
        queued_at: when it was put into an outbox.
    """

    key: str
    event: str
    subject: str
    level: str
    at: str
    sender: str = ""
    to: str = ""
    quote: str = ""
    command: str = ""
    text: str = ""
    queued_at: str = ""

    def value(self) -> dict[str, Any]:
        """The notice as a document."""
        return asdict(self)


def read_notice(value: Mapping[str, Any]) -> Notice:
    """The notice in a document; keys it does not know are left out, and what is no text counts as empty."""
    texts = {k: v for k in Notice.__dataclass_fields__ if isinstance(v := value.get(k, ""), str)}
    return Notice(**{**dict.fromkeys(("key", "event", "subject", "level", "at"), ""), **texts})


def make(event: str, subject: str, attempt: object, at: str, **more: str) -> Notice:
    """A notice with the key and the level of its event."""
    return Notice(f"{event}:{subject}:{attempt}", event, subject, LEVEL_OF[event], at, **more)


def of_task(task: Task, now: datetime, silent_after_s: int) -> list[Notice]:
    """Everything that a task's document has to tell, oldest first; told or not."""
    return [*_beginning(task), *_starts(task), *_end(task), *_silence(task, now, silent_after_s)]


def _beginning(task: Task) -> Iterator[Notice]:
    if task.status == PENDING_APPROVAL:
        closed = sum(line.get("event") == "close_gate" for line in task.history)
        attempt = f"{task.attempt}.{closed}" if closed else str(task.attempt)
        at = str((task.approval or {}).get("at") or task.created_at)
        yield _about(task, "task.approval_needed", attempt, at, task.instruction, "approve")
    else:
        yield _about(task, "task.dispatched", 0, task.created_at, task.instruction, "get")


def _starts(task: Task) -> Iterator[Notice]:
    received = [line for line in task.history if line.get("event") in ("receive", "adopt")]
    first = task.attempt - len(received) + 1  # the history keeps the last lines only
    for attempt, line in enumerate(received, max(1, first)):
        notice = _about(task, "task.started", attempt, str(line.get("at", "")), task.instruction, "get")
        yield replace(notice, sender=str(line.get("by", "")), to="")


def _end(task: Task) -> Iterator[Notice]:
    last = str(task.history[-1].get("at", "")) if task.history else task.created_at
    report = task.report or {}
    if task.status == DEAD_LETTER:
        yield _about(task, "task.dead_letter", task.attempt, last, task.reason, "retry")
    elif report and report.get("worker") != BUS:
        event, verb = _of_report(task, report)
        at = str(report.get("received_at") or report.get("completed_at") or last)
        notice = _about(task, event, report.get("attempt", task.attempt), at, str(report.get("summary", "")), verb)
        yield replace(notice, sender=str(report.get("worker", "")), to=task.sender)
    elif task.status == BLOCKED:
        yield _about(task, "task.blocked", f"{task.attempt}.{task.crashes}", last, task.reason, "get")


def _of_report(task: Task, report: Mapping[str, Any]) -> tuple[str, str]:
    if report.get("status") == "blocked":
        return "task.blocked", "ack"
    if report.get("status") == "failed" and task.status == FAILED:
        return "task.failed", "get"
    return ("report.needs_review", "ack") if report.get("needs_review") else ("report.submitted", "get")


def _silence(task: Task, now: datetime, silent_after_s: int) -> Iterator[Notice]:
    due = silent_at(task, silent_after_s)
    if due is not None and due <= now and task.lease is not None:
        notice = _about(task, "task.silent", task.attempt, stamp(due), task.instruction, "release")
        yield replace(notice, sender=task.lease.worker, to="")


def silent_at(task: Task, silent_after_s: int) -> datetime | None:
    """When the holder of a task will have been silent for too long; None if nobody or a launcher's run holds it."""
    if task.status != IN_PROGRESS or task.lease is None or task.lease.holder.run:
        return None
    last = task.lease.called_at or (str(task.history[-1].get("at", "")) if task.history else task.created_at)
    try:
        return parse_stamp(last) + timedelta(seconds=silent_after_s)
    except ValueError:
        return None


def _about(task: Task, event: str, attempt: object, at: str, quote: str, verb: str) -> Notice:
    command = f"agent-bus {verb} {task.task_id}"
    return make(event, task.task_id, attempt, at, sender=task.sender, to=task.to, quote=quote, command=command)


def wanted(notice: Notice, level: str, events: Sequence[str], agents: Sequence[str]) -> bool:
    """Whether a channel is told: its lowest level, its events (`task.*` is fine) and its agents; [] means all."""
    if rank(notice.level) < rank(level):
        return False
    if events and not any(fnmatchcase(notice.event, pattern) for pattern in events):
        return False
    if not agents or notice.event.startswith(("bus.", "notify.")):  # these are about everybody
        return True
    named = [ids.agent_of(name) for name in (notice.sender, notice.to) if name]
    return any(ids.same_name(one, other) for one in named for other in agents)


def rank(level: str) -> int:
    """0 info, 1 need, 2 alarm; another word counts as alarm, so that it is not lost."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS) - 1


def worded(notice: Notice, language: str, clean: Callable[[str], str]) -> Notice:
    """The notice with its text: a line of ours, who to whom, the quote, the command; its quote cut and harmless.

    Args:
        language: one of LANGUAGES.
        clean: takes secrets out; it sees the whole text, so that none straddles the cut.
    """
    who = " → ".join(defused(name) for name in (notice.sender, notice.to) if name)
    quote = defused(clean(notice.quote))
    quote = quote if len(quote) <= QUOTE_CHARS else f"{quote[:QUOTE_CHARS]}…"
    lines = (
        say(notice.event, language),
        " · ".join(filter(None, (notice.subject if ids.is_task_id(notice.subject) else "", who))),
        f"> {quote}" if quote else "",
        notice.command,
    )
    return replace(notice, quote=quote, text="\n".join(filter(None, lines)))


def say(key: str, language: str, **values: str) -> str:
    """A sentence of NOTICES."""
    return NOTICES[key][LANGUAGES.index(language) if language in LANGUAGES else 0].format(**values)


def defused(text: str) -> str:
    """Foreign text on one line that neither pings anybody nor shows one address and leads to another."""
    shown = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    shown = "".join(c for c in shown if unicodedata.category(c) not in ("Cf", "Cs"))
    return " ".join(_MENTION.sub(lambda found: found[0] + _BREAK, shown).split())


def cut_to(notice: Notice, limit: int, language: str) -> str:
    """The text in at most `limit` characters; what is cut says which command shows the rest."""
    if len(notice.text) <= limit:
        return notice.text
    rest = "\n" + say("cut", language, command=notice.command or "agent-bus tail")
    return notice.text[: limit - len(rest)] + rest


def merge(batch: Sequence[Notice]) -> Notice:
    """Notices about one subject as one, at the level of the gravest."""
    if len(batch) == 1:
        return batch[0]
    gravest = max(batch, key=lambda n: rank(n.level))
    return replace(gravest, at=batch[0].at, text="\n\n".join(n.text for n in batch))


def pick(waiting: Sequence[Notice], now: datetime, coalesce_s: int, quiet: bool) -> tuple[list[int], float]:
    """Which notices go out now, as places in `waiting`, all about one subject; else seconds until some do.

    Args:
        waiting: in the order in which they came.
        coalesce_s: notices about one subject within so many seconds become one; 0 = each goes alone.
        quiet: only alarms go out; one takes along what waits about its subject, as the order is kept.
    """
    by_subject: dict[str, list[int]] = {}
    for place, notice in enumerate(waiting):
        by_subject.setdefault(notice.subject, []).append(place)
    soonest = 60.0
    for places in by_subject.values():
        first = places[0]
        batch = [p for p in places if p == first or _age_s(waiting[p], waiting[first]) <= coalesce_s > 0]
        if quiet:
            alarms = [p for p in places if waiting[p].level == "alarm"]
            if not alarms:
                continue
            first = alarms[0]
            batch = [p for p in places if p <= first]
        left = coalesce_s - _since_s(waiting[first].queued_at, now, float("inf"))
        if left <= 0:
            return batch, 0.0
        soonest = min(soonest, left)
    return [], soonest


def is_over(notice: Notice, now: datetime, keep_h: int) -> bool:
    """Whether it has waited too long to be worth telling; alarms stay for seven days."""
    hours = max(keep_h, ALARM_KEEP_H) if notice.level == "alarm" else keep_h
    return _since_s(notice.at, now, _since_s(notice.queued_at, now, 0.0)) > hours * 3600


def is_quiet(local: time, window: str) -> bool:
    """Whether a local time of day lies in a window such as `22:00-07:00`; "" = never."""
    if not window:
        return False
    begin, end = (time.fromisoformat(part) for part in window.split("-"))
    moment = local.replace(tzinfo=None, fold=0)
    return begin <= moment < end if begin <= end else moment >= begin or moment < end


def _age_s(later: Notice, earlier: Notice) -> float:
    try:
        return (parse_stamp(later.queued_at) - parse_stamp(earlier.queued_at)).total_seconds()
    except ValueError:
        return 0.0


def _since_s(text: str, now: datetime, unknown: float) -> float:
    """Seconds since a stored time; `unknown` if it cannot be read, or lies ahead as a clock was set back."""
    try:
        passed = (now - parse_stamp(text)).total_seconds()
    except ValueError:
        return unknown
    return passed if passed >= 0 else unknown
