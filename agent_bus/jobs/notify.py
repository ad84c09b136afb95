"""The teller: works out from documents what is to be told, and puts it into the outbox of every channel that wants it.

It looks at what has changed (feeds), at its first look at everything, and remembers by key what has been told; so a
kill loses nothing. Without channels it does nothing. Sending is the senders' (`jobs/sender.py`): this one never waits
for anybody outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import notice as notices
from agent_bus.domain.notice import Notice
from agent_bus.jobs.loop import Job
from agent_bus.jobs.sender import Sender
from agent_bus.launchers.output import redact
from agent_bus.operations import find, outbox, stop
from agent_bus.store import records
from agent_bus.store.port import Doc, Feed, Unreadable
from agent_bus.times import parse_stamp, stamp

EVERY_S = 10.0
PARKED = ".bus/parked"
PLACES = ("approvals", "waiting", "dead_letter", PARKED)
_LOCKED_S = 5.0
_PASS = "notify-pass"
_PASS_EVERY_S = 60.0
_BLANK_S = 2.0
_MARGIN = timedelta(hours=1)
_MOMENT = timedelta(seconds=5)
_LOOK_BACK = timedelta(days=7)
_FORGET = timedelta(days=9)


class Teller:
    """Keeps its place in the streams of changes between ticks; what it has told stands in documents."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self._todo: set[str] = set()
        self._parked: list[Notice] = []
        self._held: dict[str, datetime] = {}
        self._first = self._unsure = True
        self._waiting: set[tuple[str, str]] = set()
        self._blank_at: float | None = None
        self._full_at = self._passed_at = float("-inf")

    def tick(self, bus: Bus, now: datetime) -> float:
        """See `jobs.loop`: one look."""
        if not outbox.channels(bus):
            return 60.0
        bus.check_writable()
        with outbox.alone(bus, "notify-teller") as mine:
            if not mine:
                return _LOCKED_S
            self.look(bus, now)
            return self._delay(now)

    def look(self, bus: Bus, now: datetime) -> None:
        """Tells what is new; to be called under the teller's lock. What a failure leaves over, the next look does."""
        begun = min(outbox.told(bus, "begin"), default="")
        self._waiting = outbox.waiting_keys(bus) if self._unsure else set()
        self._unsure = True
        self._find_changes(bus, now, begun)
        for name in sorted(self._todo | {name for name, due in self._held.items() if due <= now}):
            self._tell_task(bus, name, now, silent=not begun)
            self._todo.discard(name)
        while self._parked:
            self._tell(bus, f"parked-{self._parked[-1].subject}", self._parked[-1:], silent=not begun)
            self._parked.pop()
        self._tell_stop(bus, now, silent=not begun)
        if not begun:  # what lay there when the first channel was made is no news
            outbox.set_told(bus, "begin", {stamp(now)}, False)
        self._note_pass(bus, now)
        self._first = self._unsure = False

    def _find_changes(self, bus: Bus, now: datetime, begun: str) -> None:
        """Notes the tasks that may have changed, and what is parked."""
        if self._first:
            self._todo |= set(outbox.open_told(bus)) | _ended_lately(bus, now, begun)
        full = bus.clock.boot_s() - self._full_at >= EVERY_S
        for prefix in (*PLACES, *(f"inbox/{n}" for n in bus.store.folders("inbox"))):
            if prefix not in self._feeds:
                self._feeds[prefix] = bus.store.feed(prefix)
                if not self._first:  # a new inbox: its first tasks may have ended before anybody followed it
                    self._todo |= _ended_lately(bus, now, begun)
            for key, doc in self._feeds[prefix].poll(full):
                name = key.rpartition("/")[2]
                if prefix == PARKED:
                    self._parked += [_of_parked(name, doc.value)] if isinstance(doc, Doc) else []
                elif ids.is_task_id(name):
                    self._todo.add(name)
        if full:
            self._full_at = bus.clock.boot_s()

    def _tell(self, bus: Bus, name: str, events: Iterable[Notice], silent: bool, ended: bool = False) -> None:
        """Puts what has not been told into the outboxes, then notes its keys (`operations/outbox.py` says why so)."""
        known = outbox.told(bus, name)
        fresh = [event for event in events if _short(event) not in known]
        for event in () if silent else fresh:
            for channel in outbox.channels(bus):
                if (channel, event.key) not in self._waiting:
                    _put(bus, channel, event)
        if fresh or ended:
            outbox.set_told(bus, name, known | {_short(event) for event in fresh}, ended)

    def _tell_task(self, bus: Bus, name: str, now: datetime, silent: bool) -> None:
        self._held.pop(name, None)
        try:
            found = find.find(bus, name)
        except Unreadable:
            return  # quarantine's business
        if found is None:
            return
        task = found.task
        self._tell(bus, name, notices.of_task(task, now, bus.settings.silent_after_s), silent, task.ended)
        due = notices.silent_at(task, bus.settings.silent_after_s)
        if due is not None and due > now:
            self._held[name] = due

    def _tell_stop(self, bus: Bus, now: datetime, silent: bool) -> None:
        """The stop that stands, and the end of one that was told; one that came and went unseen leaves no document."""
        found = stop.read(bus)
        if found == {}:  # between its rename and its content; it may stay so if the disk is full
            self._blank_at = bus.clock.boot_s() if self._blank_at is None else self._blank_at
            if bus.clock.boot_s() - self._blank_at < _BLANK_S:
                return
        else:
            self._blank_at = None
        known = outbox.told(bus, "stop")
        begun, ended = ({k[12:] for k in known if k.startswith(event)} for event in ("bus.stopped:", "bus.resumed:"))
        standing = (
            "" if found is None else str(found.get("epoch") or min(begun - ended, default=f"{now:%Y%m%d-%H%M%S}"))
        )
        events = [
            notices.make("bus.resumed", "bus", epoch, stamp(now), command="agent-bus status")
            for epoch in sorted(begun - ended - {standing})
        ]
        if found is not None:
            who = {"sender": str(found.get("by", "")), "quote": str(found.get("reason", ""))}
            at = str(found.get("at") or stamp(now))
            events.append(notices.make("bus.stopped", "bus", standing, at, command="agent-bus resume", **who))
        self._tell(bus, "stop", events, silent)

    def _delay(self, now: datetime) -> float:
        due = min(self._held.values(), default=None)
        return EVERY_S if due is None else min(EVERY_S, max(0.1, (due - now).total_seconds()))

    def _note_pass(self, bus: Bus, now: datetime) -> None:
        """When somebody looked last: what ended after that, with nobody looking, is found by its id's time."""
        boot_s = bus.clock.boot_s()
        if boot_s - self._passed_at < _PASS_EVERY_S:
            return
        self._passed_at = boot_s
        outbox.forget_told(bus, f"{now - _FORGET:%Y%m%d}")
        if bus.layout is not None:
            with suppress(OSError):
                records.write(bus.layout, _PASS, {"at": stamp(now)})


