"""A process of the tests that answers lines of JSON: it forks, so that what is tried in it may be killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tools.desk import CHECKOUT


@contextmanager
def started(module: str, state_home: Path, **options: Any) -> "Iterator[subprocess.Popen[str]]":
    """The process of a module, with its host's id in a folder of the tests; it ends with the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_BUS_STATE_HOME", str(state_home))
        process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT,
            **options,
        )  # fmt: skip
    with process:
        yield process
        assert process.stdin
        process.stdin.close()
        process.wait(timeout=10)


def ask(process: "subprocess.Popen[str]", *words: str) -> Any:
    """What it answers."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(words) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())
