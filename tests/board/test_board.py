"""The board: what is written stands, in every version, for everybody; and projects that share one."""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from pydantic_core import to_json

from agent_bus import commands
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.doctor.schemas import faults
from agent_bus.domain import board
from agent_bus.faces.cli import cli
from agent_bus.faces.mcp import describe
from agent_bus.faces.toolbox import offered
from agent_bus.operations import boards
from agent_bus.settings import Settings
from agent_bus.times import parse_stamp, stamp
from tests.board.conftest import Judge
from tests.tools.desk import Desk, Server, refused

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")


def history(desk: Desk, folder: str, key: str) -> list[dict[str, Any]]:
    """The kept versions of a key, oldest first."""
    return [d.value for d in desk.bus.store.list(f"{folder}/history/{board.file_name(key)}")]


@pytest.mark.req("board:1")
def test_what_one_process_writes_another_reads_and_lists(live: Bus, server: Callable[..., Server], folder: str) -> None:
    other = server()
    made = Desk(live).moa_board_write("k", "v", workspace=folder, author="ann", tags=["x", "y"])
    (entry,) = other.moa_board_read(key="k", workspace=folder)["entries"]
    assert (entry["value"], entry["author"], entry["tags"]) == ("v", "ann", ["x", "y"])
    assert (entry["version"], entry["ts"]) == (1, made["ts"])
    (row,) = other.moa_board_list(workspace=folder)["entries"]
    assert (row["key"], row["bytes"], row["version"]) == ("k", 1, 1)
    assert "value" not in row


@pytest.mark.req("board:2")
def test_values_and_keys_over_their_limits_are_refused_with_both_numbers(desk: Desk) -> None:
    write = partial(desk.moa_board_write, scope="global")
    assert write("k", "é" * 49_152)["version"] == 1
    with refused("too_large", "98305", "98304"):
        write("k", "é" * 49_152 + "x")
    assert write("ä" * 256, "v")["version"] == 1
    with refused("too_large", "513", "512"):
        write("ä" * 256 + "x", "v")
    with refused("invalid", "512"):
        write("", "v")
    assert desk.moa_board_list(scope="global")["total"] == 2


@pytest.mark.req("board:3")
def test_two_writes_in_one_millisecond_are_two_versions_in_order(desk: Desk) -> None:
    first = desk.moa_board_write("k", "a", scope="global")
    second = desk.moa_board_write("k", "b", scope="global")
    assert (first["version"], second["version"]) == (1, 2)
    assert second["ts"] > first["ts"]
    assert desk.moa_board_read("k", scope="global")["entries"][0]["value"] == "b"
    assert [v["value"] for v in history(desk, ".bus/board/global", "k")] == ["a"]


@pytest.mark.req("board:4")
def test_a_wait_wakes_for_a_newer_version_and_for_no_delete(
    live: Bus, server: Callable[..., Server], folder: str
) -> None:
    desk, other = Desk(live), server()
    old = desk.moa_board_write("k", "a", workspace=folder)
    assert desk.moa_board_wait("k", workspace=folder)["entry"]["value"] == "a"
    silent = {"timeoutMs": 20, "workspace": folder}
    timeout = {"status": "timeout", "retry": True, "entry": {}}
    assert desk.moa_board_wait("k", since=old["ts"], **silent) == {**timeout, "cursor": ""}
    assert desk.moa_board_wait("k", cursor="1", **silent) == {**timeout, "cursor": "1"}
    desk.moa_board_delete("k", workspace=folder)
    assert desk.moa_board_wait("k", since=old["ts"], **silent)["status"] == "timeout"
    command = commands.find("moa_board_wait")
    given = {"key": "k", "since": old["ts"], "workspace": folder, "timeoutMs": 20_000}
    found: list[Any] = []

    async def waits() -> None:
        async with anyio.create_task_group() as around:

            async def wait() -> None:
                found.append(await commands.run(live, command, given))

            around.start_soon(wait)
            with live.watch.listen() as ear:
                while len(live.watch._wakes) < 2:  # until the wait listens as well
                    await ear.wait(0.01)
            args = {"key": "k", "value": "b", "workspace": folder}
            await anyio.to_thread.run_sync(lambda: other.moa_board_write(**args))

    anyio.run(waits)
    assert (found[0].status, found[0].entry["value"], found[0].cursor) == ("ready", "b", "3")


