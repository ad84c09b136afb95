"""Fixtures: a bus of each engine with a clock that is moved by hand, and its usual callers."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_bus.app import memory_bus, open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.settings import Settings
from tests.tools.desk import Desk, Server

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
BOSS = Caller(agent="boss", role="orchestrator", channel="mcp", session="boss-1")
CODER = Caller(agent="coder", channel="mcp", process=True)
PERSON = Caller(role="operator", channel="cli", person=True)

Make = Callable[..., Bus]


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this host's id is kept during a test."""
    home = tmp_path_factory.getbasetemp() / "state-home"
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(home))
    return home


@pytest.fixture
def clock() -> ManualClock:
    """Noon, until it is moved."""
    return ManualClock(NOON)


@pytest.fixture(params=["memory", "files"])
def engine(request: pytest.FixtureRequest) -> str:
    """The engine of a test's bus."""
    return str(request.param)


@pytest.fixture
def make(engine: str, tmp_path: Path, clock: ManualClock) -> Iterator[Make]:
    """Opens a bus with settings of its own."""
    opened = []

    def open_one(**settings: Any) -> Bus:
        if engine == "memory":
            made = memory_bus(Settings(**settings), clock=clock)
        else:
            (tmp_path / "bus").mkdir(exist_ok=True)
            ready = {"root": str(tmp_path / "bus"), "durability": "none", **settings}
            made = open_bus(Settings(**ready), clock=clock)
        opened.append(made)
        return made

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def bus(make: Make) -> Bus:
    """A bus with default settings, called by an unbound program."""
    return make()


@pytest.fixture
def boss(bus: Bus) -> Desk:
    """The one who dispatches."""
    return Desk(bus, BOSS)


@pytest.fixture
def coder(bus: Bus) -> Desk:
    """The one who works, in this very process."""
    return Desk(bus, CODER)


@pytest.fixture
def person(bus: Bus) -> Desk:
    """A person at a terminal."""
    return Desk(bus, PERSON)


@pytest.fixture
def disk(tmp_path: Path, clock: ManualClock) -> Iterator[Bus]:
    """A bus of the files engine."""
    (tmp_path / "bus").mkdir(exist_ok=True)
    opened = open_bus(Settings(root=str(tmp_path / "bus"), durability="none"), clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Bus]:
    """A bus of the files engine on the machine's own clock, as further processes have it too."""
    (tmp_path / "bus").mkdir(exist_ok=True)
    opened = open_bus(Settings(root=str(tmp_path / "bus"), durability="none"))
    yield opened
    opened.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts a further process on the folder of `live`, on the machine's own clock."""
    started = []

    def start(caller: Caller = CODER, **settings: Any) -> Server:
        (tmp_path / "bus").mkdir(exist_ok=True)
        ready = {"root": str(tmp_path / "bus"), "durability": "none", **settings}
        started.append(Server(Settings(**ready), caller))
        return started[-1]

    yield start
    for one in started:
        one.close()
