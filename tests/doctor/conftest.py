"""A home, a bus and clients' files of a test's own; servers that behave badly are scripts called agent-bus."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_bus import host
from agent_bus.clients import TOML, Home, Server, documents, registry
from agent_bus.clients.hunks import apply
from agent_bus.clients.installation import Installation
from agent_bus.doctor import Finding
from agent_bus.doctor.ground import Ground, prepare
from agent_bus.settings import Settings
from agent_bus.store.layout import Layout
from tests.docs import checkout

OURS = f"""
import sys
sys.path.insert(0, {str(checkout.PACKAGE.parent)!r})
from agent_bus.faces.cli import main
sys.exit(main())
"""


@dataclass
class House:
    """One machine as a test sees it."""

    folder: Path
    settings: Settings = field(default_factory=Settings)
    project: Path | None = None

    @property
    def home(self) -> Home:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), "LANG": "C.UTF-8"}
        return Home(self.folder / "home", environ | {"MARK": "1", "MY_TOKEN": "x"}, "linux")

    @property
    def layout(self) -> Layout:
        return Layout.of(Path(self.settings.root))

    @property
    def installation(self) -> Installation:
        """As if the checkout's environment were where people install: the temp folder is another one here."""
        return Installation(self.folder / "planted" / "ours" / "agent-bus", Path(sys.prefix))

    def path(self, client: str) -> Path:
        found = registry.load(client).path("user", self.home, None)
        assert found is not None
        return found

    def entry(self, client: str, /, agent: str = "", **keys: Any) -> dict[str, Any]:
        """The entry as install writes it, with what a test wants otherwise."""
        words = ("mcp", "--root", str(self.layout.root), "--agent", agent or client)
        one = registry.load(client)
        made = one.entry(Server(str(self.installation.program), words), one.servers) | keys
        return {key: value for key, value in made.items() if value != ABSENT}

    def install(self, client: str, /, key: str = "bus", path: Path | None = None, **how: Any) -> Path:
        """Writes a file of a client that holds our entry alone."""
        one, entry, path = registry.load(client), self.entry(client, **how), path or self.path(client)
        text = json.dumps(nest([*one.servers, key], entry), indent=2)
        if one.format == TOML:
            text = apply("", documents.set_members("", TOML, (*one.servers, key), entry))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def plant(self, name: str, code: str) -> str:
        """A program of our name that does something else; its path."""
        path = self.folder / "planted" / name / "agent-bus"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


def nest(keys: list[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


ABSENT = "absent"
Look = Callable[..., Ground]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    for name in [name for name in os.environ if name.startswith("AGENT_BUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    host.host_id()
    (tmp_path / "home").mkdir()
    root = tmp_path / "My Vault & 'q' 日本語" / "bus"
    root.mkdir(parents=True)
    Layout.of(root).make(datetime.now(UTC))
    made = House(tmp_path, Settings(root=str(root)))
    made.plant("ours", OURS)
    return made


@pytest.fixture
def look(house: House) -> Iterator[Look]:
    """`look("codex", …)`: the ground with these clients, or with all."""
    open_ones = []

    def make(*names: str, patience_s: float = 5.0) -> Ground:
        clients = [registry.load(name) for name in names] or list(registry.known().values())
        kept = prepare(house.settings, house.home, house.project, clients, bool(names))
        open_ones.append(kept)
        ground = kept.__enter__()
        nowhere = house.folder / "temp"
        return replace(ground, installation=house.installation, patience_s=patience_s, temp=nowhere)

    yield make
    for one in open_ones:
        one.__exit__(None, None, None)


def bad(findings: Iterator[Finding] | list[Finding]) -> list[tuple[str, str, str, str]]:
    """What is not well: id, level, case, client."""
    return [(f.id, f.level, f.case, f.client) for f in findings if f.level != "ok"]
