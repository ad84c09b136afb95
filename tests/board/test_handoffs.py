"""Hand-offs: addressed, waited for, and taken by exactly one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_core import to_json

from agent_bus import commands
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.domain import handoff
from agent_bus.jobs import reaper
from agent_bus.operations import handoffs, pages
from tests.board.conftest import Judge
from tests.tools.desk import Desk, Server, refused

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")
ME = "codex:s1:main"
ALL = {"workspace": "user-global"}


def send(desk: Desk, title: str = "T", **given: Any) -> dict[str, Any]:
    """A hand-off to everybody."""
    found: dict[str, Any] = desk.moa_handoff_send("user-global", title, "S", **{**ALL, **given})
    return found


@pytest.mark.req("handoff:1")
def test_a_hand_off_to_an_agent_is_seen_by_that_agent_alone_and_without_its_context(desk: Desk) -> None:
    sent = send(desk, toAgent=ME, context="long", author="ann")
    assert (sent["v"], sent["state"], sent["consumedAt"], sent["context"]) == (2, "pending", "", "long")
    assert send(desk, "plain")["v"] == 1
    (row,) = desk.moa_handoff_inbox(agent=ME, **ALL)["handoffs"]
    assert (row["id"], row["author"], "context" in row) == (sent["id"], "ann", False)
    assert desk.moa_handoff_inbox(agent=f"{ME}2", **ALL)["handoffs"] == []
    assert len(desk.moa_handoff_inbox(**ALL)["handoffs"]) == 2
    assert desk.moa_handoff_read(sent["id"], **ALL)["context"] == "long"


@pytest.mark.req("handoff:2")
def test_what_was_taken_cannot_be_taken_again_and_leaves_the_list(desk: Desk) -> None:
    one, two = send(desk, "one"), send(desk, "two")
    taken = desk.moa_handoff_consume(one["id"], actor="bob", **ALL)
    assert (taken["state"], taken["consumedBy"], bool(taken["consumedAt"])) == ("consumed", "bob", True)
    for again in (desk.moa_handoff_consume, desk.moa_handoff_archive):
        with refused("conflict", "consumed"):
            again(one["id"], **ALL)
    assert desk.moa_handoff_archive(two["id"], **ALL)["state"] == "archived"
    with refused("conflict", "archived", "consumed"):
        desk.moa_handoff_consume(two["id"], **ALL)
    assert desk.moa_handoff_inbox(**ALL)["handoffs"] == []
    states = {s: [r["title"] for r in desk.moa_handoff_inbox(state=s, **ALL)["handoffs"]] for s in ("all", "consumed")}
    assert (sorted(states["all"]), states["consumed"]) == (["one", "two"], ["one"])


@pytest.mark.req("handoff:3")
@posix
def test_of_eight_readers_that_take_at_once_exactly_one_gets_each(judge: Judge) -> None:
    found = judge("consume_race")
    assert found["sent"] == sorted(found["taken"])
    assert len(found["sent"]) == 30
    assert found["pending"] == 0


@pytest.mark.req("handoff:4")
@posix
@pytest.mark.parametrize("act", ["send_killed", "consume_killed"])
def test_a_kill_before_any_write_loses_and_doubles_no_hand_off(judge: Judge, act: str) -> None:
    found = judge(act)
    assert found["wrong"] == []
    assert found["points"] > 5


@pytest.mark.req("handoff:5")
def test_a_waiting_reader_is_woken_once_by_another_process(live: Bus, server: Callable[..., Server]) -> None:
    other, command = server(), commands.find("moa_handoff_inbox")
    first = Desk(live).moa_handoff_inbox(wait_s=0, **ALL)
    assert (first["status"], first["handoffs"]) == ("ok", [])
    found: list[Any] = []

    async def waits() -> None:
        async with anyio.create_task_group() as around:

            async def wait() -> None:
                found.append(await commands.run(live, command, {**ALL, "wait_s": 30}))

            around.start_soon(wait)
            with live.watch.listen() as ear:
                while len(live.watch._wakes) < 2:  # until it listens too
                    await ear.wait(0.01)
            args = {"toProject": "user-global", "title": "T", "summary": "S", **ALL}
            await anyio.to_thread.run_sync(lambda: other.moa_handoff_send(**args))

    anyio.run(waits)
    (answer,) = found
    assert [r["title"] for r in answer.handoffs] == ["T"]
    again = Desk(live).moa_handoff_inbox(wait_s=1, cursor=answer.cursor, **ALL)
    assert again == {"status": "timeout", "retry": True, "handoffs": [], "cursor": answer.cursor}
    other.moa_handoff_send(toProject="user-global", title="U", summary="S", **ALL)
    assert [r["title"] for r in Desk(live).moa_handoff_inbox(wait_s=9, cursor=answer.cursor, **ALL)["handoffs"]] == [
        "U"
    ]
    with refused("invalid", "cursor"):
        Desk(live).moa_handoff_inbox(wait_s=1, cursor="nonsense", **ALL)


@pytest.mark.req("handoff:6")
def test_a_hand_off_whose_sender_died_before_it_rang_is_rung_for(
    disk: Bus, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(disk)
    with monkeypatch.context() as patch:
        patch.setattr(handoffs, "_ring", lambda *_: None)
        sent = send(desk)
    reaper.sweep(disk, disk.now())
    assert handoffs.rung(disk, "user-global", {}, "") == []
    clock.advance(61)
    for _ in range(2):
        reaper.sweep(disk, disk.now())
        assert [doc.name for *_, doc in handoffs.rung(disk, "user-global", {}, "")] == [sent["id"]]


@pytest.mark.req("handoff:7")
def test_the_receiver_must_be_known_unless_forced_and_the_inbox_of_a_project_is_shared(
    desk: Desk, folder: str, tmp_path: Path
) -> None:
    other = str(tmp_path / "my other shop")
    with refused("not_found", "force"):
        desk.moa_handoff_send(other, "T", "S", workspace=folder)
    with refused("not_found", "my shop"):
        desk.moa_handoff_send(folder + "s", "T", "S", workspace=folder)
    with refused("invalid", "absolute"):
        desk.moa_handoff_send("shop", "T", "S", workspace=folder)
    sent = desk.moa_handoff_send(other, "T", "S", workspace=folder, force=True)
    assert sent["fromProject"].startswith("ws_")
    project = desk.project_create("Web")["projectId"]
    for one in (folder, other):
        desk.project_migrate(one, project)
    desk.moa_handoff_send(project, "U", "S", workspace=folder, context="c")
    for reader in (folder, other, project):
        assert {r["title"] for r in desk.moa_handoff_inbox(workspace=reader)["handoffs"]} == {"T", "U"}
        waited = desk.moa_handoff_inbox(workspace=reader, wait_s=1)
        assert {r["title"] for r in waited["handoffs"]} == {"T", "U"}
        assert handoffs.rung(desk.bus, reader, pages.numbers(waited["cursor"]), "") == []


@pytest.mark.req("handoff:8")
def test_a_repeat_with_the_same_key_gives_the_first_hand_off_for_a_day(desk: Desk, clock: ManualClock) -> None:
    first = send(desk, dedupe_key="k", author="ann")
    assert send(desk, "other", dedupe_key="k", author="ann")["id"] == first["id"]
    assert send(desk, dedupe_key="k", author="bob")["id"] != first["id"]
    desk.moa_handoff_consume(first["id"], **ALL)
    assert send(desk, dedupe_key="k", author="ann")["state"] == "consumed"
    clock.advance(24 * 3600 + 1)
    assert send(desk, dedupe_key="k", author="ann")["id"] != first["id"]


@pytest.mark.req("handoff:9")
def test_bad_addresses_sizes_and_ids_are_refused_and_nothing_is_sent(desk: Desk) -> None:
    for address in ("codex", "codex:s1", "Codex:s:m", "codex:a b:m", "codex:s:m:x", f"codex:{'x' * 81}:m"):
        with refused("invalid", "toAgent"):
            send(desk, toAgent=address)
    with refused("too_large", "98304"):
        send(desk, context="é" * 49_200)
    with refused("invalid", "title"):
        send(desk, " ")
    with refused("invalid", "id"):
        desk.moa_handoff_read("../x", **ALL)
    with refused("not_found"):
        desk.moa_handoff_read("ho_000000000000", **ALL)
    assert desk.moa_handoff_inbox(state="all", **ALL)["handoffs"] == []
    assert "nobody" in send(desk, toAgent=ME)["warnings"][0]


@pytest.mark.req("handoff:10")
def test_while_the_bus_is_stopped_nothing_is_sent_and_all_can_be_read(desk: Desk) -> None:
    sent = send(desk)
    desk.emergency_stop("test")
    with refused("stopped"):
        send(desk)
    assert desk.moa_handoff_consume(sent["id"], **ALL)["state"] == "consumed"


@pytest.mark.req("handoff:11")
def test_pages_give_each_hand_off_once_and_long_contexts_come_in_parts(desk: Desk, clock: ManualClock) -> None:
    titles = [f"T{n}" for n in range(60)]
    for title in titles:
        clock.advance(0.5)
        desk.moa_handoff_send("user-global", title, "s" * 4000, **ALL)
    seen: list[str] = []
    cursor = ""
    while True:
        page = desk.moa_handoff_inbox(cursor=cursor, **ALL)
        assert len(to_json(page)) < 8000
        seen += [row["title"] for row in page["handoffs"]]
        if not (cursor := page["cursor"]):
            break
    assert seen == titles[::-1]
    text = "".join(f"{n:05}\n" for n in range(4000))
    sent = desk.moa_handoff_send("user-global", "T" * 200, "s" * 4000, context=text, **ALL)
    assert len(to_json(sent)) < 8000
    parts, offset = [], 0
    while True:
        answer = desk.moa_handoff_read(sent["id"], offset=offset, **ALL)
        assert len(to_json(answer)) < 8000
        parts.append(answer["context"])
        if not (offset := answer.get("cut", 0)):
            break
    assert "".join(parts) == text


def test_the_table_of_a_hand_off_has_no_way_back() -> None:
    assert handoff.TRANSITIONS == {"pending": ("consumed", "archived"), "consumed": (), "archived": ()}
