"""What the doctor says of the bus folder, and of what lies under it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agent_bus.doctor import Finding, root, sync
from agent_bus.faces.cli_doctor import words
from agent_bus.settings import Settings
from agent_bus.texts import Texts
from tests.doctor.conftest import House, Look, bad


def cases(findings: list[Finding]) -> list[tuple[str, str, str]]:
    assert all("\n".join(words(Texts(language), f)) for f in findings for language in ("en", "ja"))
    return [(id, level, case) for id, level, case, _ in bad(findings)]


def test_a_whole_bus_is_well_and_stays_as_it_is(house: House, look: Look) -> None:
    before = sorted(house.layout.root.rglob("*"))
    ground = look("codex")
    found = [*root.look(ground), *sync.look(ground), *root.stop(ground)]
    assert cases([f for f in found if f.case != "git"]) == []
    assert [f.id for f in found if f.level == "ok"][:4] == ["root.exists", "root.format", "root.owner", "root.write"]
    assert sorted(house.layout.root.rglob("*")) == before


def test_a_bus_that_is_not_named_not_there_not_made_or_not_whole_is_named_and_nothing_is_made(
    house: House, look: Look
) -> None:
    (house.layout.root / "inbox").rmdir()
    assert cases(list(root.look(look()))) == [("root.exists", "fail", "incomplete")]
    assert not (house.layout.root / "inbox").exists()
    for settings, case in (
        (Settings(), "unnamed"),
        (Settings(root=str(house.folder / "gone")), "gone"),
        (Settings(root=str(house.folder / "home")), "unmade"),
    ):
        house.settings = settings
        ground = look()
        assert ground.bus is None
        assert cases(list(root.look(ground))) == [("root.exists", "fail", case)]
    assert os.listdir(house.folder / "home") == []


def test_without_a_named_bus_the_one_that_all_clients_have_is_looked_at(house: House, look: Look) -> None:
    for name in ("codex", "cursor"):
        house.install(name)
    root_of_all, house.settings = house.settings.root, Settings()
    assert look().settings.root == root_of_all
    house.install("gemini", args=["mcp", "--root", str(house.folder), "--agent", "gemini"])
    assert look().layout is None


def test_a_newer_format_a_broken_one_and_another_owner_are_named(house: House, look: Look) -> None:
    file = house.layout.format_file
    whole = json.loads(file.read_text())
    file.write_text(json.dumps(whole | {"schema": 99}))
    assert cases(list(root.look(look()))) == [("root.format", "fail", "unreadable")]
    file.write_text("{")
    assert cases(list(root.look(look()))) == [("root.format", "fail", "unreadable")]
    file.write_text(json.dumps(whole | {"owner": {"host": "h-1", "name": "desk", "boot": "another"}}))
    (found,) = [f for f in root.look(look()) if f.case]
    assert (found.id, found.level) == ("root.owner", "warn")
    assert "desk" in words(Texts("en"), found)[0]
    file.write_text(json.dumps({key: value for key, value in whole.items() if key != "owner"}))
    assert cases(list(root.look(look()))) == []


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom modes stop")
def test_a_folder_that_cannot_be_written_is_named(house: House, look: Look) -> None:
    (house.layout.state / "tmp").chmod(0o500)
    assert ("root.write", "fail", "refused") in cases(list(root.look(look())))


def test_a_refused_write_is_named_with_its_reason(house: House, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str, data: bytes, durable: bool) -> None:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("agent_bus.doctor.root.atomic.write_temp", refuse)
    (found,) = [f for f in root.look(look()) if f.case]
    assert (found.id, found.level) == ("root.write", "fail")
    assert "Permission denied" in words(Texts("en"), found)[0]


@pytest.mark.parametrize(("mib", "level"), [(2048, "ok"), (512, "warn"), (100, "fail")])
def test_little_room_is_a_warning_and_very_little_a_fail(
    house: House, look: Look, monkeypatch: pytest.MonkeyPatch, mib: int, level: str
) -> None:
    monkeypatch.setattr("agent_bus.store.layout.Layout.free_bytes", lambda self: mib * 1024 * 1024)
    (found,) = [f for f in root.look(look()) if f.id == "disk"]
    assert found.level == level


@pytest.mark.parametrize(
    ("place", "mark", "service"),
    [
        ("Dropbox (Team)/vault", "", "Dropbox"),
        ("OneDrive - Company/vault", "", "OneDrive"),
        ("Library/Mobile Documents/iCloud~md~obsidian/Documents/vault", "", "iCloud"),
        ("Library/CloudStorage/GoogleDrive-a@b.c/My Drive/vault", "", "Google Drive"),
        ("Nextcloud/vault", "", "Nextcloud"),
        ("notes/vault", "notes/.stfolder", "Syncthing"),
        ("notes/vault", "notes/.sync_0123456789ab.db", "Nextcloud"),
        ("OneDriver/dropboxes/vault", "", ""),
    ],
)
def test_a_folder_of_a_synchronising_service_is_known_by_its_name_or_its_marks(
    tmp_path: Path, place: str, mark: str, service: str
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    if mark:
        (tmp_path / mark).mkdir()
    assert sync.service_of(folder) == service


def test_conflict_copies_a_repository_a_network_and_a_lock_that_does_not_hold_are_named(
    house: House, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = house.layout.root / "inbox" / "codex"
    inbox.mkdir()
    for name in ("t-1.sync-conflict-20261201-120000-ABCDEFG.json", "t-1 (conflicted copy).json", "t-1-DESKTOP-X1.json"):
        (inbox / name).write_text("{}")
    (inbox / "t-20261201-120000-001.json").write_text("{}")
    (house.layout.root.parent / ".git").mkdir()
    monkeypatch.setattr(sync, "file_system", lambda folder: "nfs4")
    monkeypatch.setattr("agent_bus.store.locks.try_lock", lambda file: True)
    found = list(sync.look(look()))
    assert cases(found) == [
        ("root.sync", "info", "git"),
        ("root.sync", "warn", "conflicts"),
        ("root.sync", "warn", "network"),
        ("root.sync", "fail", "unlocked"),
    ]
    assert next(f for f in found if f.case == "conflicts").values["count"] == 3


def test_a_lock_test_that_cannot_be_made_is_a_fail_too(
    house: House, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "our_program", lambda module: (sys.executable, "-c", "raise SystemExit(3)"))
    assert ("root.sync", "fail", "stuck") in cases(list(sync.look(look())))
    assert sync.file_system(Path("/")) or sys.platform == "win32"
