"""Short words for tests: the verbs of a bus as methods that give plain values, also in another process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_bus import commands
from agent_bus.bus import Bus, Caller
from agent_bus.errors import BusError
from agent_bus.settings import Settings

PATIENCE_S = 30.0
CHECKOUT = Path(__file__).resolve().parents[2]


class Desk:
    """A bus as one caller has it: `desk.dispatch_task("coder", "x")["task_id"]`; waiting verbs run to their end.

    A report is `completed` if a test does not say otherwise.
    """

    def __init__(self, bus: Bus, caller: Caller | None = None) -> None:
        self.bus = bus if caller is None else bus.called_by(caller)

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        command = commands.find(name)

        def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
            given = dict(zip((p.name for p in command.parameters), args, strict=False)) | kwargs
            if name == "submit_report":
                given.setdefault("status", "completed")
            if command.is_async:
                return anyio.run(partial(commands.run, self.bus, command, given)).model_dump()
            return commands.run_sync(self.bus, command, given).model_dump()

        return call

    def task(self, task_id: str) -> dict[str, Any]:
        """The task's document, wherever it lies; it must be in exactly one place."""
        [key] = self.places(task_id)
        doc = self.bus.store.get(key)
        assert doc is not None
        return doc.value

    def places(self, task_id: str) -> list[str]:
        """The keys of all documents of an id."""
        store = self.bus.store
        nested = [f"{top}/{name}" for top in ("inbox", "archive") for name in store.folders(top)]
        folders = [*nested, "approvals", "waiting", "dead_letter"]
        return [f"{folder}/{task_id}" for folder in folders if store.exists(f"{folder}/{task_id}")]

    def folder(self, task_id: str) -> str:
        """The first folder of the one place of a task."""
        [key] = self.places(task_id)
        return key.split("/")[0]

    def doc(self, key: str) -> dict[str, Any]:
        """A document that must be there."""
        found = self.bus.store.get(key)
        assert found is not None, key
        return found.value

    def edit(self, key: str, **changes: Any) -> None:
        """Changes a document as a person does: a key that is None goes."""
        doc = self.bus.store.get(key)
        assert doc is not None, key
        value = {**doc.value, **changes}
        self.bus.store.replace(doc, {k: v for k, v in value.items() if v is not None or k == "context"})

    def events(self, task_id: str) -> list[str]:
        """The names of a task's history."""
        return [line["event"] for line in self.task(task_id)["history"]]


@contextmanager
def refused(code: str, *words: str) -> Iterator[None]:
    """The block is refused with this code, and the message or hint has these words."""
    with pytest.raises(BusError) as caught:
        yield
    said = f"{caught.value.message} {caught.value.hint}"
    assert caught.value.code == code, said
    for word in words:
        assert word in said, said


class Server:
    """A second process on a bus folder (tests/tools/worker_process.py)."""

    def __init__(self, settings: Settings, caller: Caller) -> None:
        given = {"settings": settings.model_dump(exclude={"problems", "source"}), "caller": asdict(caller)}
        script = CHECKOUT / "tests" / "tools" / "worker_process.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        assert self.answer() == "open"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def send(self, order: dict[str, Any]) -> None:
        """Gives an order; its answer is fetched by `answer`."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self, timeout_s: float = PATIENCE_S) -> Any:
        """The next answer. Raises BusError if it is one."""
        line = self._answers.get(timeout=timeout_s)
        assert line, "the process has ended"
        found = json.loads(line)
        if "error" in found:
            raise BusError(**found["error"])
        return found["ok"]

    def ask(self, order: dict[str, Any]) -> Any:
        """An order and its answer."""
        self.send(order)
        return self.answer()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        told = {"status": "completed"} if name == "submit_report" else {}
        return lambda **args: self.ask({"verb": name, "args": told | args})

    def kill(self) -> None:
        """Ends it at once, as kill -9 does."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """Ends it in order."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        else:
            with_suppressed_pipe(self.process.stdin.close)
        self.process.stdout.close()


def with_suppressed_pipe(act: Callable[[], None]) -> None:
    """Closing the pipe of a killed process may fail."""
    try:
        act()
    except OSError:
        return
