"""Buses for the tests of rooms, and short words for their six tools."""

from typing import Any

import pytest

from agent_bus.bus import Bus
from tests.tools.buses import bus, clock, disk, engine, live, make, server, state_home  # noqa: F401 (fixtures)
from tests.tools.desk import Desk


class Hall:
    """A bus with rooms: everybody's session by name."""

    def __init__(self, bus: Bus) -> None:  # noqa: F811
        self.desk = Desk(bus)
        self.bus = bus
        self.sessions: dict[str, str] = {}

    def open(self, room: str = "r", *join: str, **wish: Any) -> dict[str, Any]:
        """A room, and who joins it at once; the opener's session is kept under the host's name, or "boss"."""
        made = self.desk.room_open(room, **wish)
        self.sessions[wish.get("host", "boss")] = made["session"]
        for name in join:
            self.join(name, made["room"])
        return made

    def join(self, name: str, room: str = "r", **more: Any) -> dict[str, Any]:
        """A member comes in."""
        made = self.desk.room_join(name, room=room, **more)
        self.sessions[name] = made["session"]
        return made

    def say(self, name: str, text: str, **more: Any) -> dict[str, Any]:
        """A message."""
        return self.desk.room_send(text, session=self.sessions[name], **more)

    def act(self, name: str, action: str, **more: Any) -> dict[str, Any]:
        """Any other act."""
        return self.desk.room_act(action, session=self.sessions[name], **more)

    def wait(self, name: str, **more: Any) -> dict[str, Any]:
        """What somebody is told now."""
        return self.desk.room_wait(session=self.sessions[name], **{"timeout_s": 0, **more})

    def read(self, name: str, what: str = "unread", **more: Any) -> dict[str, Any]:
        """What somebody reads."""
        return self.desk.room_read(what, session=self.sessions[name], **more)

    def texts(self, name: str, **more: Any) -> list[str]:
        """The texts of somebody's history."""
        return [m["content"] for m in self.read(name, "history", **more)["messages"]]


@pytest.fixture
def hall(bus: Bus) -> Hall:  # noqa: F811
    """A bus of each engine."""
    return Hall(bus)
