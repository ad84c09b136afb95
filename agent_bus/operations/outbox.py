"""Outboxes: what each channel is still to be told, what has been told, and how each channel is.

    .bus/outbox/<channel>/<number>   one notice that waits; taken away when it is sent
    .bus/outbox/<channel>            the channel's state: last_sent, last_error, next_try, failures, off
    .bus/told/<YYYYMMDD>/<task_id>   the keys of a task's notices that are in the outboxes, or were; `ended` when it has

First the outboxes, then the key: a kill between the two tells a notice again at most, never not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import notice as notices
from agent_bus.domain.notice import Notice
from agent_bus.errors import BusError
from agent_bus.settings_notify import ChannelSettings
from agent_bus.store import records
from agent_bus.store.port import Doc, Exists, Stale, Unreadable
from agent_bus.texts import choose_language

OUTBOX, TOLD = ".bus/outbox", ".bus/told"
LOOK = 1000
"""At most so many waiting notices are looked at in one go."""
SENDER_RECORD = "job-notify"


def channels(bus: Bus) -> dict[str, ChannelSettings]:
    """The channels that are on, by name."""
    return {name: channel for name, channel in bus.settings.notify.items() if channel.enabled}


def language_of(bus: Bus, channel: str) -> str:
    """The language that a channel is spoken to in."""
    own = bus.settings.notify[channel].language
    return choose_language(bus.settings.language if own == "auto" else own, os.environ)


@contextmanager
def alone(bus: Bus, name: str) -> Iterator[bool]:
    """Keeps a part of telling to one process at a time; False if another one is at it.

    The pool is one of its own: while it waits for the world outside, it holds no lock that a verb could want.
    """
    lock = bus.store.lock(name, "notify", 0.0)
    try:
        lock.__enter__()
    except BusError as error:
        if error.code != "busy":
            raise
        yield False
        return
    try:
        yield True
    finally:
        lock.__exit__(None, None, None)


def test_notice(bus: Bus, channel: str) -> Notice:
    """The notice of `agent-bus notify test`."""
    made = notices.make("notify.test", bus.token(), 0, bus.stamp(), queued_at=bus.stamp())
    return notices.worded(made, language_of(bus, channel), str)


def put(bus: Bus, channel: str, notice: Notice) -> None:
    """Adds a notice to a channel's outbox."""
    keys = bus.store.keys(f"{OUTBOX}/{channel}")
    number = int(keys[-1].rpartition("/")[2]) + 1 if keys and keys[-1][-1].isdigit() else 1
    while True:
        with suppress(Exists):
            bus.store.create(f"{OUTBOX}/{channel}/{number:08d}", notice.value())
            return
        number += 1


def waiting(bus: Bus, channel: str, limit: int | None = LOOK) -> list[tuple[Doc, Notice]]:
    """The notices that wait for a channel, in order, at most `limit` of them."""
    found = []
    for key in bus.store.keys(f"{OUTBOX}/{channel}")[:limit]:
        with suppress(Unreadable):
            doc = bus.store.get(key)
            if doc is not None:
                found.append((doc, notices.read_notice(doc.value)))
    return found


def waiting_keys(bus: Bus) -> set[tuple[str, str]]:
    """Channel and key of every notice that waits: what a teller that was killed may not have noted as told."""
    return {(name, notice.key) for name in channels(bus) for _, notice in waiting(bus, name, limit=None)}


def take(bus: Bus, docs: list[Doc]) -> None:
    """Takes notices out of an outbox; what somebody has taken already is fine."""
    for doc in docs:
        with suppress(Stale):
            bus.store.delete(doc)


def state(bus: Bus, channel: str) -> dict[str, Any]:
    """How a channel is, {} before its first try."""
    doc = _state(bus, channel)
    return doc.value if doc else {}


def set_state(bus: Bus, channel: str, changes: Mapping[str, Any]) -> None:
    """Changes a channel's state; not durable, as it is only what has been seen."""
    for _ in range(20):
        doc = _state(bus, channel)
        try:
            if doc is None:
                bus.store.create(f"{OUTBOX}/{channel}", {"channel": channel, **changes}, durable=False)
            elif doc.value != {**doc.value, **changes}:
                bus.store.replace(doc, {**doc.value, **changes}, durable=False)
            return
        except (Exists, Stale):
            continue


