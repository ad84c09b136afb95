"""A bus in a vault with its mirror, on a clock that is moved by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.jobs.mirror import MirrorJob
from agent_bus.settings import ApprovalSettings, Settings
from agent_bus.settings_vault import VaultSettings
from tests.notes.vault_check import check_note
from tests.tools.desk import Desk


class Vault:
    """What a person has: the folder, agents that work in it, and a mirror that is called by hand."""

    def __init__(
        self, root: Path, language: Literal["en", "ja"] = "en", mirror: Literal["on", "auto"] = "on",
        protected: tuple[str, ...] = ("money", "deletion"), **more: Any,
    ) -> None:  # fmt: skip
        self.root, self.clock = root, ManualClock(datetime(2026, 12, 1, 9, 30, tzinfo=UTC))
        wanted = VaultSettings(mirror=mirror, **more)
        settings = Settings(
            root=str(root), durability="none", language=language, vault=wanted, timezone="Asia/Tokyo",
            approval=ApprovalSettings(protected=list(protected)),
        )  # fmt: skip
        self.bus: Bus = open_bus(settings, Caller(role="operator", person=True), self.clock)
        self.desk = Desk(self.bus)
        self.boss = Desk(self.bus, Caller(agent="boss", role="orchestrator", channel="mcp", session="b"))
        self.job = MirrorJob()

    def worker(self, name: str = "coder") -> Desk:
        """An agent's own desk."""
        return Desk(self.bus, Caller(agent=name, channel="mcp", session=name))

    def run(self, seconds: float = 0) -> int:
        """Ticks for so many seconds of the clock, then once more; how many notes were written."""
        before = self.times()
        left = seconds
        while left > 0:
            step = min(2.0, left)
            self.job.tick(self.bus, self.clock.now())
            self.clock.advance(step)
            left -= step
        self.job.tick(self.bus, self.clock.now())
        after = self.times()
        return sum(1 for path, sign in after.items() if before.get(path) != sign)

    def times(self) -> dict[str, tuple[int, int]]:
        """Every note with what shows that it was written."""
        return {name: (path.stat().st_mtime_ns, path.stat().st_ino) for name, path in self.files().items()}

    def files(self) -> dict[str, Path]:
        """Every note by its path."""
        found = [path for path in self.root.rglob("*.md") if ".bus" not in path.parts]
        return {path.relative_to(self.root).as_posix(): path for path in found}

    def note(self, name: str) -> str:
        """A note's text; it passes the validator."""
        text = (self.root / f"{name}.md").read_text(encoding="utf-8")
        assert check_note(text) == []
        return text

    def type(self, name: str, old: str, new: str) -> None:
        """A person changes a note in place, as the app writes."""
        path = self.root / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        assert old in text
        with open(path, "r+", encoding="utf-8", newline="") as file:
            file.truncate(0)
            file.write(text.replace(old, new, 1))
        os.utime(path, (1, 1))


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this host's id is kept during a test."""
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state-home"))


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    """An empty bus folder in a vault."""
    root = tmp_path / "My Vault" / "09_AgentSync"
    root.mkdir(parents=True)
    found = Vault(root)
    yield found
    found.bus.close()
