"""The stop from the vault: notes in `commands/` with a name that stops, and the two boxes of the Dashboard.

A stop needs no rest, no authority and no owner; its end needs all of them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import human, notes, stop_names
from agent_bus.domain.notes import BrokenNote
from agent_bus.errors import BusError
from agent_bus.features.system import emergency_stop, resume
from agent_bus.notes import ledger, properties
from agent_bus.notes.notebook import Notebook
from agent_bus.notes.settled import LIMIT, SettledFiles, Sign, sign_of
from agent_bus.operations import requests, stop
from agent_bus.operations.vault_memory import STOPS
from agent_bus.store import atomic
from agent_bus.store.port import Exists

log = logging.getLogger(__name__)
PATH, ID = "Dashboard", "dashboard"
STOP_ALL, CLEAR_STOP = "stop-all", "clear-stop"


class Stops:
    """Looks for stops."""

    def __init__(self, bus: Bus, notebook: Notebook, people: Bus) -> None:
        self._bus = bus
        self._notebook = notebook
        self._signs: dict[str, Sign] = {}
        self._stopped: set[str] = set()
        quiet = bus.settings.vault.quiet_read_s
        self.files = SettledFiles(notebook.root, bus.clock.boot_s, quiet, self._is_known, notebook.heard.drop)
        self._people = people

    def look_for_notes(self, paths: Iterable[str]) -> None:
        """Stops the bus if a note in `commands/` says so; one that came back after a resume stops it again.

        Args:
            paths: of the notes there, without `.md`.
        """
        found = next((path for path in paths if stop_names.is_stop(path.rpartition("/")[2])), "")
        if found and not (stop.read(self._bus) or {}).get("epoch"):
            emergency_stop(self._people, f"{found}.md is in the vault")

    def look_at(self, path: str, stat: os.stat_result, says_stop: Callable[[bytes], bool]) -> None:
        """Stops the bus if a note says so that has changed: one read is enough, and these bytes stop it once."""
        sign = sign_of(stat)
        if self._signs.get(path) == sign:
            return
        assert self._bus.layout is not None
        try:
            data, _ = atomic.read(str(self._bus.layout.root / f"{path}.md"), LIMIT)
        except OSError:
            return
        sha = ledger.digest(data)
        if says_stop(data) and not self._has_stopped(sha):
            if stop.read(self._bus) is None:
                emergency_stop(self._people, f"{path}.md in the vault says so")
            self._stopped.add(sha)
            with suppress(BusError, Exists):  # a stop must not depend on a free disk
                self._bus.store.create(f"{STOPS}/{sha[:32]}", {"sha256": sha, "at": self._bus.stamp()})
        self._signs[path] = sign  # only now: what failed is tried again

    def look(self, stat: os.stat_result | None) -> None:
        """Looks at the Dashboard's boxes."""
        if stat is None:
            return
        self.look_at(PATH, stat, self._stop_all)
        for _, data in self.files.changed({PATH: stat}):
            self._settled(data)
            self._notebook.heard.add(PATH, ledger.digest(data), self.files.changed_s(PATH))

    def _is_known(self, path: str, sha256: str) -> bool:
        doc = ledger.read(self._bus, "dashboard", ID)
        return doc is not None and ledger.is_own(doc.value, sha256)

    def _stop_all(self, data: bytes) -> bool:
        values, ticks = _read(data)
        doc = ledger.read(self._bus, "dashboard", ID)
        if doc is None:
            return STOP_ALL in ticks
        before = ledger.base(doc.value, values.get("ab_rev")).ticks
        return STOP_ALL in ticks - before and not ledger.is_own(doc.value, ledger.digest(data))

    def _has_stopped(self, sha: str) -> bool:
        return sha in self._stopped or self._bus.store.exists(f"{STOPS}/{sha[:32]}")

    def _settled(self, data: bytes) -> None:
        values, ticks = _read(data)
        doc = ledger.read(self._bus, "dashboard", ID)
        if doc is None:
            return
        rev = values.get("ab_rev")
        base = ledger.base(doc.value, rev)
        fresh = ticks - base.ticks
        if CLEAR_STOP in fresh and STOP_ALL not in fresh:
            self._clear(str(values.get("ab_req") or ""))
        used = sorted(fresh & {STOP_ALL, CLEAR_STOP})
        if not used:
            return
        now = human.stored({**base.value(), "ticks": sorted(ticks)})
        ledger.change(self._bus, "dashboard", ID, lambda value: {**ledger.with_base(value, rev, now), "untick": used})

    def _clear(self, req: str) -> None:
        record = stop.read(self._bus)
        if record is None or self._bus.settings.vault.authority != "all":
            return
        if not req or req != requests.of_stop(self._bus, str(record.get("epoch", ""))).req:
            return
        try:
            resume(self._people)
        except BusError as error:
            log.warning("the stop could not be cleared: %s", error)


def _read(data: bytes) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Properties and ticked boxes, as far as they can be read; with broken markers only the box for a stop."""
    parts = notes.split(data.decode("utf-8", "replace"))
    values = properties.read(parts.front) if parts.front is not None else None
    try:
        ticks = frozenset(name for name, mark in notes.controls(parts.body).items() if mark == "x")
    except BrokenNote:
        ticks = frozenset({STOP_ALL}) if notes.is_ticked(parts.body, STOP_ALL) else frozenset()
    return values or {}, ticks
