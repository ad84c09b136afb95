"""Reading the notes in `commands/` that are orders (docs/vault-notes.md "Command notes")."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import command_note, notes, wishes
from agent_bus.domain.command_note import DISPATCH, PRIORITY, SAY, STOP, Command, NoCommand, is_ready
from agent_bus.domain.inert import Plain, Value, flat
from agent_bus.domain.note_merge import with_properties
from agent_bus.domain.notes import BrokenNote
from agent_bus.domain.stop_names import is_stop
from agent_bus.domain.wishes import ANSWER, APPROVE, CANCEL, REJECT
from agent_bus.features.system import emergency_stop
from agent_bus.jobs.mirror_channel import Channel
from agent_bus.jobs.mirror_inbox import unknown_agent
from agent_bus.notes import ledger, properties
from agent_bus.notes.notebook import Notebook
from agent_bus.notes.settled import SettledFiles
from agent_bus.operations import decisions, find, quiet, requests, stop
from agent_bus.operations.decisions import DONE, TAKEN, Decision
from agent_bus.texts import Texts
from agent_bus.times import from_local, parse_stamp

KIND = "command"
ACCEPTED, REFUSED, DUPLICATE = "accepted", "refused", "duplicate"
DONE_S = 60.0
_SAME_FOR = timedelta(hours=24)


@dataclass(frozen=True)
class Answer:
    """What is written into the note of an order."""

    state: str
    words: str
    task_id: str = ""


class Commands:
    """Reads the orders of a vault."""

    def __init__(self, bus: Bus, notebook: Notebook, channel: Channel, texts: Texts) -> None:
        self._bus = bus
        self._notebook = notebook
        self._channel = channel
        self._say = texts.say
        self._done: dict[str, tuple[float, str]] = {}
        self._answers: dict[str, tuple[bytes, Mapping[str, Any] | None, Answer]] = {}
        self.problems: dict[str, str] = {}
        self.files = SettledFiles(notebook.root, bus.clock.boot_s, bus.settings.vault.quiet_read_s, self._is_known)

    def look(self, found: Mapping[str, os.stat_result]) -> None:
        """Takes the orders that are ready.

        Args:
            found: the notes in `commands/`, by path without `.md`.
        """
        wanted = {}
        self.problems = {}
        for path, stat in found.items():
            stem = path.rpartition("/")[2]
            if command_note.is_copy(stem):
                self.problems[path] = "is a synchroniser's copy, and not read: delete it, or rename it"
            elif command_note.is_candidate(stem) and not is_stop(stem):
                wanted[path] = stat
        for path, data in self.files.changed(wanted):
            self._done.pop(path, None)
            self._read(path, data)
        for path in self._answers.keys() - wanted.keys():
            del self._answers[path]
        self._write_answers()
        self._put_away()

    def _is_known(self, path: str, sha256: str) -> bool:
        doc = ledger.read(self._bus, KIND, path)
        known = doc is not None and ledger.is_own(doc.value, sha256)
        if known and doc is not None and doc.value.get("task_id") is not None and path not in self._done:
            self._done[path] = (self._bus.clock.boot_s(), str(doc.value["task_id"]))
        return known

    def _read(self, path: str, data: bytes) -> None:
        self._answers.pop(path, None)
        try:
            parts = notes.split(data.decode("utf-8"))
        except UnicodeDecodeError:
            return
        values = properties.read(parts.front) if parts.front is not None else {}
        if not (is_ready(values) if values is not None else _looks_ready(parts.front or "")):
            return
        if values is None or not properties.is_plain(parts.front or ""):
            self._answers[path] = (data, values, Answer(REFUSED, self._say("deciding.yaml")))
            return
        if str(values.get("ab_state", "")) in (ACCEPTED, DUPLICATE):
            return
        try:
            command = command_note.read(values, notes.without_regions(parts.body))
        except NoCommand as error:
            words = self._say(f"deciding.no_command.{error.name}", about=flat(error.about))
            self._answers[path] = (data, values, Answer(REFUSED, words))
            return
        except BrokenNote:
            return
        wait = command.verb != STOP and (self._channel.is_paused() or stop.is_stopped(self._bus))
        answer = None if wait else self._carry_out(path, command)
        if answer is None:
            self.files.forget(path)  # it is looked at again later
        else:
            self._answers[path] = (data, values, answer)

    def _write_answers(self) -> None:
        """Writes what became of orders, as soon as nobody has typed in them for some time."""
        now, quiet_s = self._bus.clock.boot_s(), self._bus.settings.vault.quiet_write_s
        for path, (data, values, answer) in list(self._answers.items()):
            if now - self.files.changed_s(path) >= quiet_s:
                del self._answers[path]
                if not self._answer(path, data, values, answer):
                    self.files.forget(path)

    def _carry_out(self, path: str, command: Command) -> Answer | None:
        if command.verb == STOP:
            if stop.read(self._bus) is None:
                emergency_stop(self._channel.people, f"{path}.md is in the vault")
            return Answer(ACCEPTED, self._say("deciding.stopped"))
        target = str(command.fields.get("target", ""))
        if command.verb == DISPATCH and (reason := unknown_agent(self._bus, target, self._say)):
            return Answer(REFUSED, reason)
        if command.verb in (DISPATCH, SAY):
            decision = self._sent(path, command)
        else:
            found = self._decision(path, command)
            if isinstance(found, Answer):
                return found
            decision = found
        if not wishes.allowed(DISPATCH, self._bus.settings.vault.authority, (), ()):
            return Answer(REFUSED, self._say("deciding.level"))
        return self._consume(path, command, decision)

    def _consume(self, path: str, command: Command, decision: Decision) -> Answer | None:
        before = self._known(decision.key)
        outcome = self._channel.consume(decision)
        if outcome.state == TAKEN:
            return None
        if outcome.state != DONE:
            return Answer(REFUSED, self._say("deciding.why", why=flat(str(outcome.result.get("message", "")), 300)))
        if decision.verb == SAY:
            words = self._say("deciding.said", room=f"[[{flat(str(outcome.result.get('room', '')))}]]")
            return Answer(ACCEPTED if not before or outcome.path == path else DUPLICATE, words)
        task_id = str(outcome.result.get("task_id") or decision.task_id)
        status = str(outcome.result.get("status", ""))
        if before and outcome.path != path:
            if command.made and before.get("fields") != dict(decision.fields):
                return Answer(REFUSED, self._say("deciding.made_twice", task=f"[[{task_id}]]"))
            return Answer(DUPLICATE, self._say("deciding.duplicate", task=f"[[{task_id}]]"), task_id)
        words = self._say(f"mirror.state.{status}") if decision.verb != PRIORITY else status
        return Answer(ACCEPTED, self._say("deciding.accepted", task=f"[[{task_id}]]", status=words), task_id)

    def _sent(self, path: str, command: Command) -> Decision:
        fields = {**command.fields, "instruction": command.text}
        if when := str(fields.get("not_before", "")):
            fields["not_before"] = from_local(when, self._bus.settings.timezone)
        stamped = command.made and not command.again
        name = command.made if stamped else f"{command.content()} {f'again {path}' if command.again else ''}"
        number = 0
        while True:
            decision = Decision(("command", name, str(number)), command.verb, fields, path=path)
            known = self._known(decision.key)
            refused = known.get("state") == decisions.REFUSED  # and the note was touched since: it is tried again
            if not refused and (stamped or not known or self._bus.now() - _at(known) < _SAME_FOR):
                return decision
            number += 1

    def _decision(self, path: str, command: Command) -> Decision | Answer:
        task_id, req = str(command.fields["task_id"]), str(command.fields["req"])
        found = find.find_quietly(self._bus, task_id)
        if found is None:
            return Answer(REFUSED, self._say("deciding.no_command.no_task", about=task_id))
        task, settings, protected = found.task, self._bus.settings.vault, self._bus.settings.approval.protected
        if command.verb == CANCEL:
            return Decision((task_id, CANCEL, str(task.attempt)), CANCEL, {"reason": command.text}, task_id, path)
        if command.verb == PRIORITY:
            fields = {"priority": command.fields["priority"]}
            parts = (task_id, PRIORITY, command.made or path, str(command.fields["priority"]))
            return Decision(parts, PRIORITY, fields, task_id, path)
        asked = requests.of_task(self._bus, task)
        if asked is None or asked.req != req:
            return Answer(REFUSED, self._say("deciding.old"))
        allowed = {APPROVE: (wishes.APPROVAL, wishes.REVIEW), REJECT: (wishes.APPROVAL, wishes.REVIEW),
                   ANSWER: (wishes.QUESTION, wishes.REVIEW)}  # fmt: skip
        if asked.kind not in allowed[command.verb]:
            return Answer(REFUSED, self._say("deciding.old"))
        if command.verb == REJECT and asked.kind == wishes.REVIEW and not command.text:
            return Answer(REFUSED, self._say("deciding.fault.no_reply"))
        categories = [str(one) for one in (task.approval or {}).get("categories") or []]
        risky = categories if asked.kind == wishes.APPROVAL else []
        if not wishes.allowed(command.verb, settings.authority, risky, protected):
            return Answer(REFUSED, self._say("deciding.level"))
        fields = {"kind": asked.kind, "sha256": asked.sha256, "answer": command.text if command.verb != APPROVE else ""}
        return Decision((task_id, command.verb, req), command.verb, fields, task_id, path, req)

    def _answer(self, path: str, data: bytes, values: Mapping[str, Any] | None, answer: Answer) -> bool:
        """Writes what became of an order into its note; False if somebody has changed it meanwhile."""
        link: list[tuple[str, Value]] = [("ab_task", f"[[{answer.task_id}]]")] if answer.task_id else []
        outcome = f"\n> [!{'failure' if answer.state == REFUSED else 'success'}] {answer.words}\n"
        text = data.decode("utf-8")
        parts = notes.split(text)
        front = parts.front or ""
        if values is not None:
            front = with_properties(front, values, [("ab_state", Plain(answer.state)), *link])
        try:
            body = notes.with_last_region(parts.body, "outcome", outcome)
        except BrokenNote:
            return True
        fresh = notes.dressed(notes.join(notes.Parts(front, body)), text)
        if fresh != text and not self._notebook.replace(KIND, path, data, fresh):
            return False
        if answer.state != REFUSED:
            ledger.change(self._bus, KIND, path, lambda value: {**value, "task_id": answer.task_id})
            self._done[path] = (self._bus.clock.boot_s(), answer.task_id)
        return True

    def _put_away(self) -> None:
        """Moves orders that were taken a minute ago to `commands/done/`."""
        now = self._bus.clock.boot_s()
        for path, (at, task_id) in list(self._done.items()):
            if now - at < DONE_S:
                continue
            stem = path.rpartition("/")[2]
            if not self._notebook.exists(path) or any(
                self._notebook.move(path, f"commands/done/{name}") for name in (stem, f"{stem}-{task_id or 'done'}")
            ):
                del self._done[path]
            else:
                self.problems[path] = "was taken, and cannot be moved to commands/done: its name is taken there"

    def _known(self, key: str) -> Mapping[str, Any]:
        doc = quiet.get(self._bus, f"{decisions.FOLDER}/{key}")
        return doc.value if doc else {}


def _at(value: Mapping[str, Any]) -> datetime:
    return parse_stamp(str(value.get("at")))


def _looks_ready(front: str) -> bool:
    """Whether properties that cannot be read say that the note is an order, and finished."""
    return all(re.search(rf"^{line}", front, re.MULTILINE) for line in (r"ab_kind:\s*.?command", r"ab_ready:\s*true"))
