"""The mirror: keeps the notes of the vault true (docs/vault-notes.md), and takes what people write there.

A note is written only when something of ours in it differs: a task's when its state changed, other notes at most every
`min_interval_s`; none within `quiet_write_s` of what somebody else wrote there. While nothing happens nothing is
written.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import dashboard, mirrors
from agent_bus.domain.dashboard import Overview, Row
from agent_bus.domain.mirrors import NEEDS_YOU, Mirror
from agent_bus.domain.task import IN_PROGRESS, TERMINAL, Task
from agent_bus.jobs.mirror_archive import Archive, ended_at
from agent_bus.jobs.mirror_chains import Chains
from agent_bus.jobs.mirror_decided import deciding
from agent_bus.jobs.mirror_look import Reader
from agent_bus.jobs.mirror_rooms import RoomNotes
from agent_bus.notes import names
from agent_bus.notes.dashboard import language_of
from agent_bus.notes.notebook import KEPT_OUT, LATER, Notebook
from agent_bus.operations import agents, find, health, listing, requests, stop, vault_channel
from agent_bus.store.format import epoch_of, label
from agent_bus.store.port import Doc, Feed
from agent_bus.texts import Texts, choose_language
from agent_bus.times import local_text

log = logging.getLogger(__name__)
URGENT_S, DASHBOARD_S, IDLE_S, PROBLEMS_S, READ_S = 2.0, 10.0, 2.0, 30.0, 0.3
ENDED_SHOWN = 10
_NUMBER = re.compile(r"(?<![-\w])\d+(?![-\w])")
_FOLDERS = ("approvals", "waiting", "dead_letter")


@dataclass
class Known:
    """A task as the mirror last saw it."""

    row: Row
    created: str


@dataclass
class State:
    """What a mirror keeps between two ticks."""

    notebook: Notebook
    texts: Texts
    reader: Reader
    archive: Archive
    chains: Chains
    rooms: RoomNotes
    feeds: dict[str, Feed] = field(default_factory=dict)
    open: dict[str, Known] = field(default_factory=dict)
    ended: list[tuple[str, Row]] = field(default_factory=list)
    kept_out: set[str] = field(default_factory=set)
    """Tasks of which a note could not be written: they are tried again at each full look."""
    revs: dict[str, str] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)
    full_at: float = float("-inf")
    agents_at: float = float("-inf")
    dashboard_at: float = float("-inf")
    problems_at: float = float("-inf")
    shown: str = ""
    changed: str = ""
    problems: list[str] = field(default_factory=list)
    zone: str = ""

    def local(self, text: str) -> str:
        """A stored time as people here read it."""
        return local_text(text, self.zone)


class MirrorJob:
    """Keeps its place between ticks."""

    def __init__(self) -> None:
        self._state: State | None = None

    def tick(self, bus: Bus, now: datetime) -> float:
        """See `jobs.loop`: one pass; seconds until the next."""
        if not is_on(bus) or (bus.layout is not None and not bus.layout.is_ours()):
            self._state = None  # whoever takes the bus over again looks at all notes anew
            return bus.settings.vault.scan_s
        if self._state is None:
            self._state = _begin(bus)
        try:
            return _pass(bus, self._state)
        except OSError as error:
            log.warning("mirror: a note cannot be written: %s", error)
            return URGENT_S * 5


def is_on(bus: Bus) -> bool:
    """Whether notes are written: only into a folder where somebody ran `agent-bus vault install`, unless told so."""
    wanted = bus.settings.vault.mirror
    if bus.layout is None or wanted == "off":
        return False
    return wanted == "on" or (bus.layout.root / "Dashboard.md").exists()


def _begin(bus: Bus) -> State:
    texts = Texts(_language(bus))
    notebook = Notebook(bus, bus.settings.vault.quiet_write_s)
    zone = bus.settings.timezone
    local = partial(local_text, zone=zone)
    archive, rooms = Archive(bus, notebook, texts, local), RoomNotes(bus, notebook, texts, local)
    state = State(
        notebook, texts, Reader(bus, notebook, texts), archive, Chains(bus, notebook, texts), rooms, zone=zone
    )
    for task in listing.ended_last(bus, ENDED_SHOWN):
        _remember(state, task)
    for name in state.notebook.names("notes/tasks"):  # what ended while nobody looked has a note that says otherwise
        if ids.is_task_id(name):
            state.due[name] = float("-inf")
    return state


def _language(bus: Bus) -> str:
    """The language of the notes: the setting's, else that in which they were installed, else the system's."""
    assert bus.layout is not None
    if bus.settings.vault.lang != "auto":
        return bus.settings.vault.lang
    return language_of(bus.layout.root) or choose_language(bus.settings.language, os.environ)


def _pass(bus: Bus, state: State) -> float:
    now = bus.clock.boot_s()
    for task_id in state.reader.look(state.open):
        state.due.setdefault(task_id, now)
    full = now - state.full_at >= bus.settings.vault.scan_s
    for task_id in _changed(bus, state, full):
        state.due.setdefault(task_id, now + (0.0 if state.full_at < 0 else URGENT_S))
    if full:
        state.full_at = now
        state.due |= dict.fromkeys(state.kept_out - state.due.keys(), now)
    for task_id in [one for one, at in state.due.items() if at <= now]:
        if not _write_task(bus, state, task_id):
            del state.due[task_id]
    state.archive.run(now)
    state.chains.write()
    state.rooms.write(now)
    _write_agents(bus, state, now)
    _write_overview(bus, state, now)
    return max(READ_S, min(IDLE_S, state.reader.waits_s()))


def _changed(bus: Bus, state: State, full: bool) -> Iterator[str]:
    """Ids of tasks whose documents changed, each once."""
    folders = [*_FOLDERS, *(f"inbox/{name}" for name in bus.store.folders("inbox")), "reports/pending"]
    found: dict[str, None] = {}
    for folder in folders:
        feed = state.feeds.setdefault(folder, bus.store.feed(folder))
        for key, doc in feed.changes(full):  # a full look tells every document: those with a known revision are skipped
            rev = doc.rev if isinstance(doc, Doc) else ""
            if ids.is_task_id(name := key.rpartition("/")[2]) and (not rev or state.revs.get(key) != rev):
                found[name] = None
            if rev:
                state.revs[key] = rev
            else:
                state.revs.pop(key, None)
    yield from found


def _write_task(bus: Bus, state: State, task_id: str) -> bool:
    """Writes a task's notes; whether they must be looked at again."""
    found = find.find_quietly(bus, task_id)
    if found is None:
        state.open.pop(task_id, None)
        return False
    task = found.task
    _remember(state, task)
    if _is_put_away(bus, state, task):
        return False
    if len(state.open) > bus.settings.vault.max_notes and not _counts(state, task_id):
        return False
    say, local = state.texts.say, state.local
    wanted = [
        mirrors.task_note(task, say, local, deciding(bus, task, state.texts, local)),
        mirrors.report_note(task, say, local),
    ]
    state.chains.note(task)
    outcomes = [state.notebook.put(one) for one in wanted if one is not None]
    if KEPT_OUT in outcomes:
        state.kept_out.add(task_id)
    else:
        state.kept_out.discard(task_id)
    return LATER in outcomes


