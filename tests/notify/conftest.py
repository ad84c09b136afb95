"""A bus with channels, a clock that is moved by hand, and a stand-in for Discord."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clock import Clock, ManualClock
from agent_bus.settings import Settings
from tests.notify.stand_in import StandIn

START = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
Open = Callable[..., Bus]


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    server = StandIn()
    yield server
    server.die()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def opened(tmp_path: Path, clock: ManualClock) -> Iterator[Open]:
    """`opened(channels, clock=…, **settings)`: the bus in tmp_path/bus with these channels."""
    buses: list[Bus] = []

    def make(channels: dict[str, Any] | None = None, when: Clock | None = None, **more: Any) -> Bus:
        root = tmp_path / "bus"
        root.mkdir(exist_ok=True)
        settings = {"root": str(root), "durability": "none", "notify": channels or {}, **more}
        bus = open_bus(Settings.model_validate(settings), Caller(role="operator", person=True), when or clock)
        buses.append(bus)
        return bus

    yield make
    for bus in buses:
        bus.close()
