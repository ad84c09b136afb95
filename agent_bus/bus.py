"""The handle that every verb gets: the parts of one open bus, and who is calling."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from agent_bus.clock import Clock
from agent_bus.settings import Settings
from agent_bus.store.journal import Journal
from agent_bus.store.layout import Layout
from agent_bus.store.port import Store
from agent_bus.store.watch import Watch
from agent_bus.times import stamp


@dataclass(frozen=True)
class Caller:
    """Who calls, as far as the bus itself knows it (never taken from what a client says of itself).

    Args:
        agent: the agent that the server was started for; "" = not bound, identity is what the call says.
        role: worker, orchestrator, reviewer or operator.
        channel: mcp, cli, http, web or python; how the call came.
        process: True if the calling process itself is the holder of what it receives (a stdio server).
        session: an id of the HTTP session, "" without one.
        run: the id of the launcher's run this process belongs to (AGENT_BUS_RUN_ID).
        lease_id: the lease this process was started with (AGENT_BUS_LEASE_ID).
        client: name and version of the client, for the journal only.
        person: True only for a person at a terminal or a page.
    """

    agent: str = ""
    role: str = "worker"
    channel: str = "python"
    process: bool = False
    session: str = ""
    run: str = ""
    lease_id: str = ""
    client: str = ""
    person: bool = False


@dataclass(frozen=True)
class Bus:
    """One open bus. `layout` is None for engines without a folder; `memo` holds
    what was derived from documents and may be dropped at any time."""

    store: Store
    watch: Watch
    journal: Journal
    settings: Settings
    clock: Clock
    layout: Layout | None
    caller: Caller = field(default_factory=Caller)
    token: Callable[[], str] = field(default=lambda: secrets.token_hex(8))
    memo: dict[str, Any] = field(default_factory=dict)

    def now(self) -> datetime:
        """The wall clock."""
        return self.clock.now()

    def stamp(self) -> str:
        """The wall clock as text for documents."""
        return stamp(self.clock.now())

    def called_by(self, caller: Caller) -> Bus:
        """The same bus for another caller."""
        return replace(self, caller=caller)

    def check_writable(self) -> None:
        """Raises BusError `refused` on a host that is not the owner of the bus folder."""
        if self.layout is not None:
            self.layout.check_owner()

    def close(self) -> None:
        """Releases what the parts hold open."""
        self.watch.close()
        self.journal.close()
        self.store.close()
