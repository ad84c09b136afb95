"""`agent-bus quarantine` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bus.faces import cli_session
from tests.notes.conftest import Cli


def test_people_see_what_lies_in_quarantine_and_throw_it_away(
    vault: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = vault / "bus"
    cli("init", bus)
    kept = bus / ".bus" / "quarantine" / "20260307-120000-abcdef-t-20260307-110000-001.json"
    kept.write_bytes(b"<<<<<<< \x1b[31mours")
    kept.with_suffix(".reason").write_text(
        '{"from": "inbox/coder/t-20260307-110000-001", "reason": "no JSON", "at": ""}'
    )
    [one] = cli("quarantine", "list", "--root", bus)["files"]
    assert (one["id"], one["from"]) == ("20260307-120000-abcdef", "inbox/coder/t-20260307-110000-001")
    assert cli("quarantine", "show", "20260307", "--root", bus)["text"].startswith("<<<<<<<")
    assert cli("quarantine", "drop", one["id"], "--root", bus, code=1)["error"]["code"] == "refused"
    monkeypatch.setattr(cli_session, "why_no_person", lambda: "")
    monkeypatch.setattr(cli_session, "why_below_a_run", lambda: "")
    assert cli("quarantine", "restore", one["id"], "--root", bus, code=1)["error"]["code"] == "corrupt"
    assert cli("quarantine", "drop", one["id"], "--root", bus)["done"] == "drop"
    assert cli("quarantine", "list", "--root", bus)["files"] == []
    assert cli("quarantine", "drop", one["id"], "--root", bus, code=1)["error"]["code"] == "not_found"
