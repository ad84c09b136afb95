"""Rooms under many processes, and under kills."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.desk import CHECKOUT


@pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")
@pytest.mark.req("rooms:21")
def test_processes_that_speak_at_once_or_die_lose_nothing(tmp_path: Path) -> None:
    """Eight of them; then one that is killed before every write of a private message and sends it again."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.rooms.forks", str(tmp_path)],
        cwd=CHECKOUT, env=os.environ | {"AGENT_BUS_STATE_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["crowd"]["numbers"] == list(range(1, 8 * 13 + 1))
    assert found["crowd"]["said"] == sorted(f"{p}-{n}" for p in range(8) for n in range(12))
    assert (found["crowd"]["told"], found["crowd"]["started"]) == (96, 1)
    assert (found["torn"]["wrong"], found["torn"]["points"] > 8) == ([], True)
