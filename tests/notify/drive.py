"""Drives the teller and a sender by hand, on a clock that is moved by hand."""

from __future__ import annotations

from typing import Any

from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.commands import bind
from agent_bus.jobs.notify import Teller
from agent_bus.jobs.sender import Sender
from agent_bus.operations import claim


def call(bus: Bus, name: str, **given: Any) -> dict[str, Any]:
    """A verb's answer."""
    return getattr(bind(bus), name)(**given).model_dump()  # type: ignore[no-any-return]


def dispatch(bus: Bus, instruction: str = "Write the tests.", agent: str = "coder", **more: Any) -> str:
    return str(call(bus, "dispatch_task", target=agent, instruction=instruction, from_agent="boss", **more)["task_id"])


def finish(bus: Bus, task_id: str, status: str, summary: str, review: bool = False, agent: str = "coder") -> None:
    """Receives the task and reports on it."""
    mine = bus.called_by(Caller(agent=agent, role="worker", session=f"s-{task_id}"))
    claimed = claim.receive(mine, agent, agent)
    assert claimed is not None
    assert claimed.found.task.task_id == task_id
    call(mine, "submit_report", task_id=task_id, worker=agent, status=status, summary=summary, needs_review=review)


class Telling:
    """One teller and one sender.

    Args:
        bus: with the channel in its settings.
        clock: the bus's clock.
        channel: which channel is sent to.
    """

    def __init__(self, bus: Bus, clock: ManualClock, channel: str = "discord") -> None:
        self.bus = bus
        self.clock = clock
        self.teller, self.sender = Teller(), Sender(channel, share=lambda: 1.0)
        self.teller.tick(bus, bus.now())

    def run(self, seconds: float) -> None:
        """Lets time pass as the job loop would: each job when it asked to be called again."""
        end = self.clock.boot_s() + seconds
        while True:
            wait = min(self.teller.tick(self.bus, self.bus.now()), self.sender.tick(self.bus, self.bus.now()))
            left = end - self.clock.boot_s()
            if left <= 0:
                return
            self.clock.advance(min(max(wait, 0.05), left))
