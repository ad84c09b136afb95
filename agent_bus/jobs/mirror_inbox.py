"""Reading `commands/Inbox.md`: a line becomes a task once, and is ticked (docs/vault-notes.md "The inbox")."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain import inbox_lines, notes, wishes
from agent_bus.domain.inbox_lines import Line
from agent_bus.domain.inert import flat
from agent_bus.domain.notes import BrokenNote, Parts
from agent_bus.errors import BusError
from agent_bus.jobs.mirror_acts import DISPATCH
from agent_bus.jobs.mirror_channel import Channel
from agent_bus.jobs.mirror_stop import Stops
from agent_bus.notes import ledger
from agent_bus.notes.notebook import Notebook
from agent_bus.notes.settled import SettledFiles
from agent_bus.operations import quiet, stop
from agent_bus.operations.agents import known_agents
from agent_bus.operations.decisions import DONE, TAKEN, Decision
from agent_bus.operations.vault_memory import LINES
from agent_bus.store.port import Doc, Exists, Stale
from agent_bus.texts import Texts

PATH, KIND = "commands/Inbox", "inbox"
READ = 50


class Inbox:
    """Reads the inbox of a vault."""

    def __init__(self, bus: Bus, notebook: Notebook, channel: Channel, texts: Texts, stops: Stops) -> None:
        self._bus = bus
        self._notebook = notebook
        self._channel = channel
        self._say = texts.say
        self._stops = stops
        self._unsent = False
        self._before: set[str] = set()
        self.problems: dict[str, str] = {}
        quiet = max(bus.settings.vault.line_quiet_s, bus.settings.vault.quiet_write_s)  # it is answered at once
        self.files = SettledFiles(notebook.root, bus.clock.boot_s, quiet, self._is_known)

    def look(self, stat: os.stat_result | None) -> None:
        """Takes the new lines, if nobody has changed the note for some seconds."""
        if stat is None:
            return
        self._stops.look_at(PATH, stat, _stops)
        for _, data in self.files.changed({PATH: stat}):
            try:
                if not self._read(data):
                    self.files.forget(PATH)
            except (UnicodeDecodeError, BrokenNote) as error:
                self.problems = {PATH: f"{error}: put it right"}

    def _is_known(self, path: str, sha256: str) -> bool:
        doc = ledger.read(self._bus, KIND, path)
        return doc is not None and ledger.is_own(doc.value, sha256)

    def _read(self, data: bytes) -> bool:
        """Whether the note was dealt with; False: look again later."""
        parts = notes.split(data.decode("utf-8"))
        lines = inbox_lines.read(parts.body)
        open_lines = [line for line in lines if not line.checked]
        self.problems = {}
        if inbox_lines.unended(parts.body):
            self.problems[PATH] = "its last line is not read yet: press Enter at its end"
        if open_lines and (self._channel.is_paused() or stop.is_stopped(self._bus)):
            return False
        changes: dict[str, str] = {}
        held = self._vanished(lines)
        self._before, self._unsent = self._left_open(ledger.digest(data), open_lines), False
        for line in open_lines:
            if (fresh := self._order(line, held)) is not None and fresh != line.raw:
                changes[line.identity] = fresh
        if changes and not self._answer(data, parts, changes, open_lines):
            return False
        left = [line.identity for line in open_lines if line.again and line.identity not in changes]
        ledger.change(self._bus, KIND, PATH, lambda value: {**value, "open": left})
        return not self._unsent

    def _left_open(self, sha256: str, lines: list[Line]) -> set[str]:
        """The lines with `!again` that stood there at the last reading and were not taken: they are not new now. If a
        synchroniser has brought back bytes that were read before, no line is new.
        """
        doc = ledger.read(self._bus, KIND, PATH)
        seen = [str(one) for one in doc.value.get("read", [])] if doc else []
        if sha256 in seen:
            return {line.identity for line in lines}
        ledger.change(self._bus, KIND, PATH, lambda value: {**value, "read": [*seen, sha256][-READ:]})
        return {str(one) for one in doc.value.get("open", [])} if doc else set()

    def _order(self, line: Line, held: str) -> str | None:
        """A line as it shall stand after it was dealt with; None leaves it as it is."""
        if line.is_stop:
            return line.taken("")
        doc = self._doc(line.identity)
        value = doc.value if doc else {}
        if doc is not None and not value.get("acked"):
            return self._send(line, int(value.get("times", 1)))
        if doc is not None and value.get("refused"):
            if line.warned:
                return None
        elif doc is not None and (not line.again or line.identity in self._before):
            known = value.get("task_id") or "a task"
            self._say_why(line, f"was sent as {known} before: write it anew, with !again, to send it once more")
            return None
        if held and not line.again:
            self._say_why(line, f"is held, as the line of {held} was changed at the same time: write !again to send it")
            return None
        if not wishes.allowed(DISPATCH, self._bus.settings.vault.authority, (), ()):
            return line.refused(self._say("deciding.level"))
        if reason := unknown_agent(self._bus, line.agent, self._say):
            return line.refused(reason)
        times = int(value.get("times", 0)) + 1
        self._note(
            line.identity, {"task_id": "", "times": times, "acked": False, "refused": False, "at": self._bus.stamp()}
        )
        return self._send(line, times)

    def _send(self, line: Line, times: int) -> str | None:
        """Sends a line that was noted, once for each of its times."""
        fields = {"target": line.agent, "instruction": line.text, "priority": line.priority}
        decision = Decision(("inbox", line.identity, str(times)), DISPATCH, fields, path=PATH)
        outcome = self._channel.consume(decision)
        if outcome.state == TAKEN:
            self._unsent = True
            return None
        if outcome.state != DONE:
            self._note(line.identity, {"acked": True, "refused": True})
            return line.refused(flat(str(outcome.result.get("message", "")), 200))
        task_id = str(outcome.result.get("task_id", ""))
        self._note(line.identity, {"task_id": task_id})
        return line.taken(task_id)

    def _say_why(self, line: Line, why: str) -> None:
        self.problems[f"{PATH} {line.identity[:8]}"] = f"{flat(line.text, 60)}: {why}"

    def _answer(self, data: bytes, parts: Parts, changes: dict[str, str], lines: list[Line]) -> bool:
        body = inbox_lines.replaced(parts.body, changes)
        text = notes.dressed(notes.join(Parts(parts.front, body)), data.decode("utf-8"))
        if not self._notebook.replace(KIND, PATH, data, text):
            return False
        for line in lines:
            if line.identity in changes and self._doc(line.identity) is not None:
                self._note(line.identity, {"acked": True})
        return True

    def _vanished(self, lines: list[Line]) -> str:
        """The task of a line that was taken and is neither ticked nor there any more: it may have been rewritten."""
        there = {line.identity: line for line in lines}
        held = ""
        for doc in self._unacked():
            line = there.get(doc.name)
            if line is None:
                held = str(doc.value.get("task_id", "")) or "a task"
            if line is None or line.checked:
                self._note(doc.name, {"acked": True})
        return held

    def _unacked(self) -> Iterator[Doc]:
        return (doc for doc in self._bus.store.list(LINES) if not doc.value.get("acked"))

    def _doc(self, identity: str) -> Doc | None:
        return quiet.get(self._bus, f"{LINES}/{identity}")

    def _note(self, identity: str, change: dict[str, Any]) -> None:
        doc = self._doc(identity)
        try:
            if doc is None:
                self._bus.store.create(f"{LINES}/{identity}", change)
            else:
                self._bus.store.replace(doc, {**doc.value, **change})
        except (Exists, Stale):
            return  # another mirror has noted the same


def unknown_agent(bus: Bus, name: str, say: Any) -> str:
    """Why a name is no agent's, in words; "" if one was seen, or can be launched."""
    known = known_agents(bus)
    try:
        ids.check_agent(name, "ab_to")
    except BusError:
        return str(say("deciding.bad_agent"))
    if any(ids.same_name(one, name) for one in known):
        return ""
    close = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return str(say("deciding.nearest", name=close[0]) if close else say("deciding.no_agent"))


def _stops(data: bytes) -> bool:
    try:
        lines = inbox_lines.read(notes.split(data.decode("utf-8")).body)
    except (UnicodeDecodeError, BrokenNote):
        return False
    return any(line.is_stop and not line.checked for line in lines)
