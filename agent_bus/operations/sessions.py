"""The sessions of launched agents: `.bus/sessions/<agent>/<hash>`, one for each work folder and thread.

Only sessions that runs have made stand here, so a person's own conversations are never gone on with. No flag that takes
"the newest session" is ever used.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain.run import Run
from agent_bus.domain.task import Task
from agent_bus.operations import find
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

PREFIX = ".bus/sessions"
PREVIOUS = 20
_PARENTS = 20
_TRIES = 20


@dataclass(frozen=True)
class Place:
    """Where a session belongs; all five must agree for it to be gone on with."""

    agent: str
    work_dir: str
    thread: str
    launcher: str
    config_dir: str

    @property
    def key(self) -> str:
        """The key of its document."""
        text = f"{os.path.realpath(self.work_dir)}\n{self.thread}"
        return f"{PREFIX}/{ids.folder_of(self.agent)}/{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Choice:
    """The session of a run; `session_id` "" = the CLI names one of its own."""

    session_id: str
    resume: bool
    mode: str


def thread_of(bus: Bus, task: Task) -> str:
    """The task's thread, else that of the nearest parent that has one, else `main`."""
    here: Task | None = task
    for _ in range(_PARENTS):
        if here is None or here.thread or not here.parent:
            break
        found = find.find_quietly(bus, here.parent)
        here = found.task if found else None
    return here.thread if here and here.thread else "main"


def mode_of(task: Task, default: str) -> str:
    """`new` or `continue`: what the task's context asks for, else the agent's setting."""
    context = task.context if isinstance(task.context, dict) else {}
    if context.get("new_project") in (True, "true") or context.get("session") == "new":
        return "new"
    return "continue" if context.get("session") == "continue" else default


def choose(bus: Bus, place: Place, mode: str, mints: bool, earlier: list[Run]) -> Choice:
    """The session for a task's next run, and the map's entry for it.

    Args:
        mode: `mode_of`; a further run of the task goes on with the session of its last one, whatever the mode.
        mints: whether the CLI takes an id of ours.
        earlier: the task's runs before this one.
    """
    entry = _value(bus, place)
    fits = entry is not None and (entry.get("launcher"), entry.get("config_dir")) == (place.launcher, place.config_dir)
    known = str(entry.get("session_id", "")) if entry is not None and fits else ""
    mine = any(r.session_id == known for r in earlier)
    if known and (mode == "continue" or mine):
        return Choice(known, True, mode)
    return Choice(
        mint(bus, place, "a new session was asked for" if mode == "new" else "") if mints else "", False, mode
    )


def mint(bus: Bus, place: Place, why: str) -> str:
    """A fresh id of ours, written to the map before its session is made."""
    fresh = str(uuid.uuid4())
    remember(bus, place, fresh, "", why)
    return fresh


def remember(
    bus: Bus, place: Place, session_id: str, run_id: str, why: str = "", totals: Mapping[str, float] | None = None
) -> None:
    """Makes a session that of its place; another one goes to `previous`, with why.

    Args:
        totals: what the session as a whole has cost by now, where the CLI says so.
    """
    for _ in range(_TRIES):
        doc = _doc(bus, place)
        old = doc.value if doc else {}
        value = {
            "schema": 1,
            "agent": place.agent,
            "work_dir": place.work_dir,
            "thread": place.thread,
            "launcher": place.launcher,
            "config_dir": place.config_dir,
            "session_id": session_id,
            "created_at": old.get("created_at") if old.get("session_id") == session_id else bus.stamp(),
            "last_run": run_id or old.get("last_run", ""),
            "runs": int(old.get("runs", 0)) + bool(run_id and run_id != old.get("last_run")),
            "previous": _previous(bus, old, session_id, why),
            "totals": {**_totals(old, session_id), **(totals or {})},
        }
        with suppress(Exists, Stale):
            if doc is None:
                bus.store.create(place.key, value)
            else:
                bus.store.replace(doc, value)
            return


def totals(bus: Bus, place: Place, session_id: str) -> dict[str, float]:
    """What a session had cost when its last process ended, as its CLI counts; {} for a new one."""
    doc = _doc(bus, place)
    return _totals(doc.value if doc else {}, session_id)


def _totals(entry: dict[str, Any], session_id: str) -> dict[str, float]:
    known = entry.get("totals")
    return dict(known) if isinstance(known, dict) and entry.get("session_id") == session_id else {}


def forget(bus: Bus, place: Place, why: str) -> None:
    """The next run of this place begins a new session."""
    remember(bus, place, "", "", why)


def listed(bus: Bus, agent: str = "") -> list[Doc]:
    """The entries of an agent, or of all."""
    folders = [ids.folder_of(agent)] if agent else list(bus.store.folders(PREFIX))
    return [d for f in folders for d in bus.store.list(f"{PREFIX}/{f}")]


def _previous(bus: Bus, old: dict[str, Any], session_id: str, why: str) -> list[dict[str, Any]]:
    before = old.get("previous")
    kept = list(before) if isinstance(before, list) else []
    former = str(old.get("session_id") or "")
    if former and former != session_id:
        kept.append({"session_id": former, "until": bus.stamp(), "why": why[:200]})
    return kept[-PREVIOUS:]


def _doc(bus: Bus, place: Place) -> Doc | None:
    with suppress(Unreadable):
        return bus.store.get(place.key)
    return None


def _value(bus: Bus, place: Place) -> dict[str, Any] | None:
    doc = _doc(bus, place)
    return doc.value if doc else None
