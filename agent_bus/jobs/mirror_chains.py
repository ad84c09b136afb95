"""The canvases of chains: `chains/<first task>.canvas` for each chain of two tasks or more."""

from __future__ import annotations

import json
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import canvas, chain, inert
from agent_bus.domain.canvas import Canvas, Card
from agent_bus.domain.dashboard import Row
from agent_bus.domain.inert import flat
from agent_bus.domain.task import Task
from agent_bus.notes import ledger
from agent_bus.notes.notebook import Notebook
from agent_bus.notes.place import vault_of
from agent_bus.operations import chains, find
from agent_bus.texts import Texts

KIND, FOLDER = "canvas", "chains"
SHOWN = 10


class Chains:
    """Draws chains.

    Args:
        bus: with a folder.
        notebook, texts: as the mirror's.
    """

    def __init__(self, bus: Bus, notebook: Notebook, texts: Texts) -> None:
        self._bus = bus
        self._notebook = notebook
        self._texts = texts
        self._due: set[str] = set()
        self._roots: dict[str, Row] = {}
        self.problems: dict[str, str] = {}
        for doc in bus.store.list(f"{ledger.FOLDER}/{KIND}"):
            self._remember(doc.name, doc.value)

    def note(self, task: Task) -> None:
        """Notes that a task has changed."""
        root = chains.root_of(self._bus, task)[0]
        if root == task.task_id and root not in self._roots:
            return
        members = self._members(root)
        if task.task_id not in members:
            wanted = [root, *(one for one in (*members, task.task_id) if one != root)]
            ledger.change(self._bus, KIND, root, lambda value: {**value, "members": wanted})
        self._due.add(root)

    def write(self) -> None:
        """Draws what has changed.

        Raises:
            BusError: the ledger cannot be written.
        """
        for root in sorted(self._due):
            try:
                done = self._draw(root)
            except OSError as error:
                self.problems[f"{FOLDER}/{root}.canvas"] = f"cannot be read or written ({error.strerror or error})"
                done = True
            if done:
                self._due.discard(root)

    def latest(self) -> list[Row]:
        """The first tasks of the latest chains."""
        return [self._roots[root] for root in sorted(self._roots, reverse=True)[:SHOWN]]

    def _draw(self, root: str) -> bool:
        """Whether nothing is left to do."""
        path = f"{FOLDER}/{root}.canvas"
        self.problems.pop(path, None)
        doc = ledger.read(self._bus, KIND, root)
        value = doc.value if doc else {}
        data = self._notebook.read_file(path)
        if data is not None and not self._notebook.rests(path, data, value):
            return False
        found: Canvas | None = None
        if data is not None:
            try:
                found = json.loads(data.decode("utf-8-sig"))
                wrong = canvas.faults(found)
            except (ValueError, RecursionError):
                wrong = "is no JSON"
            if wrong:
                self.problems[path] = f"{wrong}: put it right, or delete it and it is drawn again"
                return True
        cards = [self._card(task) for one in self._members(root) if (task := self._task(one)) is not None]
        ours = canvas.drawn(root, cards, self._texts.say)
        fresh = canvas.merged(found, ours, value.get("last") or {})
        self._remember(root, value)
        if fresh == found:
            return True
        text = json.dumps(fresh, ensure_ascii=False, indent=1) + "\n"
        if not self._notebook.replace_file(KIND, root, path, data, text.encode("utf-8")):
            return False
        ledger.change(self._bus, KIND, root, lambda before: {**before, "last": canvas.remembered(ours)})
        return True

    def _members(self, root: str) -> list[str]:
        doc = ledger.read(self._bus, KIND, root)
        return [str(one) for one in doc.value.get("members", [])] if doc else [root]

    def _task(self, task_id: str) -> Task | None:
        found = find.find_quietly(self._bus, task_id)
        return found.task if found else None

    def _remember(self, root: str, value: dict[str, Any]) -> None:
        task = self._task(root)
        if task is not None and len(value.get("members", [])) > 1:
            self._roots[root] = Row(root, inert.title(task.instruction), task.status, task.to)

    def _card(self, task: Task) -> Card:
        note = self._notebook.path(f"notes/tasks/{task.task_id}")
        file = note.relative_to(vault_of(self._notebook.root)).as_posix() if note.exists() else ""
        parent = self._task(task.parent) if task.parent else None
        branch = chain.branch(parent) if parent is not None else ""
        return Card(task.task_id, task.parent, task.status, flat(inert.title(task.instruction)), flat(task.to),
                    branch, file)  # fmt: skip