@pytest.mark.req("board:4")
@pytest.mark.parametrize("given", [{"timeoutMs": 0}, {"timeoutMs": -5}, {"timeoutMs": "x"}, {"since": "yesterday"}])
def test_a_wait_with_a_bad_time_is_refused(desk: Desk, given: dict[str, Any]) -> None:
    with refused("invalid", next(iter(given))):
        desk.moa_board_wait("k", scope="global", **given)


@pytest.mark.req("board:5")
def test_a_bad_scope_and_a_relative_workspace_are_refused_each_in_its_own_words(desk: Desk) -> None:
    with refused("invalid", "unknown", "global"):
        desk.moa_board_write("k", "v", scope="foo")
    with refused("invalid", "needs an id"):
        desk.moa_board_write("k", "v", scope="task:")
    with refused("invalid", "absolute"):
        desk.moa_board_write("k", "v", workspace="rel/path")
    with refused("not_found", "p_0123456789ab"):
        desk.moa_board_write("k", "v", scope="project:p_0123456789ab")
    with refused("not_found", "ws_0123456789abcdef"):
        desk.moa_board_read(workspace="ws_0123456789abcdef")


@pytest.mark.req("board:6")
def test_without_a_workspace_the_servers_own_folder_is_never_used(
    make: Callable[..., Bus], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with refused("invalid", "workspace", "absolute path"):
        Desk(make()).moa_board_write("k", "v")
    assert Desk(make(workspace=folder)).moa_board_write("k", "v")["scope"].startswith("ws_")


@pytest.mark.req("board:7")
def test_an_entry_of_a_far_year_does_not_push_time_forward(desk: Desk, clock: ManualClock) -> None:
    desk.moa_board_write("k", "a", scope="global")
    desk.edit(f".bus/board/global/entries/{board.file_name('k')}", ts="2099-01-01T00:00:00.000Z")
    for key in ("k", "other"):
        made = desk.moa_board_write(key, "b", scope="global")
        assert abs(parse_stamp(made["ts"]) - clock.now()) <= timedelta(seconds=1)
    assert {e["key"]: e["value"] for e in desk.moa_board_read(scope="global")["entries"]} == {"k": "b", "other": "b"}


@pytest.mark.req("board:8")
def test_the_pages_of_a_list_give_each_key_once_newest_first(bus: Bus, clock: ManualClock) -> None:
    desk = Desk(bus)
    for n in range(300):
        clock.advance(0.001 * (n % 3))  # some of one time
        entry = board.next_version(None, f"key/{n:04}/{'x' * 30}", bus.now(), "ann", "v" * n, ["t"])
        bus.store.create(f".bus/board/global/entries/{board.file_name(entry['key'])}", entry, durable=False)
    rows: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = desk.moa_board_list(scope="global", cursor=cursor)
        assert len(to_json(page)) < 8000
        assert page["total"] == 300
        rows += page["entries"]
        if not (cursor := page["cursor"]):
            break
    assert len({r["key"] for r in rows}) == len(rows) == 300
    assert [r["ts"] for r in rows] == sorted((r["ts"] for r in rows), reverse=True)
    assert len(desk.moa_board_list(scope="global", prefix="key/000", limit=4)["entries"]) == 4
    with refused("invalid", "cursor"):
        desk.moa_board_list(scope="global", cursor="nonsense")


@pytest.mark.req("board:9")
def test_a_long_value_is_read_in_parts_and_pages_of_values_stay_small(desk: Desk) -> None:
    text = "".join(f"{n:05}\n" for n in range(6000))
    desk.moa_board_write("long", text, scope="global", tags=["t" * 64] * 1)
    for n in range(9):
        desk.moa_board_write(f"k{n}", text, scope="global")
    offset, parts = 0, []
    while True:
        answer = desk.moa_board_read("long", scope="global", offset=offset)
        assert len(to_json(answer)) < 8000
        (entry,) = answer["entries"]
        parts.append(entry["value"])
        if not (offset := entry.get("cut", 0)):
            break
    assert "".join(parts) == text
    keys: list[str] = []
    cursor = ""
    while True:
        page = desk.moa_board_read(scope="global", cursor=cursor)
        assert len(to_json(page)) < 8000
        keys += [e["key"] for e in page["entries"]]
        if not (cursor := page["cursor"]):
            break
    assert sorted(keys) == sorted(["long", *(f"k{n}" for n in range(9))])
    assert [e["key"] for e in desk.moa_board_read(tag="t" * 64, scope="global")["entries"]] == ["long"]
    with refused("invalid", "offset"):
        desk.moa_board_read("long", scope="global", offset=len(text))


@pytest.mark.req("board:10")
@pytest.mark.parametrize(
    ("key", "tool"),
    [("tips/x", "moa_tip_create"), ("handoff/x", "moa_handoff_send"), ("tower/x", "tower"), ("@a", "@")],
)
def test_keys_of_typed_records_are_refused_with_the_right_tool(desk: Desk, key: str, tool: str) -> None:
    with refused("refused", tool):
        desk.moa_board_write(key, "v", scope="global")
    with refused("refused", tool):
        desk.moa_board_delete(key, scope="global")


@pytest.mark.req("board:11")
def test_a_write_that_expects_another_version_changes_nothing(desk: Desk) -> None:
    for value in "abc":
        desk.moa_board_write("k", value, scope="global")
    with refused("conflict", "version 3"):
        desk.moa_board_write("k", "d", scope="global", expected_version=2)
    with refused("conflict", "exists"):
        desk.moa_board_write("k", "d", scope="global", only_if_new=True)
    with refused("conflict", "does not exist"):
        desk.moa_board_write("new", "d", scope="global", expected_version=1)
    assert desk.moa_board_read("k", scope="global")["entries"][0]["value"] == "c"
    assert desk.moa_board_write("k", "d", scope="global", expected_version=3)["version"] == 4


@pytest.mark.req("board:12")
def test_a_deleted_key_is_gone_from_lists_and_goes_on_counting(desk: Desk) -> None:
    desk.moa_board_write("k", "v", scope="global", tags=["t"])
    assert desk.moa_board_delete("k", scope="global", author="bob")["existed"]
    assert desk.moa_board_delete("k", scope="global") == {"ok": True, "ts": "", "existed": False}
    assert not desk.moa_board_delete("never", scope="global")["existed"]
    assert desk.moa_board_read("k", scope="global")["entries"] == []
    assert desk.moa_board_list(scope="global")["total"] == 0
    assert desk.moa_board_write("k", "w", scope="global", only_if_new=True)["version"] == 3
    kept = history(desk, ".bus/board/global", "k")
    assert [(v["value"], v["deleted"], v["author"]) for v in kept] == [("v", False, "anonymous"), ("", True, "bob")]


@pytest.mark.req("board:13")
def test_a_workspace_is_one_by_whatever_path_it_is_named(live: Bus, tmp_path: Path, folder: str) -> None:
    desk, link = Desk(live), tmp_path / "link"
    try:
        os.symlink(folder, link)
    except OSError:
        pytest.skip("no right to make links here")
    made = desk.moa_board_write("k", "v", workspace=str(link))
    for name in (folder, f"{folder}{os.sep}..{os.sep}my shop{os.sep}", made["scope"]):
        assert desk.moa_board_read("k", workspace=name)["entries"][0]["value"] == "v"
    (known,) = desk.moa_projects_list()["workspaces"]
    assert known == {"id": made["scope"], "cwd": os.path.realpath(folder), "name": "my shop"}


@pytest.mark.req("board:14")
def test_a_workspace_goes_to_a_project_with_all_its_entries_and_back(desk: Desk, folder: str, tmp_path: Path) -> None:
    for n in range(20):
        desk.moa_board_write(f"k{n}", "old", workspace=folder)
        desk.moa_board_write(f"k{n}", str(n), workspace=folder)
    one, two = (desk.project_create(name)["projectId"] for name in ("Web shop", "Other"))
    assert desk.project_migrate(folder, one)["moved"] == 20
    assert desk.project_migrate(folder, one)["moved"] == 0
    with refused("conflict", one, two):
        desk.project_migrate(folder, two)
    by_path = desk.moa_board_read(workspace=folder)
    assert by_path == desk.moa_board_read(scope=f"project:{one}")
    assert [v["value"] for v in history(desk, f".bus/board/{one}", "k3")] == ["old"]
    desk.moa_board_write("k3", "new", workspace=folder)
    (shown,) = [p for p in desk.moa_projects_list()["projects"] if p["projectId"] == one]
    assert shown["name"] == "Web shop"
    assert shown["cwds"] == [os.path.realpath(folder)]
    assert desk.project_detach(folder)["workspaces"] == shown["aliases"]
    assert desk.moa_board_read("k3", workspace=folder)["entries"][0]["value"] == "3"
    assert desk.project_rename(one, "  Shop ")["name"] == "Shop"
    desk.project_migrate(folder, one)
    assert desk.moa_board_read("k3", workspace=folder)["entries"][0]["value"] == "new"
    assert desk.project_archive(one)["workspaces"] == shown["aliases"]
    assert [p["projectId"] for p in desk.moa_projects_list()["projects"]] == [two]
    assert desk.moa_board_read("k3", scope=f"project:{one}")["entries"][0]["value"] == "new"
    with refused("invalid", "80"):
        desk.project_create("x" * 81)


@pytest.mark.req("board:15")
def test_a_writer_that_meets_a_move_writes_at_the_new_place(
    desk: Desk, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.moa_board_write("k", "a", workspace=folder)
    project = desk.project_create("Web")["projectId"]
    real, moves = boards.put, [project]

    def moved_meanwhile(bus: Bus, *given: Any) -> Any:
        made = real(bus, *given)
        if moves:
            desk.project_migrate(folder, moves.pop())
        return made

    monkeypatch.setattr(boards, "put", moved_meanwhile)
    assert desk.moa_board_write("k", "b", workspace=folder)["scope"] == f"project:{project}"
    assert desk.moa_board_read("k", scope=f"project:{project}")["entries"][0]["value"] == "b"


@pytest.mark.req("board:16")
def test_a_damaged_entry_harms_no_other_key_and_is_put_aside_by_the_next_write(disk: Bus) -> None:
    desk = Desk(disk)
    for key in ("k", "other"):
        for value in "ab":
            desk.moa_board_write(key, value, scope="global")
    assert disk.layout is not None
    file = disk.layout.state / "board" / "global" / "entries" / f"{board.file_name('k')}.json"
    file.write_text("{ torn", encoding="utf-8")
    listed = desk.moa_board_list(scope="global")
    assert ([r["key"] for r in listed["entries"]], listed["damaged"]) == (["other"], 1)
    assert desk.moa_board_read("k", scope="global")["entries"] == []
    assert desk.moa_board_write("k", "c", scope="global")["version"] == 3
    assert "{ torn" in [p.read_text() for p in (disk.layout.state / "quarantine").glob("*.json")]
    assert desk.moa_board_list(scope="global")["damaged"] == 0


@pytest.mark.req("board:17")
@posix
def test_eight_processes_that_write_one_key_at_once_lose_no_version(judge: Judge) -> None:
    found = judge("write_race")
    assert found["values"] == sorted(f"{me}-{n}" for me in range(8) for n in range(12))
    assert found["versions"] == list(range(1, 97))


@pytest.mark.req("board:17")
@posix
@pytest.mark.parametrize("act", ["write_killed", "migrate_killed"])
def test_a_writer_killed_before_any_of_its_writes_leaves_nothing_torn(judge: Judge, act: str) -> None:
    found = judge(act)
    assert found["wrong"] == []
    assert found["points"] > 8


@pytest.mark.req("board:18")
def test_every_write_is_told_to_the_journal_with_its_channel(desk: Desk, folder: str) -> None:
    made = desk.moa_board_write("k", "v", workspace=folder, author="ann")
    desk.moa_board_delete("k", workspace=folder)
    lines = [line for line in desk.bus.journal.read() if line["event"] == "board.updated"]
    assert [(e["op"], e["version"], e["channel"]) for e in lines] == [
        ("write", 1, f"@board/{made['scope']}"),
        ("delete", 2, f"@board/{made['scope']}"),
    ]


@pytest.mark.req("board:19")
def test_the_five_groups_are_listed_in_schemas_that_every_client_takes() -> None:
    def listed(group: str) -> list[dict[str, Any]]:
        tools = offered(group, "worker").values()
        return [describe(one).model_dump(mode="json", by_alias=True, exclude_none=True) for one in tools]

    assert len(listed("debate")) == 5
    assert len(to_json(listed("debate"))) <= 8_000
    tools = listed("board,tips,handoff,presence,debate")
    assert len(to_json(tools)) <= 30_000
    everything = "core,board,tips,handoff,presence,debate"
    assert faults(listed(everything), everything) == []


@pytest.mark.req("board:20")
def test_a_write_reads_as_much_on_a_full_board_as_on_an_empty_one(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(bus)
    asked: list[tuple[str, int]] = []
    for name in ("get", "list", "keys", "folders", "exists"):
        real = getattr(bus.store, name)

        def counted(key: str, *, _name: str = name, _real: Any = real) -> Any:
            answer = _real(key)
            asked.append((_name, len(answer) if isinstance(answer, list) else 1))
            return answer

        monkeypatch.setattr(bus.store, name, counted)
    costs = []
    for round_ in range(2):
        asked.clear()
        desk.moa_board_write("k", "v", scope="global")
        desk.moa_board_write(f"new{round_}", "v", scope="global")
        costs.append(list(asked))
        for n in range(200 - 200 * round_):
            bus.store.create(f".bus/board/global/entries/x-{n:016}", {"key": f"x{n}", "version": 1}, durable=False)
    assert len(costs[1]) <= len(costs[0]) + 1
    assert max(count for _, count in costs[1]) <= 1


@pytest.mark.req("board:21")
def test_a_verb_of_a_family_may_be_written_in_two_words() -> None:
    context = click.Context(cli)
    name, found, rest = cli.resolve_command(context, ["project", "create", "Web shop"])
    assert (name, found and found.name, rest) == ("project-create", "project-create", ["Web shop"])
    with pytest.raises(click.UsageError, match="project-create, project-migrate"):
        cli.resolve_command(context, ["project", "nonsense"])


def test_the_time_of_a_version_follows_the_one_before(clock: ManualClock) -> None:
    now = clock.now()
    assert board.next_ts("", now) == stamp(now)
    assert board.next_ts(stamp(now), now) == stamp(now + timedelta(milliseconds=1))
    assert board.next_ts(stamp(now - timedelta(days=1)), now) == stamp(now)
    assert board.next_ts(stamp(now + timedelta(seconds=1)), now) == stamp(now + timedelta(milliseconds=1001))
    assert board.next_ts(stamp(now + timedelta(seconds=1.1)), now) == stamp(now)


def test_the_workspace_setting_comes_from_the_environment() -> None:
    assert Settings(workspace="/x").workspace == "/x"
