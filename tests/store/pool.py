"""Eight processes for the tests of a module, started once."""

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from typing import Any

import pytest

from tests.store.workers import PROCESSES

Start = Callable[..., "AsyncResult[Any]"]


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Processes that share nothing with this one."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as processes:
        yield processes
        processes.close()
        processes.join()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A folder by which processes wait for one another."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


def run_all(pool: Pool, act: Callable[..., Any], *args: Any) -> list[Any]:
    """Runs a function in eight processes at once; the third argument is who it is."""
    root, gate, *rest = args
    results = [pool.apply_async(act, (root, gate, me, *rest)) for me in range(PROCESSES)]
    return [result.get(timeout=50) for result in results]
