"""A home folder of its own, a bus, and the command line in this process."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_bus.clients import installation
from agent_bus.clients.installation import Installation
from agent_bus.faces import cli_install_run
from agent_bus.faces.cli import main

ROOT = 'vault & "co" 日本/09_AgentSync'


@dataclass
class Desk:
    """What a user has."""

    home: Path
    root: Path
    program: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> tuple[int, str]:
        """The command line; its exit code, and stdout with stderr."""
        self.capsys.readouterr()
        code = main([*words, "--root", str(self.root)])
        out = self.capsys.readouterr()
        return code, out.out + out.err

    def json(self, *words: str) -> dict[str, Any]:
        """The command line with --json; its object."""
        _, out = self.run(*words, "--json")
        found: dict[str, Any] = json.loads(out.splitlines()[0])
        return found

    def whats(self, *words: str) -> list[str]:
        """What became of each file."""
        return [file["what"] for file in self.json(*words)["files"]]

    def file(self, path: str, data: bytes | str = b"") -> Path:
        """A file below home."""
        found = self.home / path
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_bytes(data.encode() if isinstance(data, str) else data)
        return found

    def everything(self) -> dict[str, bytes]:
        """Every file below home, by its path there."""
        found = [path for path in self.home.rglob("*") if path.is_file()]
        return {path.relative_to(self.home).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """An empty home; the program lies where it stays; hot files are looked at again without a pause."""
    home, program = tmp_path / "home dir", tmp_path / "installed" / "bin" / "agent-bus"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "KIMI_CODE_HOME", "XDG_CONFIG_HOME", "AGENT_BUS_CONFIG", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    monkeypatch.setattr(installation, "this_installation", lambda: Installation(program, program.parents[1]))
    monkeypatch.setattr(cli_install_run, "this_installation", lambda: Installation(program, program.parents[1]))
    monkeypatch.setattr(cli_install_run, "PAUSE", lambda seconds: None)
    monkeypatch.chdir(tmp_path)
    found = Desk(home, tmp_path / ROOT, program, capsys)
    assert found.run("init", "-p", str(found.root))[0] == 0
    return found
