"""A bus folder on disk, and this host's id out of the user's way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bus.store.files import FileStore
from tests.contract.engines import make_folder
from tests.store.pool import gate, pool  # noqa: F401 (fixtures)


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the host id is kept during a test."""
    home = tmp_path_factory.getbasetemp() / "state-home"
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(home))
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty bus folder."""
    return make_folder(tmp_path / "bus")


@pytest.fixture
def store(root: Path) -> Iterator[FileStore]:
    """A store over it, without fsync."""
    opened = FileStore(root, durable=False)
    yield opened
    opened.close()
