"""The act in which nobody starts anything by hand: the bus launches an agent, chains its tasks, tells what happens, and
ends a run that hangs."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from demo_parts.stage import BOUND_S, SCRIPTS, Stage, Unexpected, program

AGENT = "robot"


def settings(folder: Path) -> str:
    """The settings file: how the bus starts the stand-in."""
    command = [sys.executable, str(SCRIPTS / "demo_parts" / "robot.py"), *program()]
    rows = {"launcher": "command", "permission": "full", "command": command, "work_dir": str(folder / "results")}
    return "\n".join([f"[agents.{AGENT}]", *(f"{key} = {json.dumps(value)}" for key, value in rows.items()), ""])


class Events:
    """A WebSocket client on the hub: what happens, as it happens.

    Args:
        stage: where it plays; `agent-bus up` must run.
    """

    def __init__(self, stage: Stage) -> None:
        from websockets.sync.client import connect

        from agent_bus import host

        code, text = stage.cli("up", "--status", "--json")
        stage.must(code == 0, f"agent-bus up --status gave {code}: {text}")
        port = json.loads(text)["hub_port"]
        folder = host.state_folder() / str(stage.document(".bus/format")["bus_id"])
        self._stage = stage
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._connection = connect(f"ws://127.0.0.1:{port}/", open_timeout=BOUND_S)
        token = (folder / "http-token").read_text(encoding="ascii").strip()
        self._connection.send(json.dumps({"type": "auth", "token": token}))
        self._connection.send(json.dumps({"type": "subscribe", "events": [], "agents": [AGENT]}))
        threading.Thread(target=self._read, daemon=True).start()

    def until(self, name: str) -> dict[str, Any]:
        """Shows events until one of that name comes, and gives it.

        Raises:
            Unexpected: it does not come in time.
        """
        end = time.monotonic() + BOUND_S
        while True:
            try:
                event = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Unexpected(f"the hub never told of {name}") from None
            self._stage.line("events", "done.event", event=event["event"], task=event.get("task_id", ""))
            if event["event"] == name:
                return event

    def close(self) -> None:
        """Leaves the hub."""
        self._connection.close()

    def _read(self) -> None:
        for text in self._connection:
            frame = json.loads(text)
            if frame.get("type") == "event":
                self._queue.put(frame)
            elif frame.get("type") == "ping":
                self._connection.send(json.dumps({"type": "pong"}))


def play(stage: Stage, boss: Any) -> None:
    """The whole act."""
    stage.act("act.launch")
    code, text = stage.cli("up", "--detach", "--port", "0", "--ws-port", "0")
    stage.must(code == 0, f"agent-bus up gave {code}: {text}")
    stage.line("demo", "done.up")
    try:
        events = Events(stage)
        chain(stage, boss, events)
        task = hang(stage, boss, events)
        events.close()
    finally:
        code, text = stage.cli("up", "--stop")
    stage.must(code == 0, f"agent-bus up --stop gave {code}: {text}")
    stage.line("person", "done.resumed")
    stage.person("resume")
    over = boss.call("cancel_task", task_id=task)
    stage.must(over["task_state"] == "cancelled", f"the hanging task is {over['task_state']}")


def chain(stage: Stage, boss: Any, events: Events) -> None:
    """A dispatch starts the stand-in; its report starts the next task by itself."""
    step = {"target": AGENT, "instruction": stage.say("order.note2"), "context": {"job": "note2"}}
    order = {"instruction": stage.say("order.note"), "context": {"job": "note"}, "options": {"next_tasks": [step]}}
    sent = boss.call("dispatch_task", target=AGENT, **order)
    stage.line("boss", "done.dispatched", task=sent["task_id"], target=AGENT, text=order["instruction"])
    stage.must(sent["auto_launched"], f"launch is {sent['launch']}: {sent['next']}")
    for name in ("note", "note2"):
        events.until("report.submitted")
        stage.must((stage.folder / "results" / f"{name}.md").exists(), f"{name}.md was not written")
    events.until("report.acknowledged")


def hang(stage: Stage, boss: Any, events: Events) -> str:
    """A run that would not end is ended by the emergency stop; the task's id."""
    order = stage.say("order.hang")
    task = str(boss.call("dispatch_task", target=AGENT, instruction=order, context={"job": "hang"})["task_id"])
    stage.line("boss", "done.dispatched", task=task, target=AGENT, text=order)
    events.until("task.started")
    stopped = boss.call("emergency_stop", reason=stage.say("stop.reason"))
    stage.must(len(stopped["stopped"]) == 1, f"the stop ended {stopped['stopped']}")
    stage.must(stopped["survivors"] == [], f"the stop left {stopped['survivors']}")
    stage.line("boss", "done.ended", run=stopped["stopped"][0])
    return task