def _is_put_away(bus: Bus, state: State, task: Task) -> bool:
    """Whether a task ended so long ago that its note is not made again."""
    at, keep = ended_at(task), timedelta(days=bus.settings.vault.keep_days)
    return at is not None and bus.now() - at > keep and task.task_id not in state.notebook.tasks


def _counts(state: State, task_id: str) -> bool:
    """Of too many tasks, those that have a note, or that a person is asked about, or that run, are shown."""
    known = state.open.get(task_id)
    wanted = known is None or known.row.status in (*NEEDS_YOU, IN_PROGRESS)
    return wanted or state.notebook.exists(f"notes/tasks/{task_id}")


def _remember(state: State, task: Task) -> None:
    row = dashboard.row_of(task.task_id, task.instruction, task.status, task.to)
    at = str(task.history[-1].get("at", "")) if task.history else task.created_at
    state.changed = max(state.changed, at)
    if task.status in TERMINAL:
        state.open.pop(task.task_id, None)
        others = [one for one in state.ended if one[1].task_id != row.task_id]
        state.ended = sorted([(at, row), *others], key=lambda one: (one[0], one[1].task_id))[-ENDED_SHOWN:]
    else:
        state.open[task.task_id] = Known(row, task.created_at)


def _write_agents(bus: Bus, state: State, now: float) -> None:
    if now - state.agents_at < bus.settings.vault.min_interval_s:
        return
    state.agents_at = now
    for name in agents.known_agents(bus):
        waiting = sum(
            1 for one in state.open.values() if one.row.status == "pending" and ids.same_name(one.row.to, name)
        )
        status = agents.status(bus, name)
        state.notebook.put(
            mirrors.agent_note(name, names.of_agent(name), status.value if status else {}, waiting, state.texts.say)
        )


