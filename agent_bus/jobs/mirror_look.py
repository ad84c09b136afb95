"""What the mirror reads at each tick: only what has changed, and nothing is opened that has not."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.jobs import mirror_inbox, mirror_read, mirror_stop
from agent_bus.jobs.mirror_channel import Channel
from agent_bus.jobs.mirror_commands import Commands
from agent_bus.jobs.mirror_inbox import Inbox
from agent_bus.jobs.mirror_read import TaskNotes
from agent_bus.jobs.mirror_stop import Stops
from agent_bus.notes.notebook import Notebook
from agent_bus.operations import vault_channel
from agent_bus.texts import Texts

log = logging.getLogger(__name__)
COMMANDS = "commands"


class Reader:
    """Reads everything that people may write for the bus.

    Args:
        bus: with a folder.
        notebook: that writes the notes.
        texts: in the language of the notes.
    """

    def __init__(self, bus: Bus, notebook: Notebook, texts: Texts) -> None:
        assert bus.layout is not None
        self._bus = bus
        self._root = bus.layout.root
        channel = Channel(bus)
        self._channel = channel
        self._stops = Stops(bus, notebook, channel.people)
        self._tasks = TaskNotes(bus, notebook, channel)
        self._commands = Commands(bus, notebook, channel, texts)
        self._inbox = Inbox(bus, notebook, channel, texts, self._stops)

    def look(self, open_ids: Collection[str]) -> set[str]:
        """Deals with what people have written; the ids of tasks whose notes must be looked at.

        Args:
            open_ids: the tasks that have not ended.
        """
        orders = dict(notes_in(self._root, COMMANDS))
        inbox, dashboard = orders.get(mirror_inbox.PATH), _stat(self._root / f"{mirror_stop.PATH}.md")
        touched = set[str]()
        looks: tuple[Callable[[], object], ...] = (
            partial(self._stops.look_for_notes, orders),
            partial(self._stops.look, dashboard),
            lambda: touched.update(self._finish()),
            lambda: touched.update(self._tasks.look(dict(notes_in(self._root, mirror_read.FOLDER)), open_ids)),
            partial(self._inbox.look, inbox),
            partial(self._commands.look, orders),
        )
        for look in looks:
            try:
                look()
            except (OSError, BusError) as error:  # the other notes are read all the same
                log.warning("mirror: a note cannot be dealt with: %s", error)
        return touched

    def _finish(self) -> Iterator[str]:
        """Carries out what was cut short; the ids of tasks whose notes must be looked at."""
        for outcome in self._channel.finish():
            if outcome.task_id:
                self._tasks.settle(outcome)
                yield outcome.task_id

    def waits_s(self) -> float:
        """Seconds until a note that has changed may be read."""
        watched = (self._stops.files, self._tasks.files, self._commands.files, self._inbox.files)
        return min(one.waits_s() for one in watched)

    def problems(self) -> Mapping[str, str]:
        """What is wrong with what people have written, by path."""
        watched = (self._stops.files, self._tasks.files, self._commands.files, self._inbox.files)
        late = {path: "cannot be read whole for ten minutes" for one in watched for path in one.overdue()}
        paused = vault_channel.why(self._bus)
        said = {COMMANDS: f"nothing but a stop is taken ({paused}): agent-bus vault unpause"} if paused else {}
        return {**late, **self._tasks.copies, **self._inbox.problems, **self._commands.problems, **said}


def notes_in(root: Path, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The notes directly in a folder, by path without `.md`; links and what synchronisers are bringing are none."""
    try:
        entries = sorted(os.scandir(root.joinpath(*folder.split("/"))), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = entry.name
        if not name.endswith(".md") or name.startswith((".", "~")) or not entry.is_file(follow_symlinks=False):
            continue
        stat = _stat(Path(entry.path))
        if stat is not None:
            yield f"{folder}/{name[:-3]}", stat


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
