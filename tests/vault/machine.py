"""A person, a synchroniser, agents and mirrors that are killed, in any order: a Hypothesis state machine.

Everything a person writes has a mark of its own, so that it can be told whether it was lost, taken twice, or taken
before it was finished. A mirror is killed by an exception at a call that changes a file, and a new one goes on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import note as say
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_bus.errors import BusError
from agent_bus.jobs.mirror import MirrorJob
from agent_bus.notes import ledger
from agent_bus.operations import vault_channel
from agent_bus.store import atomic
from tests.vault.conftest import Vault
from tests.vault.test_orders import order

MARK = re.compile(r"mark\d{5}")
BOXES = ("approve", "reject", "cancel", "send")
COPIES = (
    "{} (conflicted copy 2026-12-01)", "{} (Conflicted copy Phone 202612011000)",
    "{}.sync-conflict-20261201-100000-ABC", "{} 2", "{}-LAPTOP", "{} 競合",
)  # fmt: skip
PROPERTIES = [
    ("ab_approve", "true"), ("ab_approve", "false"), ("ab_approve", "["), ("ab_decision", "approve"),
    ("ab_decision", "no"), ("ab_decision", "cancel"), ("ab_decision", '""'), ("ab_decision", "perhaps"),
    ("ab_priority", "high"), ("ab_priority", "low"), ("ab_status", "cancelled"), ("ab_status", "completed"),
]  # fmt: skip
QUIET_S = 10.0
numbers = st.integers(0, 10_000)


class Killed(BaseException):
    """The process ended here."""


class VaultMachine(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="vault "))
        os.environ["AGENT_BUS_STATE_HOME"] = str(self.folder / "state")
        root = self.folder / "My Vault" / "09_AgentSync"
        root.mkdir(parents=True)
        self.vault = Vault(root, authority="all", protected=(), max_acts=1000)
        self.other = MirrorJob()
        self.count = 0
        self.typed: dict[Path, float] = {}
        self.versions: dict[Path, list[bytes]] = {}
        self.finished: set[str] = set()
        self.half: tuple[Path, bytes] | None = None
        self.parts: set[bytes] = set()
        """Beginnings of notes. They do not come back: a person might go on behind one, and an unfinished order
        without a stamp cannot be told from a new one.
        """
        self.again: set[str] = set()
        self.brought_back = 0
        """How often an older Inbox came back: whether a line with !again was meant once more cannot be told then."""

    def teardown(self) -> None:
        """Everything comes to rest; then nothing may be written any more."""
        self._whole()
        self.vault.run(120)
        assert self.vault.run(60) == 0, "nothing happens, nothing is written"
        self.vault.bus.close()
        shutil.rmtree(self.folder)

    # --- what happens on the bus

    @initialize()
    def begin(self) -> None:
        """Agents are known, an inbox is there."""
        for name in ("coder", "reviewer"):
            self.vault.worker(name).update_status(state="idle")
        path = self.vault.root / "commands" / "Inbox.md"
        path.parent.mkdir()
        path.write_text("---\nab_kind: inbox\nab_id: inbox\n---\n")
        self.dispatch(risky=True)
        self.dispatch(risky=False)
        self.work("blocked")
        self.tick()

    @rule(risky=st.booleans())
    def dispatch(self, risky: bool) -> None:
        """An orchestrator sends a task."""
        text = "delete all old files in drafts/" if risky else "write tests"
        with suppress(BusError):
            self.vault.boss.dispatch_task("coder", f"{text} {self._mark()}")

    @rule(status=st.sampled_from(["completed", "failed", "blocked", "review"]))
    def work(self, status: str) -> None:
        """A worker takes a task and reports."""
        with suppress(BusError):
            got = self.vault.worker().receive_task()
            if got["task"]:
                review = status == "review"
                self.vault.worker().submit_report(
                    got["task"]["task_id"], status="completed" if review else status, summary="said",
                    needs_review=review, lease_id=got["lease_id"],
                )  # fmt: skip

    # --- what a person does

    @rule(number=numbers, box=st.sampled_from(BOXES), rest=st.booleans(), reply=st.booleans())
    def set_box(self, number: int, box: str, rest: bool, reply: bool) -> None:
        """Ticks a box, or takes the tick away, perhaps with a reply; then goes away, or not."""

        def change(text: str) -> str:
            if reply:
                text = text.replace("### Reply\n", f"### Reply\n{self._mark(finished=True)}\n", 1)
            return re.sub(rf"- \[(.)\] (.*\^{box})$", _other_mark, text, flags=re.MULTILINE)

        self._edit(number, change)
        if rest:
            self.tick(15.0)

    @rule(number=numbers, change=st.sampled_from(PROPERTIES), rest=st.booleans())
    def set_property(self, number: int, change: tuple[str, str], rest: bool) -> None:
        """Sets a property, sensible or not."""
        name, value = change
        line = f"{name}: {value}"
        self._edit(number, lambda text: re.sub(rf"^{name}: .*$", line, text, count=1, flags=re.MULTILINE))
        if rest:
            self.tick(15.0)

    @rule(number=numbers, heading=st.sampled_from(["### Reply\n", "### Notes\n"]))
    def write_text(self, number: int, heading: str) -> None:
        """Writes a line into the person's part."""
        self._edit(number, lambda text: text.replace(heading, f"{heading}{self._mark(finished=True)}\n", 1))

    @rule(again=st.booleans(), ended=st.booleans())
    def write_line(self, again: bool, ended: bool) -> None:
        """Adds a line to the Inbox."""
        path = self.vault.root / "commands" / "Inbox.md"
        if path.exists():
            mark = self._mark(finished=True)
            self.again |= {mark} if again else set()
            line = f"- [ ] @coder{' !again' if again else ''} write {mark} end" + ("\n" if ended else "")
            text = path.read_text()
            self._save(path, text + ("" if text.endswith("\n") else "\n") + line)
            self.tick(15.0)

    @rule(ready=st.booleans(), stamp=st.booleans(), slowly=st.booleans())
    def write_order(self, ready: bool, stamp: bool, slowly: bool) -> None:
        """Makes a command note."""
        mark = self._mark(finished=ready)
        text = order(text=f"note {mark} end", made=mark if stamp else "", ready="true" if ready else "false")
        path = self.vault.root / "commands" / f"Order {mark}.md"
        if slowly:
            self.parts.add(text.replace(" end", "").encode())
            self._save(path, text.replace(" end", ""))
            self.tick(2.0)
        self._save(path, text)

    @rule(number=numbers)
    def delete(self, number: int) -> None:
        """Deletes a note."""
        if (path := self._some(number)) is not None:
            self._keep(path)
            path.unlink()

    @rule(name=st.sampled_from(["STOP", "停止", "stop 2"]))
    def stop(self, name: str) -> None:
        """Stops everything."""
        self._save(self.vault.root / "commands" / f"{name}.md", "")
        self.tick()
        with pytest.raises(BusError, match="stopped"):  # always
            self.vault.boss.dispatch_task("coder", "must not be")
        self.vault.desk.resume()

    # --- what a synchroniser does

    @rule(number=numbers, old=numbers)
    def bring_back(self, number: int, old: int) -> None:
        """Puts an older version of a note back, or one that was deleted."""
        paths = sorted(self.versions)
        if paths:
            path = paths[number % len(paths)]
            self.brought_back += path.stem == "Inbox"
            self._write(path, self.versions[path][old % len(self.versions[path])])

    @rule(old=numbers)
    def bring_the_inbox_back(self, old: int) -> None:
        """Puts an older version of the Inbox back."""
        path = self.vault.root / "commands" / "Inbox.md"
        if path in self.versions:
            self.brought_back += 1
            self._write(path, self.versions[path][old % len(self.versions[path])])
            self.tick(15.0)

    @rule(number=numbers, name=st.sampled_from(COPIES))
    def conflict(self, number: int, name: str) -> None:
        """Leaves a copy beside a note."""
        if (path := self._some(number)) is not None:
            self._write(path.with_name(name.format(path.stem) + ".md"), path.read_bytes())

    @rule(number=numbers)
    def touch(self, number: int) -> None:
        """Delivers the same bytes again, with a time of its own."""
        if (path := self._some(number)) is not None:
            self._write(path, path.read_bytes())
            os.utime(path, (number, number))

    @rule(number=numbers, part=st.floats(0, 1))
    def deliver_partly(self, number: int, part: float) -> None:
        """Delivers the beginning of a note; the rest comes with the next tick."""
        if self.half is None and (path := self._some(number)) is not None:
            data = path.read_bytes()
            self.half = (path, data)
            self.parts.add(data[: int(len(data) * part)])
            self._write(path, data[: int(len(data) * part)])
            self.tick(2.0)
            self._whole()

    # --- mirrors

    @rule(seconds=st.sampled_from([0.5, 2.0, 4.0, 11.0, 31.0]))
    def tick(self, seconds: float = 2.0) -> None:
        """Time passes and the mirror looks."""
        self._ticks(self.vault.job, seconds)

    @rule(seconds=st.sampled_from([2.0, 11.0]))
    def tick_of_another(self, seconds: float) -> None:
        """A second mirror looks at the same notes."""
        self._ticks(self.other, seconds)

    @rule()
    def restart(self) -> None:
        """The mirror is started anew."""
        self.vault.job = MirrorJob()

    @rule(call=st.integers(0, 60))
    def kill(self, call: int) -> None:
        """The mirror is killed at a call that changes a file."""
        before = self._marks()
        with _killed_at(call), suppress(Killed):
            self._run(self.vault.job, 12.0)
        self.vault.job = MirrorJob()
        self._nothing_lost(before)

    # --- what always holds

    @invariant()
    def json_is_valid(self) -> None:
        """Every document can be read."""
        for path in self.vault.root.rglob("*.json"):
            if "quarantine" not in path.parts:
                json.loads(path.read_bytes())

    @invariant()
    def nothing_is_taken_twice(self) -> None:
        """No decision acts twice, no order is sent twice, and only what was finished is taken."""
        sent = Counter[str]()
        for path in self._documents():
            task = json.loads(path.read_bytes())
            events = Counter(str(one["event"]) for one in task["history"])
            assert events["approve"] <= 1 + events["close_gate"], task
            asked = events["submit"] + events["recover"]
            assert events["retry"] + events["rework"] <= asked, task
            comment = str((task.get("comment") or {}).get("text", ""))
            for mark in MARK.findall(comment):
                assert mark in self.finished, f"{mark} was taken before it was finished"
            if task["from"] == "human":
                sent.update(MARK.findall(task["instruction"]))
                text = task["instruction"]
                assert re.fullmatch(r"(note|write) mark\d{5} end", text), f"taken before it was finished: {text}"
        back = {mark: self.brought_back if mark in self.again else 0 for mark in sent}
        assert all(number <= 1 + back[mark] for mark, number in sent.items()), sent

    @precondition(lambda self: vault_channel.is_paused(self.vault.bus))
    @rule()
    def open_the_channel(self) -> None:
        """Too much came at once: the person says that it was them."""
        vault_channel.open_again(self.vault.bus)

    # --- inside

    def _mark(self, finished: bool = False) -> str:
        self.count += 1
        mark = f"mark{self.count:05d}"
        if finished:
            self.finished.add(mark)
        return mark

    def _documents(self) -> list[Path]:
        return [
            path
            for path in self.vault.root.rglob("t-*.json")
            if ".bus" not in path.parts and "reports" not in path.parts
        ]

    def _some(self, number: int) -> Path | None:
        files = sorted(path for name, path in self.vault.files().items() if not name.startswith("commands/done/"))
        return files[number % len(files)] if files else None

    def _edit(self, number: int, change: Callable[[str], str]) -> None:
        folder = self.vault.root / "notes" / "tasks"
        files = sorted(folder.glob("t-*.md")) if folder.exists() else []
        asking = [
            path for path in files if not re.search(r"^ab_req: *(\"\")?$", path.read_text("utf-8", "replace"), re.M)
        ]
        files = asking if asking and number % 3 else files
        if not files:
            return
        path = files[number % len(files)]
        with suppress(UnicodeDecodeError):
            text = path.read_text(encoding="utf-8")
            fresh = change(text)
            if fresh != text:
                self._save(path, fresh)

    def _save(self, path: Path, text: str) -> None:
        say(f"person writes {path.name}")
        self._write(path, text.encode())

    def _keep(self, path: Path) -> None:
        if path.exists() and (data := path.read_bytes()) not in self.parts:
            self.versions.setdefault(path, []).append(data)

    def _write(self, path: Path, data: bytes) -> None:
        self._keep(path)
        with open(path, "r+b" if path.exists() else "wb") as file:
            file.truncate(0)
            file.write(data)
        self.typed[path] = self.vault.clock.boot_s()

    def _whole(self) -> None:
        if self.half is not None:
            path, data = self.half
            self.half = None
            self._write(path, data)

    def _marks(self) -> Counter[str]:
        found = Counter[str]()
        for path in self.vault.files().values():
            found.update(set(MARK.findall(path.read_bytes().decode("utf-8", "replace"))))
        return found

    def _nothing_lost(self, before: Counter[str]) -> None:
        lost = before.keys() - self._marks().keys()
        assert not lost, f"lost: {lost}"

    def _ticks(self, job: MirrorJob, seconds: float) -> None:
        before = self._marks()
        self._run(job, seconds)
        self._nothing_lost(before)

    def _run(self, job: MirrorJob, seconds: float) -> None:
        left = seconds
        while left > 0:
            self._tick_once(job)
            step = min(2.0, left)
            self.vault.clock.advance(step)
            left -= step
        self._tick_once(job)

    def _tick_once(self, job: MirrorJob) -> None:
        """One look, with a check that nothing is written where somebody has just written."""
        now = self.vault.clock.boot_s()
        fresh = {path: path.read_bytes() for path, at in self.typed.items() if now - at < QUIET_S and path.exists()}
        fresh = {path: data for path, data in fresh.items() if not self._is_ours(data)}
        job.tick(self.vault.bus, self.vault.clock.now())
        for path, data in fresh.items():
            if path.exists():
                assert path.read_bytes() == data, f"{path.name} was written while somebody typed in it"
        for path in self.vault.files().values():
            if path.read_bytes() not in self.versions.get(path, [])[-1:]:
                self._keep(path)

    def _is_ours(self, data: bytes) -> bool:
        sha = ledger.digest(data)
        folder = self.vault.root / ".bus" / "vault" / "notes"
        return any(sha in path.read_text() for path in folder.rglob("*.json")) if folder.exists() else False


def _other_mark(found: re.Match[str]) -> str:
    return f"- [{'x' if found[1] == ' ' else ' '}] {found[2]}"


class _killed_at:  # noqa: N801 (a context manager)
    """Raises `Killed` at the so manieth call that changes a file."""

    def __init__(self, call: int) -> None:
        self._left = call
        self._real: dict[str, Any] = {}

    def __enter__(self) -> None:
        for name in ("write_temp", "put_new", "put_over", "remove"):
            self._real[name] = getattr(atomic, name)
            setattr(atomic, name, self._counted(self._real[name]))

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(atomic, name, real)

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise Killed
            return real(*args, **more)

        return call
