"""The bus folder: made, adopted, recognised, owned."""

import json
import os
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import pytest

from agent_bus import host
from agent_bus.errors import BusError
from agent_bus.store import claim
from agent_bus.store.format import FORMAT, place_hash
from agent_bus.store.layout import FOLDERS, STATE_FOLDERS, Layout
from tests.store import workers
from tests.store.pool import run_all
from tests.store.workers import NOON


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A bus folder that is not made yet."""
    (tmp_path / "new").mkdir()
    return Layout.of(tmp_path / "new")


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*") if p.is_file()}


def write_format(layout: Layout, content: object) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    layout.format_file.write_bytes(data)


def test_an_empty_folder_becomes_a_bus_of_this_host(layout: Layout) -> None:
    layout.check()
    layout.make(NOON)
    assert all((layout.root / name).is_dir() for name in FOLDERS)
    assert all((layout.state / name).is_dir() for name in STATE_FOLDERS)
    assert layout.archive.is_dir()
    found = layout.read_format()
    assert found["schema"] == FORMAT
    assert found["owner"]["host"] == host.host_id()
    assert found["created_at"] == "2026-03-07T12:00:00.000Z"
    assert (layout.state / "stop.reserve").stat().st_size > 1000
    assert list((layout.state / "tmp").iterdir()) == []
    layout.check()
    layout.check_owner()
    assert layout.free_bytes() > 0


def test_making_it_twice_changes_no_byte(layout: Layout) -> None:
    layout.make(NOON)
    before = snapshot(layout.root)
    layout.make(NOON)
    assert snapshot(layout.root) == before


def test_a_folder_made_by_the_seed_keeps_every_byte(layout: Layout) -> None:
    for name, data in (
        ("inbox/coder/t-20260307-101500-001.json", b'\xef\xbb\xbf{\r\n"task_id": "t-20260307-101500-001"}'),
        ("status/coder.json", b"{}"),
        ("shared_context/plan.json", b"[1]"),
        ("agent_bus.log", b"line\r\n"),
    ):
        path = layout.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    before = snapshot(layout.root)
    layout.check()
    layout.make(NOON)
    after = snapshot(layout.root)
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {".bus"}


def test_eight_processes_make_one_bus(pool: Pool, layout: Layout, gate: Path) -> None:
    formats = run_all(pool, workers.make_layout, layout.root, gate)
    assert all(found == layout.read_format() for found in formats)
    assert list((layout.state / "tmp").iterdir()) == []


def test_a_folder_of_something_else_is_refused_and_a_missing_one_not_found(layout: Layout, tmp_path: Path) -> None:
    (layout.root / "thesis.docx").write_bytes(b"")
    with pytest.raises(BusError) as error:
        layout.check()
    assert error.value.code == "refused"
    assert "agent-bus init" in error.value.hint
    with pytest.raises(BusError) as error:
        Layout.of(tmp_path / "missing").check()
    assert error.value.code == "not_found"


def test_no_reserve_is_made_while_a_stop_stands(layout: Layout) -> None:
    layout.make(NOON)
    (layout.state / "stop.reserve").rename(layout.stop_file)
    layout.make(NOON)
    assert not (layout.state / "stop.reserve").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        {"schema": "1"},
        {"schema": 1, "owner": "me"},
        {"owner": {"host": 5}},
        {"former_owners": 1},
    ],
)
def test_a_format_that_cannot_be_read_is_corrupt_and_a_takeover_mends_it(layout: Layout, content: object) -> None:
    layout.make(NOON)
    write_format(layout, content)
    data = layout.format_file.read_bytes()
    for act in (layout.read_format, layout.check_owner):
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "corrupt"
    layout.take_over(NOON)
    layout.check_owner()
    assert [path.read_bytes() for path in (layout.state / "quarantine").iterdir()] == [data]


def test_a_newer_format_is_refused_by_all_and_not_taken_over(layout: Layout) -> None:
    layout.make(NOON)
    newer: dict[str, Any] = {**layout.read_format(), "schema": FORMAT + 1, "new": True}
    write_format(layout, newer)
    for act in (layout.read_format, layout.check_owner, lambda: layout.take_over(NOON)):
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "refused"
    assert json.loads(layout.format_file.read_bytes()) == newer


def test_a_foreign_host_is_refused_by_name_until_it_takes_over(layout: Layout) -> None:
    layout.make(NOON)
    mine = layout.read_format()
    foreign = {"host": "h-0123456789abcdef", "name": "desk"}
    write_format(layout, {**mine, "owner": foreign})
    with pytest.raises(BusError) as error:
        layout.check_owner()
    assert error.value.code == "refused"
    assert "desk" in error.value.message
    assert "takeover" in error.value.hint
    fresh = layout.take_over(NOON)
    assert fresh == layout.read_format()
    assert fresh["former_owners"] == [foreign]
    assert fresh["bus_id"] == mine["bus_id"]
    layout.check_owner()


def test_the_owner_is_known_by_its_kernels_boot_and_notes_each_new_one(layout: Layout) -> None:
    layout.make(NOON)
    made = layout.read_format()
    write_format(layout, {**made, "owner": {**made["owner"], "boot": "an older one"}, "mine": 1})
    layout.check_owner()
    assert layout.read_format() == {**made, "mine": 1}
    write_format(layout, {**made, "owner": {"host": "h-another-home", "boot": host.boot_id()}})
    layout.check_owner()


def test_a_boot_that_cannot_be_noted_stops_nobody(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.make(NOON)
    made = layout.read_format()
    write_format(layout, {**made, "owner": {**made["owner"], "boot": "an older one"}})

    def write(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "write", write)
    layout.check_owner()


def test_a_format_without_an_owner_lets_every_host_write(layout: Layout) -> None:
    layout.make(NOON)
    write_format(layout, {"schema": 1})
    layout.check_owner()


def test_state_and_archive_go_where_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    layout = Layout.of(tmp_path / "bus", str(tmp_path / "state"), str(tmp_path / "old"))
    layout.make(NOON)
    assert layout.format_file == tmp_path / "bus" / ".bus" / "format.json"
    assert (tmp_path / "old").is_dir()
    assert [p.name for p in (tmp_path / "bus" / ".bus").iterdir()] == ["format.json"]


@pytest.mark.req("vault:8")
def test_a_second_program_of_this_host_with_another_state_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    first = Layout.of(tmp_path / "bus", str(tmp_path / "a"))
    first.make(NOON)
    first.check()
    before = snapshot(tmp_path)
    for other in (str(tmp_path / "b"), "", "auto"):
        second = Layout.of(tmp_path / "bus", other)
        for act in (second.check, second.check_owner):
            with pytest.raises(BusError) as error:
                act()
            assert error.value.code == "invalid"
            assert place_hash(tmp_path / "a") in error.value.message
            assert place_hash(second.state) in error.value.message
    assert snapshot(tmp_path) == before
    first.check_owner()


def test_a_host_that_never_wrote_may_choose_its_own_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bus").mkdir()
    Layout.of(tmp_path / "bus").make(NOON)
    monkeypatch.setattr(host, "host_id", lambda: "h-0123456789abcdef")
    monkeypatch.setattr(host, "boot_id", lambda: "another")
    Layout.of(tmp_path / "bus", str(tmp_path / "b")).check()


def test_a_bus_of_an_older_program_with_its_state_elsewhere_keeps_its_identity_and_shuts_that_program_out(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    (tmp_path / "bus" / "inbox").mkdir(parents=True)
    state.mkdir()
    old = {"schema": 1, "bus_id": "b-1", "created_at": "2026-01-01T00:00:00.000Z"}
    (state / "format.json").write_text(json.dumps(old))
    layout = Layout.of(tmp_path / "bus", str(state))
    layout.check()
    layout.make(NOON)
    assert layout.read_format()["bus_id"] == "b-1"
    assert json.loads((state / "format.json").read_bytes())["schema"] > FORMAT
    layout.check_owner()


def test_state_auto_is_a_folder_of_the_users_for_each_bus(tmp_path: Path) -> None:
    one, two = (Layout.of(tmp_path / name, "auto") for name in ("one", "two"))
    assert one.state.parent == two.state.parent == host.state_folder()
    assert one.state != two.state


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (b"---\nab_host: desk-1a2b3c4d\nab_epoch: 3\n---\n", claim.Claim("desk-1a2b3c4d", 3)),
        (b'\xef\xbb\xbf---\r\nab_host: "desk-1a2b3c4d"\r\nab_epoch: 3\r\n---\r\n', claim.Claim("desk-1a2b3c4d", 3)),
        (b'---\nab_host: ""\nab_epoch: 0\n---\n', None),
        (b"---\nab_host: desk-1a2b3c4d\nab_epoch: 3\n", None),
        (b"---\nab_epoch: 3\n---\nab_host: x\n", None),
        (b"", None),
    ],
)
def test_the_dashboard_names_an_owner_only_whole(note: bytes, said: claim.Claim | None) -> None:
    assert claim.parse(note) == said
