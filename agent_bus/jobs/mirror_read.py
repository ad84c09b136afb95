"""Reading what people decide in the notes of tasks (docs/vault-notes.md "Deciding in a note")."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import human, notes, wishes
from agent_bus.domain.human import SEND, Human
from agent_bus.domain.note_merge import same
from agent_bus.domain.notes import BrokenNote, Parts
from agent_bus.domain.task import PENDING_APPROVAL, Task
from agent_bus.domain.wishes import ANSWER, APPROVE, CANCEL, PRIORITY, REJECT, Asked, Heard
from agent_bus.jobs.mirror_channel import Channel
from agent_bus.notes import ledger, properties
from agent_bus.notes.notebook import Notebook
from agent_bus.notes.settled import SettledFiles
from agent_bus.operations import find, requests, stop
from agent_bus.operations.decisions import DONE, TAKEN, Decision, Outcome
from agent_bus.store.port import Doc

FOLDER = "notes/tasks"


class TaskNotes:
    """Reads the notes of tasks.

    Args:
        bus: with a folder.
        notebook: that writes them; what was read is told to it.
        channel: through which everything goes that people want.
    """

    def __init__(self, bus: Bus, notebook: Notebook, channel: Channel) -> None:
        self._bus = bus
        self._notebook = notebook
        self._channel = channel
        self._older: set[str] = set()
        self._moved: dict[str, str] = {}
        self.copies: dict[str, str] = {}
        """By path what is said of copies of notes: nothing is taken from them."""
        quiet = bus.settings.vault.quiet_read_s
        self.files = SettledFiles(notebook.root, bus.clock.boot_s, quiet, self._is_known, notebook.heard.drop)

    def look(self, found: Mapping[str, os.stat_result], open_ids: Collection[str]) -> set[str]:
        """Deals with what people have changed; the ids of tasks whose notes must be looked at.

        Args:
            found: the notes that are in their folder, by path without `.md`.
            open_ids: the tasks that have not ended.
        """
        touched: set[str] = set()
        elsewhere = dict(self._elsewhere(found, open_ids))
        for path, data in self.files.changed({**found, **elsewhere}):
            task_id = self._id_of(path)
            if not ids.is_task_id(task_id):
                self._note_copy(path, data)
            elif self._read(path, task_id, data):
                self._notebook.heard.add(path, ledger.digest(data), self.files.changed_s(path))
                touched.add(task_id)
        self.copies = {path: why for path, why in self.copies.items() if path in found}
        touched |= self._older
        self._older.clear()
        return touched

    def _elsewhere(
        self, found: Mapping[str, os.stat_result], open_ids: Collection[str]
    ) -> Iterator[tuple[str, os.stat_result]]:
        """The notes of open tasks that somebody has moved."""
        for task_id in self._notebook.tasks.intersection(open_ids):
            usual = f"{FOLDER}/{task_id}"
            if usual in found:
                continue
            doc = ledger.read(self._bus, "task", task_id)
            path = self._notebook.locate("task", task_id, usual, doc) if doc else ""
            stat = self._notebook.stat(path) if path else None
            if stat is not None:
                self._moved[path] = task_id
                yield path, stat

    def _note_copy(self, path: str, data: bytes) -> None:
        front = notes.split(data.decode("utf-8", "replace")).front
        values = properties.read(front) if front is not None else None
        if values and same(values.get("ab_kind"), "task"):
            self.copies[path] = f"is a copy of the note of {values.get('ab_id')}: nothing is taken from it, keep one"
        else:
            self.copies.pop(path, None)

    def _id_of(self, path: str) -> str:
        return self._moved.get(path) or path.rpartition("/")[2]

    def _is_known(self, path: str, sha256: str) -> bool:
        task_id = self._id_of(path)
        doc = ledger.read(self._bus, "task", task_id)
        own = [one.get("sha256") for one in ledger.writes(doc.value)] if doc else []
        if sha256 not in own:
            return False
        if own[-1] != sha256:
            self._older.add(task_id)  # a synchroniser has put an older version back
        return True

    def _read(self, path: str, task_id: str, data: bytes) -> bool:
        """Whether a note was dealt with; False: look again later."""
        try:
            parts = notes.split(data.decode("utf-8"))
            values = {} if parts.front is None else properties.read(parts.front)
            doc = ledger.read(self._bus, "task", task_id)
            if values is None:
                self._learn(task_id, {"fault": "front"} if doc else {})
                return True
            if not (same(values.get("ab_kind"), "task") and same(values.get("ab_id"), task_id)):
                return True
            now = human.read(values, parts.body)
        except (UnicodeDecodeError, BrokenNote):
            return True  # the notebook names what is wrong with it
        if doc is None:
            self._adopt(path, task_id, values, now)
            return True
        task = find.find_quietly(self._bus, task_id)
        return task is None or self._hear(path, task.task, doc, values, parts, now)

    def _hear(
        self, path: str, task: Task, doc: Doc, values: Mapping[str, Any], parts: Parts, now: Human
    ) -> bool:  # False: look again later
        start, end = human.reply(parts.body)
        answer, rev = parts.body[start:end].strip(), values.get("ab_rev")
        base = ledger.base(doc.value, rev)
        asked = requests.of_task(self._bus, task)
        heard = wishes.hear(base, now, answer, str(values.get("ab_req") or ""), asked, task)
        if (heard.verb or heard.priority) and not self._may_now(heard):
            self.files.forget(path)
            return False
        lines: list[dict[str, Any]] = []
        if heard.priority:
            parted = (task.task_id, PRIORITY, heard.priority, str(rev))
            lines += self._take(Decision(parted, PRIORITY, {"priority": heard.priority}, task.task_id, path), task)
        if heard.verb:
            lines += self._take(_decision(heard, task, asked, answer, path), task)
        if heard.late or heard.put_back:
            name = "late" if heard.late else heard.put_back
            lines.append({"key": f"{name} {rev} {values.get('ab_req')}", "name": name, "at": self._bus.stamp()})
        delivered = next((one["text"] for one in lines if one.get("text")), "")
        if SEND in now.ticks and answer in [one.get("text") for one in doc.value.get("log") or []]:
            delivered = answer  # a synchroniser has brought back what was sent
        after = now if not heard.fault else _open(base, now)
        change = {"fault": heard.fault, **({"delivered": delivered} if delivered else {})}
        self._learn(task.task_id, change, lines, rev, after)
        return True

    def _may_now(self, heard: Heard) -> bool:
        """While the bus is stopped, or the vault's channel is, only what ends work is taken."""
        if self._channel.is_paused():
            return False
        return heard.verb in (CANCEL, REJECT) or not stop.is_stopped(self._bus)

    def _take(self, decision: Decision, task: Task) -> list[dict[str, Any]]:
        """Carries a decision out; its line for the log."""
        settings, protected = self._bus.settings.vault, self._bus.settings.approval.protected
        categories = [str(one) for one in (task.approval or {}).get("categories") or []]
        verb = decision.verb
        risky = categories if task.status == PENDING_APPROVAL else []
        if not wishes.allowed(verb, settings.authority, risky, protected):
            name = {APPROVE: "approve", REJECT: "reject", CANCEL: "cancel"}.get(verb, "ack")
            return [{"key": decision.key, "name": "not_here", "at": self._bus.stamp(), "verb": name}]
        outcome = self._channel.consume(decision)
        line = log_line(outcome)
        if line and outcome.state == DONE and verb in (ANSWER, REJECT):
            line["text"] = str(decision.fields.get("answer", ""))
        return [line] if line else []

    def settle(self, outcome: Outcome) -> None:
        """Notes what became of a decision that was carried out later."""
        line = log_line(outcome)
        if line:
            self._learn(outcome.task_id, {}, [line])

    def _adopt(self, path: str, task_id: str, values: Mapping[str, Any], now: Human) -> None:
        """A note that the ledger does not know: what stands in it is where later changes are counted from."""
        rev = values.get("ab_rev")
        number = rev if isinstance(rev, int) and not isinstance(rev, bool) else 0
        own = {"rev": number, "sha256": "", "human": now.value()}  # no bytes of ours: a later tick may give them anew
        ledger.change(self._bus, "task", task_id, lambda value: value or {"path": path, "rev": number, "own": [own]})

    def _learn(
        self,
        task_id: str,
        change: Mapping[str, Any],
        lines: list[dict[str, Any]] | None = None,
        rev: object = None,
        after: Human | None = None,
    ) -> None:
        def step(value: dict[str, Any]) -> dict[str, Any]:
            fresh = ledger.with_base(value, rev, after) if after is not None else value
            log = list(fresh.get("log") or [])
            known = {one.get("key") for one in log}
            log += [one for one in lines or [] if one["key"] not in known]
            return {**fresh, **change, **({"log": log[-ledger.LOG :]} if log else {})}

        ledger.change(self._bus, "task", task_id, step)


def log_line(outcome: Outcome) -> dict[str, Any]:
    """What the log says of a decision; {} while it waits to be carried out."""
    if outcome.state == TAKEN:
        return {}
    if outcome.state != DONE:
        why = str(outcome.result.get("message", ""))
        return {"key": outcome.key, "name": "refused", "at": outcome.at, "why": why}
    status = str(outcome.result.get("status", ""))
    return {"key": outcome.key, "name": f"done.{outcome.verb}", "at": outcome.at, "status": status}


def _decision(heard: Heard, task: Task, asked: Asked | None, answer: str, path: str) -> Decision:
    if heard.verb == CANCEL:
        return Decision((task.task_id, CANCEL, str(task.attempt)), CANCEL, {}, task.task_id, path)
    assert asked is not None  # else it is late
    fields = {"kind": asked.kind, "sha256": asked.sha256, "answer": answer if heard.verb != APPROVE else ""}
    return Decision((task.task_id, heard.verb, asked.req), heard.verb, fields, task.task_id, path, asked.req)


def _open(base: Human, now: Human) -> Human:
    """The base after something in the note was not clear: boxes and words still count when that is mended."""
    kept = human.carried(base, now)
    return Human(kept.approve, kept.decision, now.priority, now.status, kept.ticks)
