"""The process tree of a run: who belongs to it, ending it, freezing it. Only what is proved to be ours is signalled.

To a tree belong: its root (same pid and start time, ± 1 s, or our marker in its environment), every process of this
user that carries the run's AGENT_BUS_RUN_ID, the root's process group while one of these is in it, what was seen as a
member before, and the descendants of all of them. A pid is never enough, as the system gives it anew.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from agent_bus.launchers import process, table, windows

POLL_S = 0.05
KILL_S = 5.0
"""How long killed processes are waited for; who is there after it is named."""
STOP_S = 2.0


@dataclass(frozen=True)
class Survivor:
    """A process that could not be ended or frozen, and why."""

    pid: int
    why: str


@dataclass
class Tree:
    """The processes of one run; `pid` 0 = the root is not known, only the marker is.

    Args:
        run_id: the marker.
        pid, pid_started: the root, as in the run document.
    """

    run_id: str
    pid: int = 0
    pid_started: str = ""
    _known: dict[int, psutil.Process] = field(default_factory=dict, repr=False)

    def poll(self) -> tuple[int, int] | None:
        """(exit code, signal) of the root once it has ended, if this process started it; else None."""
        return process.exit_status(self.pid, self.pid_started)

    def root_alive(self) -> bool:
        """Whether the root itself still runs; reaps it if it is our child. Cheap."""
        return self.poll() is None and (found := self.root()) is not None and table.lives(found)

    def root(self) -> psutil.Process | None:
        """The root, if the process with its pid is proved to be it."""
        try:
            found = psutil.Process(self.pid) if self.pid > 0 else None
            if found and not table.started_then(found, self.pid_started) and table.marker(found) != self.run_id:
                return None
        except psutil.Error:
            return None
        return found

    def alive(self) -> bool:
        """Whether any process of the tree still runs: looks at every process of this user."""
        return bool(self.members())

    def members(self) -> list[psutil.Process]:
        """The living processes of the tree, children first; never the calling process."""
        return self._pick(table.look())

    def cpu_s(self) -> float:
        """Processor seconds of the root and its descendants so far; it also makes them known to later looks."""
        root = self.root()
        with suppress(psutil.Error):
            for found in [root, *root.children(recursive=True)] if root else []:
                self._known[found.pid] = found
        return sum(map(table.cpu_s, self._known.values()))

    def end(self, grace_s: float) -> list[Survivor]:
        """`end_all` of this tree alone."""
        return end_all([self], grace_s)[self.run_id]

    def _pick(self, seen: dict[int, table.Seen]) -> list[psutil.Process]:
        ours = {pid for pid, one in seen.items() if self._proved(one)}
        if self.pid > 0 and any(seen[pid].group == self.pid for pid in ours):
            ours |= {pid for pid, one in seen.items() if one.group == self.pid}
        depths = table.descend(ours, seen)
        self._known = {pid: seen[pid].process for pid in depths}
        return [seen[pid].process for pid in sorted(depths, key=lambda pid: -depths[pid])]

    def _proved(self, one: table.Seen) -> bool:
        if one.marker == self.run_id or self._known.get(one.process.pid) == one.process:
            return True
        return one.process.pid == self.pid and table.started_then(one.process, self.pid_started)

    def _lasting(self) -> bool:
        """Whether one of those seen last still runs. Cheap."""
        self.poll()
        return any(map(table.lives, self._known.values()))


def roots(run_id: str) -> list[process.Child]:
    """The living processes that carry the run's marker and whose parent does not."""
    marked = {pid: one for pid, one in table.look().items() if one.marker == run_id}
    found = [one.process for one in marked.values() if one.parent not in marked]
    return [process.Child(one.pid, process.started_at(one.pid)) for one in found]


def end_all(trees: Sequence[Tree], grace_s: float) -> dict[str, list[Survivor]]:
    """Ends trees side by side: TERM, `grace_s` seconds, KILL; children born meanwhile too.

    Returns:
        Who is still there, by run id; an empty list for a tree that is gone.
    """
    deadline = time.monotonic() + grace_s
    left = _signal_all(trees, table.TERM)
    while any(left.values()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
        if not any(tree._lasting() for tree in trees):
            left = _signal_all(trees, table.TERM)  # those born after the last look
    for tree in trees:
        windows.end_job(tree.run_id)
    return _kill_all(trees)


def freeze_all(trees: Sequence[Tree], again_s: float = 1.0) -> dict[str, list[Survivor]]:
    """Stops trees without ending them, again after `again_s` for what was born meanwhile; tells who goes on running."""
    _halt_all(trees)
    time.sleep(again_s)
    _halt_all(trees)
    deadline = time.monotonic() + STOP_S
    while (running := _running(trees)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return {tree.run_id: running.get(tree.run_id, []) for tree in trees}


def thaw_all(trees: Sequence[Tree]) -> None:
    """Lets frozen trees go on, children first."""
    seen = table.look()
    for member in (member for tree in trees for member in tree._pick(seen)):
        with suppress(psutil.Error):
            member.resume()


def _signal_all(trees: Iterable[Tree], number: signal.Signals) -> dict[str, list[Survivor]]:
    """Signals every member once; all that were there, with why a signal could not be given."""
    seen = table.look()
    return {tree.run_id: _signal(tree, tree._pick(seen), number, seen) for tree in trees}


def _signal(
    tree: Tree, members: list[psutil.Process], number: signal.Signals, seen: dict[int, table.Seen]
) -> list[Survivor]:
    grouped = _signal_group(tree, members, number, seen)
    told = []
    for member in members:
        why = "" if member.pid in grouped else table.send(member, number)
        told.append(Survivor(member.pid, why or "still runs"))
        if number == table.TERM and table.is_halted(member):
            with suppress(psutil.Error):
                member.resume()  # a stopped process takes no TERM before it goes on
    return told


def _signal_group(
    tree: Tree, members: list[psutil.Process], number: signal.Signals, seen: dict[int, table.Seen]
) -> set[int]:
    """Signals the root's group at once, so that no fork escapes; which members that reached.

    Never the caller's own group: a worker's bus server may be the one that is told to stop everything.
    """
    grouped = {member.pid for member in members if seen[member.pid].group == tree.pid}
    if sys.platform == "win32" or tree.pid <= 1 or not grouped or os.getpgid(0) == tree.pid:
        return set()
    try:
        os.killpg(tree.pid, number)
    except OSError:
        return set()
    return grouped


def _kill_all(trees: Sequence[Tree]) -> dict[str, list[Survivor]]:
    deadline = time.monotonic() + KILL_S
    while any((left := _signal_all(trees, table.KILL)).values()) and time.monotonic() < deadline:
        until = min(deadline, time.monotonic() + 10 * POLL_S)
        while any(tree._lasting() for tree in trees) and time.monotonic() < until:
            time.sleep(POLL_S)
    return left


def _halt_all(trees: Iterable[Tree]) -> None:
    """One pass of a freeze, parents first, so that they make no more children."""
    seen = table.look()
    for tree in trees:
        members = tree._pick(seen)
        if sys.platform != "win32":
            _signal_group(tree, members, signal.SIGSTOP, seen)
        for member in reversed(members):
            with suppress(psutil.Error):
                member.suspend()


def _running(trees: Iterable[Tree]) -> dict[str, list[Survivor]]:
    seen = table.look()
    left = {tree.run_id: [m for m in tree._pick(seen) if not table.is_halted(m)] for tree in trees}
    return {run_id: [Survivor(m.pid, "was not stopped") for m in some] for run_id, some in left.items() if some}
