"""What every test may use."""

import os
import sys

import pytest

# The suite starts some hundred processes of the package: where Python is told to keep no bytecode, each of them would
# compile all of it anew, which doubles the time that a process takes to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# No test cuts the power, and every new bus folder is synced some twenty times. The processes that tests start do sync.
setattr(os, "fsync", lambda handle: None)  # noqa: B010


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, the loop of our faces."""
    return "asyncio"
