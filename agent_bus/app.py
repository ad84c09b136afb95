"""The composition root: the only place where the parts of a bus are put together."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import threading
from functools import cache
from pathlib import Path

import agent_bus.features
from agent_bus.bus import Bus, Caller
from agent_bus.clock import Clock, SystemClock
from agent_bus.commands import arrange_commands
from agent_bus.errors import BusError
from agent_bus.features import ORDER
from agent_bus.offers import arrange_offers
from agent_bus.operations.health import after_loss
from agent_bus.settings import Settings
from agent_bus.store.files import FileStore
from agent_bus.store.journal import FileJournal, MemoryJournal
from agent_bus.store.layout import Layout
from agent_bus.store.locks import Locks
from agent_bus.store.memory import MemoryStore
from agent_bus.store.watch import FolderWatch, Watch

FEATURES = "agent_bus.features"


def load_features() -> None:
    """Imports every feature: the modules of the folder, then those that others offer by the entry point group.

    Raises:
        DuplicateCommand: two of them register one name.
    """
    there = {m.name for m in pkgutil.iter_modules(agent_bus.features.__path__)}
    own = [f"{FEATURES}.{n}" for n in (*(n for n in ORDER if n in there), *sorted(there.difference(ORDER)))]
    for name in own:
        importlib.import_module(name)
    arrange_commands(own)
    arrange_offers(own)
    if _others_offer():
        from importlib.metadata import entry_points

        for point in entry_points(group=FEATURES):
            point.load()


@cache
def _others_offer() -> bool:
    """Whether an installed package may name our entry point group: importlib.metadata costs a verb more than its work.

    Looked at once a process. A place that is no folder (a zip file) may hold anything.
    """
    places = [Path(place or ".") for place in sys.path if os.path.exists(place or ".")]
    points = (file for place in places for file in place.glob("*.*-info/entry_points.txt"))
    return not all(place.is_dir() for place in places) or any(_names_group(file) for file in points)


def _names_group(file: Path) -> bool:
    try:
        return f"[{FEATURES}]".encode() in file.read_bytes().replace(b" ", b"")
    except OSError:
        return False


def open_bus(settings: Settings, caller: Caller | None = None, clock: Clock | None = None) -> Bus:
    """Opens the bus folder that the settings name.

    Args:
        settings: what `load_settings` gave; `root` must be set.
        caller: who will call; default: an unbound Python program.
        clock: default: the system's.

    Raises:
        BusError: `not_found` or `refused` if the folder is missing or is no bus; `corrupt` if its format is unreadable.
    """
    if not settings.root:
        hint = "Give --root DIR or AGENT_BUS_ROOT, or write root in the settings file."
        raise BusError("not_found", "no bus folder is named.", hint)
    load_features()
    clock = clock or SystemClock()
    layout = Layout.of(Path(settings.root).expanduser(), settings.state_dir, settings.archive_dir)
    layout.check()
    is_new = layout.is_new()
    _complete(layout, clock)
    store = FileStore(layout.root, layout.state, layout.archive, settings.durability == "full", layout.temp)
    journal = FileJournal(layout.state / "journal", Locks(str(layout.state / "locks")))
    watch = FolderWatch(store.hint_folder())
    bus = Bus(store, watch, journal, settings, clock, layout, caller or Caller())
    if is_new and layout.format_file.exists():
        after_loss(bus)
    return bus


def memory_bus(settings: Settings | None = None, caller: Caller | None = None, clock: Clock | None = None) -> Bus:
    """A bus without a folder: the memory engine, for tests and simulations in one process."""
    load_features()
    watch = Watch()
    return Bus(
        MemoryStore(watch.ring),
        watch,
        MemoryJournal(),
        settings or Settings(),
        clock or SystemClock(),
        None,
        caller or Caller(),
    )


class Opener:
    """A bus that may not be there yet: opened at the first call that needs it, tried anew after a failure."""

    def __init__(self, settings: Settings, caller: Caller) -> None:
        self._settings = settings
        self._caller = caller
        self._bus: Bus | None = None
        self._guard = threading.Lock()

    def __call__(self) -> Bus:
        """The open bus.

        Raises:
            BusError: as `open_bus`.
        """
        with self._guard:
            if self._bus is not None and (self._bus.layout is None or self._bus.layout.root.is_dir()):
                return self._bus
            self._bus = open_bus(self._settings, self._caller)
            return self._bus


def _complete(layout: Layout, clock: Clock) -> None:
    """Makes what is missing in the folder if this host may write there; a read-only folder can still be read."""
    if layout.format_file.exists() and all((layout.state / n).is_dir() for n in ("tmp", "locks", "hints", "journal")):
        return
    if os.access(layout.root, os.W_OK) and layout.is_ours():
        layout.make(clock.now())
