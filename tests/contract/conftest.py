"""One store of each engine, and a second handle on the same documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bus.store.port import Store
from tests.contract.engines import ENGINES


@pytest.fixture(params=list(ENGINES))
def handles(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two handles on one set of documents."""
    with ENGINES[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
def store(handles: tuple[Store, Store]) -> Store:
    """The handle under test."""
    return handles[0]


@pytest.fixture
def peer(handles: tuple[Store, Store]) -> Store:
    """Somebody else's handle."""
    return handles[1]
