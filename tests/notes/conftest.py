"""A vault of a test's own, and the command line in this process."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_bus.faces.cli import main

Cli = Callable[..., Any]


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a space in its path."""
    for name in [name for name in os.environ if name.startswith("AGENT_BUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    folder = tmp_path / "My Vault"
    folder.mkdir()
    return folder


@pytest.fixture
def cli(vault: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """`cli("vault", "install", path)`: the JSON that it printed; `code` is the exit code that is expected."""

    def run(*words: str | Path, code: int = 0) -> Any:
        got = main(["--json", *map(str, words)])
        printed = capsys.readouterr()
        assert got == code, printed
        return json.loads(printed.out)

    return run


def tree(folder: Path) -> dict[str, str]:
    """Each file of a folder with its hash, and each empty folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }
