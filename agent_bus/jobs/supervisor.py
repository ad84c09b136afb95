"""What `agent-bus up` runs: every job on its thread, and the hub. Two supervisors at once are harmless.

`daemons/` and `agent-bus job NAME` run one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_bus.bus import Bus, Caller
from agent_bus.errors import BusError
from agent_bus.jobs import notify, reaper
from agent_bus.jobs.hub import Hub
from agent_bus.jobs.hub_door import Door
from agent_bus.jobs.hub_place import Place
from agent_bus.jobs.loop import Job, Loop, run_once
from agent_bus.jobs.orchestrator import EVERY_S, Orchestrator

PORT_TRIES = 100


def _launcher() -> list[Job]:
    from agent_bus.jobs.launcher import LauncherJob

    return [Job("launcher", LauncherJob().tick)]


def _mirror() -> list[Job]:
    from agent_bus.jobs.mirror import MirrorJob

    return [Job("mirror", MirrorJob().tick)]


JOBS: dict[str, Callable[[Bus, float], list[Job]]] = {
    "reaper": lambda bus, _: [Job("reaper", reaper.tick, hinted=False)],
    "orchestrator": lambda bus, interval_s: [Job("orchestrator", Orchestrator(interval_s).tick)],
    "launcher": lambda bus, _: _launcher(),
    "notify": lambda bus, _: notify.jobs(bus),
    "mirror": lambda bus, _: _mirror(),
}
"""Each job by name: what makes it, from the bus and the seconds between two full looks."""


class Supervisor:
    """Jobs and, if it is wanted, the hub.

    Args:
        bus: the open bus.
        names: which of JOBS.
        interval_s: seconds between the orchestrator's full looks.
    """

    def __init__(self, bus: Bus, names: Sequence[str] = tuple(JOBS), interval_s: float = EVERY_S) -> None:
        self._bus = bus
        self._jobs = [job for name in names for job in JOBS[name](bus, interval_s)]
        self._loop = Loop(bus, self._jobs)
        self._hub: Hub | None = None

    def once(self) -> list[str]:
        """Runs each job once; what failed, in words."""
        for job in self._jobs:
            run_once(self._bus, job)
        return [f"{job.name}: {job.last_error}" for job in self._jobs if job.last_error]

    def start(self) -> None:
        """Starts the jobs."""
        self._loop.start()

    def start_hub(self, place: Place, token: str, caller: Caller, tries: int = 1) -> int:
        """Starts the hub and gives its port, the first free one of so many.

        Args:
            token: the user's own; it stands for `caller`.

        Raises:
            BusError: `conflict` if none is free.
        """
        door = Door.of(token, self._bus.settings.http, caller)
        for port in range(place.port, place.port + tries):
            self._hub = Hub(self._bus, door, Place(place.host, port))
            try:
                return self._hub.start()
            except BusError:
                self._hub = None
                if port == place.port + tries - 1:
                    raise
        raise ValueError(f"tries must be positive, got {tries}")

    def end(self) -> list[str]:
        """Ends all; names of jobs that did not end in time."""
        if self._hub is not None:
            self._hub.end()
        return self._loop.end()


__all__ = ["JOBS", "PORT_TRIES", "Place", "Supervisor"]