def jobs(bus: Bus) -> list[Job]:
    """The teller and one sender a channel; none without channels."""
    names = outbox.channels(bus)
    senders = [Job(f"notify-{name}", Sender(name).tick) for name in names]
    return [Job("notify", Teller().tick), *senders] if names else []


def _put(bus: Bus, channel: str, event: Notice) -> None:
    settings = bus.settings.notify[channel]
    if not notices.wanted(event, settings.level, settings.events, settings.agents):
        return
    if notices.is_over(event, bus.now(), settings.keep_h):
        outbox.note_dropped(bus, channel, 1, "too old")
        return
    secrets = [s for other in bus.settings.notify.values() for s in other.secrets()]
    made = notices.worded(event, outbox.language_of(bus, channel), lambda text: redact(text, secrets))
    outbox.put(bus, channel, replace(made, queued_at=bus.stamp()))


def _of_parked(account: str, value: dict[str, Any]) -> Notice:
    agents = value.get("agents") or [account]
    words = f"{value.get('reason', '')} · {value.get('evidence', '')}".strip(" ·")
    until = f" → {value['until']}" if value.get("until") else ""
    since = str(value.get("since", ""))
    attempt = since.replace(":", "")
    command = "agent-bus status" if agents == ["*"] else f"agent-bus unpark {agents[0]}"
    return notices.make(
        "agent.parked", account, attempt, since, sender=str(agents[0]), quote=words + until, command=command
    )


def _ended_lately(bus: Bus, now: datetime, begun: str) -> set[str]:
    """Tasks made since the last look (with a margin, at most seven days back) that lie in the archive by now.

    Args:
        begun: when the first channel was made, "" for now: what had ended before is no news, and has no key.
    """
    record = records.read(bus.layout, _PASS) if bus.layout is not None else None
    since = now - _LOOK_BACK
    with suppress(ValueError):
        since = max(since, parse_stamp(str((record or {}).get("at", ""))) - _MARGIN)
    since = max(since, parse_stamp(begun)) if begun else now - _MOMENT
    first = ids.format_task_id(since, 0)
    months = [m for m in bus.store.folders("archive") if m >= f"{since:%Y-%m}"]
    names = (key.rpartition("/")[2] for month in months for key in bus.store.keys(f"archive/{month}"))
    return {name for name in names if ids.is_task_id(name) and name >= first}


def _short(event: Notice) -> str:
    """The key without the subject, which the document's name says already."""
    return f"{event.event}:{event.key.rpartition(':')[2]}"