def retry(bus: Bus, channel: str) -> None:
    """Lets a channel try again at once, whatever it waits for."""
    set_state(bus, channel, {"next_try": "", "failures": 0, "off": ""})


def drop(bus: Bus, channel: str) -> int:
    """Takes away everything that waits for a channel; how many notices it was."""
    dropped = 0
    while found := waiting(bus, channel):
        take(bus, [doc for doc, _ in found])
        dropped += len(found)
    if dropped:
        note_dropped(bus, channel, dropped, "by hand")
    return dropped


def note_dropped(bus: Bus, channel: str, count: int, why: str) -> None:
    """The journal's line about notices that nobody was told."""
    line = {"at": bus.stamp(), "event": "notify.dropped", "channel": channel, "count": count, "outcome": why}
    bus.journal.write(bus.now(), line)


def told(bus: Bus, name: str) -> set[str]:
    """The keys that are told about a task, or about what `name` stands for."""
    doc = _told(bus, name)
    return set(doc.value.get("keys", [])) if doc else set()


def set_told(bus: Bus, name: str, keys: set[str], ended: bool) -> None:
    """Writes the keys that are told; of what is no task the newest 500 are kept."""
    value = {"keys": sorted(keys)[-500:], "ended": ended}
    for _ in range(20):
        doc = _told(bus, name)
        try:
            if doc is None:
                bus.store.create(_told_key(name), value, durable=False)
            elif doc.value != value:
                bus.store.replace(doc, value, durable=False)
            return
        except (Exists, Stale):
            continue


def open_told(bus: Bus) -> Iterator[str]:
    """The tasks that had not ended when something was told of them last."""
    for day in bus.store.folders(TOLD):
        for doc in bus.store.list(f"{TOLD}/{day}"):
            if not doc.value.get("ended"):
                yield doc.name


def forget_told(bus: Bus, before_day: str) -> None:
    """Drops what was told of ended tasks whose id is from before a day (YYYYMMDD)."""
    for day in bus.store.folders(TOLD):
        if day.isdigit() and day < before_day:
            take(bus, [doc for doc in bus.store.list(f"{TOLD}/{day}") if doc.value.get("ended")])


def overview(bus: Bus) -> list[dict[str, Any]]:
    """Every channel for people: what waits, what was sent last, what went wrong."""
    rows = []
    for name in bus.settings.notify:
        known = state(bus, name)
        rows.append(
            {
                "channel": name,
                "enabled": bus.settings.notify[name].enabled,
                "waiting": len(bus.store.keys(f"{OUTBOX}/{name}")),
                **{key: str(known.get(key, ""))[:200] for key in ("last_sent", "last_error", "next_try", "off")},
            }
        )
    return rows


def problems(bus: Bus) -> Iterator[str]:
    """What is wrong with the channels, in sentences that say what to do."""
    rows = [row for row in overview(bus) if row["enabled"]]
    for row in rows:
        if row["off"]:
            fix = f"mend the settings, or agent-bus notify retry {row['channel']}"
            yield f"Notices to {row['channel']} are off ({row['off']}): {fix}."
    count = sum(row["waiting"] for row in rows)
    sends = bus.layout is None or records.alive(records.read(bus.layout, SENDER_RECORD))
    if count and not sends:
        yield f"{count} notices wait and nobody sends them: agent-bus up."


def _state(bus: Bus, channel: str) -> Doc | None:
    with suppress(Unreadable):
        return bus.store.get(f"{OUTBOX}/{channel}")
    return None


def _told(bus: Bus, name: str) -> Doc | None:
    with suppress(Unreadable):
        return bus.store.get(_told_key(name))
    return None


def _told_key(name: str) -> str:
    return f"{TOLD}/{name[2:10]}/{name}" if ids.is_task_id(name) else f"{TOLD}/{name}"
