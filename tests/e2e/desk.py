"""One process's place at a bus: its verbs as methods, refusals as values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clock import Clock, ManualClock
from agent_bus.commands import bind
from agent_bus.domain.task import Holder, Task
from agent_bus.errors import BusError
from agent_bus.jobs import reaper
from agent_bus.operations import claim, find
from agent_bus.settings import Settings

AGENT = "coder"


class Desk:
    """A bus as one caller sees it.

    Args:
        root: the bus folder, or an open bus.
        session: tells the desks of one process apart.
        clock: default: the system's.
        durability: as the setting.
        process: whether its leases end with this process, or only with their time.
    """

    def __init__(
        self,
        root: Path | Bus,
        session: str = "",
        clock: Clock | None = None,
        durability: str = "full",
        process: bool = True,
    ) -> None:
        caller = Caller(process=process, session=session, role="operator")
        if isinstance(root, Bus):
            self.bus = root.called_by(caller)
        else:
            settings = Settings.model_validate({"root": str(root), "durability": durability})
            self.bus = open_bus(settings, caller, clock)

    def call(self, name: str, **given: Any) -> dict[str, Any]:
        """A verb's answer; a refusal is `{"code": …}`."""
        try:
            answer = getattr(bind(self.bus), name)(**given)
        except BusError as error:
            return {"code": error.code, "message": error.message}
        assert isinstance(answer, BaseModel)
        return answer.model_dump()

    def receive(self, agent: str = AGENT) -> dict[str, Any]:
        """What receive_task does without a wait: `{task_id, lease_id, attempt, already_held}`, {} for nothing."""
        try:
            claimed = claim.receive(self.bus, agent, agent)
        except BusError as error:
            return {"code": error.code, "message": error.message}
        if claimed is None:
            return {}
        task = claimed.found.task
        assert task.lease
        return {
            "task_id": task.task_id,
            "lease_id": task.lease.id,
            "attempt": task.attempt,
            "already_held": claimed.already_held,
        }

    def report(self, held: dict[str, Any], status: str = "completed", **given: Any) -> dict[str, Any]:
        """Reports on what `receive` gave."""
        return self.call(
            "submit_report",
            **{
                "worker": AGENT,
                "summary": "done",
                "task_id": held["task_id"],
                "lease_id": held["lease_id"],
                "status": status,
            }
            | given,
        )

    def task(self, task_id: str) -> Task:
        """A task's document."""
        return find.need(self.bus, task_id).task

    def reap(self) -> reaper.ReapReport:
        """One pass of the reaper."""
        return reaper.sweep(self.bus, self.bus.now())

    def bury(self, task_id: str) -> None:
        """Lets the holder of a task be dead: its process id belongs to another program now."""
        found = find.need(self.bus, task_id)
        assert found.task.lease
        gone = Holder.model_validate(found.task.lease.holder.model_dump() | {"pid_started": "1"})
        lease = found.task.lease.model_copy(update={"holder": gone})
        self.bus.store.replace(found.doc, found.task.model_copy(update={"lease": lease}).value())

    def at(self, seconds: float) -> Desk:
        """The same bus some time later."""
        later = ManualClock(datetime.now(UTC) + timedelta(seconds=seconds))
        return Desk(replace(self.bus, clock=later, memo={}))