def _write_overview(bus: Bus, state: State, now: float) -> None:
    """Dashboard and Problems: at once for a stop, else at most every ten seconds."""
    stopped = stop.read(bus)
    urgent = str(stopped and stopped.get("epoch")) != state.shown
    if now - state.dashboard_at < DASHBOARD_S and not urgent:
        return
    if now - state.problems_at >= PROBLEMS_S or urgent:
        state.problems_at = now
        fresh = health.examine(bus).problems
        if [_bare(one) for one in fresh] != [_bare(one) for one in state.problems]:
            state.problems = fresh
    state.dashboard_at, state.shown = now, str(stopped and stopped.get("epoch"))
    told = {**state.notebook.problems, **state.reader.problems()}
    told = {f"{path}.md": why for path, why in told.items()} | state.chains.problems
    lines = [*state.problems, *(f"{path} {why}" for path, why in sorted(told.items()))]
    notes: list[Mirror] = [
        dashboard.problems_note(lines, state.texts.say),
        dashboard.dashboard(_overview(bus, state, lines, stopped), state.texts.say),
    ]
    if LATER in [state.notebook.put(one) for one in notes]:
        state.dashboard_at = now - DASHBOARD_S + URGENT_S


def _bare(problem: str) -> str:
    """A problem without its numbers, but for those of ids: that an hour has become 61 minutes is no change."""
    return _NUMBER.sub("", problem)


def _overview(bus: Bus, state: State, problems: list[str], stopped: dict[str, object] | None) -> Overview:
    order = sorted(state.open.values(), key=lambda one: one.created)
    you = [one.row for one in order if one.row.status in NEEDS_YOU]
    running = [one.row for one in order if one.row.status == IN_PROGRESS]
    queued = [one.row for one in order if one.row.status not in (*NEEDS_YOU, IN_PROGRESS)]
    shown = dashboard.SHOWN
    return Overview(
        you[:shown], running[:shown], queued[:shown], [row for _, row in reversed(state.ended)],
        {"needs_you": len(you), "running": len(running), "queue": len(queued), "done": len(state.ended)},
        [_agent(bus, name) for name in agents.known_agents(bus)],
        len(problems), stopped, state.local(state.changed), *_owner(bus), state.texts.language,
        requests.of_stop(bus, str(stopped.get("epoch", ""))).req if stopped is not None else "",
        vault_channel.why(bus), state.chains.latest(), state.rooms.latest(),
    )  # fmt: skip


def _owner(bus: Bus) -> tuple[str, int]:
    """The owner host and the epoch, which the Dashboard repeats (docs/vault-format.md "The owner host")."""
    assert bus.layout is not None
    found = bus.layout.read_format()
    return label(found.get("owner", {})), epoch_of(found)


def _agent(bus: Bus, name: str) -> tuple[str, str, str]:
    status: Doc | None = agents.status(bus, name)
    return name, names.of_agent(name), str(status.value.get("state", "")) if status else ""
