"""Rooms by their six tools: who may speak, who is told what, and nothing lost whatever dies."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_bus import commands
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.operations import rooms
from tests.rooms.conftest import Hall
from tests.tools.buses import Make
from tests.tools.desk import Desk, refused

posix = pytest.mark.skipif(sys.platform == "win32", reason="file modes")
TALK: dict[str, Any] = {"mode": "mention"}


def talk(hall: Hall, *names: str, **wish: Any) -> None:
    """A room by mention with A B C D, floor A."""
    hall.open("r", *(names or ("A", "B", "C", "D")), mode="mention", barrier=len(names) or 4, **wish)


@pytest.mark.req("rooms:4")
def test_a_room_starts_when_the_barrier_is_filled(hall: Hall) -> None:
    """Cases 1 to 6 and 9: the first declared one who is there has the floor; one notice; nobody speaks before."""
    hall.open("r", **TALK, participants=["@user", "Alice", "Zoë"], topic="Cache")
    hall.join("alice")
    with refused("not_started", "user"):
        hall.say("alice", "@all hello")
    assert hall.wait("alice")["waiting_for"] == ["user", "Zoë"]
    hall.join("Zoe\u0308")
    told = hall.wait("alice")
    assert [n["type"] for n in told["notices"]] == ["started"]
    assert (told["obligations"][0]["do"], told["next"]) == ("speak", "room_send(content=…)")
    found = hall.read("alice", "status")
    assert (found["floor"], [m["name"] for m in found["members"]]) == ("Alice", ["user", "Alice", "Zoë"])
    hall.say("alice", "@Zoë one")
    hall.join("Late")
    assert hall.texts("Late") == ["@Zoë one"]
    with refused("handle_taken", "release"):
        hall.join("LATE")
    hall.open("all", **TALK, participants=["A", "B", "C"], barrier=64, first_speaker="B")
    for name in "ABC":
        state = hall.join(name, "all")["state"]
    assert (state, hall.read("C", "status")["floor"]) == ("running", "B")


@pytest.mark.req("rooms:5")
def test_a_name_in_use_is_refused_and_force_closes_the_old_room(hall: Hall) -> None:
    """Case 8, and names that are none."""
    talk(hall, "A", "B")
    hall.say("A", "hi @B")
    with refused("room_exists", "force"):
        hall.open("R", mode="free")
    old = hall.sessions["A"]
    assert hall.open("r", mode="mention", force=True)["room"] == "r-2"
    assert [m["content"] for m in hall.desk.room_read("history", session=old)["messages"]] == ["hi @B"]
    assert hall.desk.room_wait(session=old, timeout_s=0)["status"] == "closed"
    with refused("closed"):
        hall.say("A", "more @B")
    for bad in ("a-transcript-1", "a/b"):
        with refused("invalid", "room"):
            hall.open(bad, mode="free")
    for bad in ("@all", "host", "-x", "a b", "x" * 65):
        with refused("bad_handle"):
            hall.join(bad, "r-2")
    with refused("invalid", "host"):
        hall.open("m")


@pytest.mark.req("rooms:6")
def test_a_message_by_mention_needs_somebody_and_the_floor(hall: Hall) -> None:
    """Cases 12, 13, 18 to 22: refusals use no number; a repeat is known as one."""
    talk(hall, participants=["A", "B", "C", "D", "Ghost"], aliases=["@B:MJ,le MJ"])
    before = hall.read("A", "status")
    with refused("no_recipient", "B, C, D", "@all", "Zed"):
        hall.say("A", "hi @Zed")
    with refused("recipient_left", "Ghost"):
        hall.say("A", "hi @Ghost")
    with refused("unknown_recipient", "Members"):
        hall.say("A", "psst", to=["Nobody"])
    with refused("not_your_turn", "A has the floor"):
        hall.say("B", "@A me first")
    with refused("bad_content"):
        hall.say("A", " \n")
    with refused("too_large", "98304"):
        hall.say("A", "@B " + "x" * 98_304)
    assert hall.read("A", "status") == before
    made = hall.say("A", "hi @le MJ and @Zed and @all")
    assert (made["recipients"], made["ignored_all"], made["floor"]) == (["B"], True, "B")
    assert made["unknown_mentions"] == [{"text": "Zed", "nearest": ""}]
    again = hall.say("A", "hi @le MJ and @Zed and @all")
    assert (again["duplicate"], again["number"]) == (True, made["number"])
    for name, text in (("B", "ok @A"), ("A", "ok @B"), ("B", "ok @A"), ("A", "ok @B")):
        assert not hall.say(name, text)["duplicate"]
    first = hall.say("B", "@A keyed", key="k1")
    assert hall.say("B", "@A keyed", key="k1")["number"] == first["number"]
    with refused("conflict", "k1"):
        hall.say("B", "@A other", key="k1")


@pytest.mark.req("rooms:7")
def test_a_turn_that_lasts_too_long_is_skipped_once(hall: Hall, clock: ManualClock) -> None:
    """Cases 23 and 24: a late speech is refused; passing and skipping move the floor on; the host hears of it."""
    talk(hall, turn_timeout_s=1)
    hall.say("A", "@B @C")
    clock.advance(2)
    with refused("not_your_turn", "C has the floor"):
        hall.say("B", "late @A")
    assert [n["name"] for n in hall.wait("B")["notices"] if n["type"] == "turn_skipped"] == ["B"]
    hall.act("C", "pass")
    status = hall.read("D", "status")
    assert (status["floor"], status["queue"]) == ("", [])
    assert hall.say("D", "@A @B")["floor"] == "A"
    hall.act("boss", "skip")
    assert hall.read("D", "status")["floor"] == "B"
    assert "stalled" in [n["type"] for n in hall.wait("boss")["notices"]]
    with refused("host_only"):
        hall.act("D", "skip")


@pytest.mark.req("rooms:8")
def test_a_private_message_is_not_there_for_others(hall: Hall, tmp_path: Path) -> None:
    """Cases 25 and 26: not in their waits, history, counts; its text in no record; never public by mistake."""
    talk(hall)
    with refused("no_recipient"):
        hall.say("A", "nobody", private=True)
    with refused("no_recipient"):
        hall.say("A", "hush @all", private=True)
    with refused("outsider_mentioned", "C"):
        hall.say("A", "not to @C", to=["B"])
    hall.wait("C")
    count = hall.read("C", "status")["unread"]
    hall.say("A", "the zebra secret", to=["@B"])
    assert hall.read("C", "status")["unread"] == count
    assert hall.texts("C") == hall.texts("boss") == []
    assert hall.wait("C", wake="all")["status"] == "timeout"
    assert [m["content"] for m in hall.wait("B")["messages"]] == ["the zebra secret"]
    docs = [*hall.bus.store.list(".bus/rooms/r/messages"), *hall.bus.store.list(".bus/rooms/r")]
    assert "zebra" not in json.dumps([d.value for d in docs])
    if hall.bus.layout is not None and sys.platform != "win32":
        [file] = (tmp_path / "bus/.bus/rooms/r/private").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("rooms:9")
def test_what_was_delivered_is_acknowledged_by_the_next_call(hall: Hall) -> None:
    """Cases 29 and 30: own messages are never unread, looking at the state moves nothing, long texts are read on."""
    hall.open("r", "A", "B", mode="free", barrier=2)
    for n in range(70):
        hall.say("A", f"m{n}")
    first = hall.read("B", limit=50)
    assert (first["messages"][0]["content"], len(first["messages"]), first["unread_left"]) == ("m0", 50, 20)
    assert [hall.read("B", "status")["unread"] for _ in range(2)] == [70, 70]
    rest = hall.read("B", after=first["cursor"])
    assert ([m["content"] for m in rest["messages"]], rest["unread_left"]) == ([f"m{n}" for n in range(50, 70)], 0)
    assert hall.read("B")["messages"] == []
    assert hall.read("B", "status")["unread"] == hall.read("A", "status")["unread"] == 0
    assert len(hall.read("B", after=first["cursor"])["messages"]) == 20
    with refused("invalid", "after"):
        hall.wait("B", after=9999)
    hall.say("A", "for @B")
    lost = commands.find("room_read")
    never_seen = commands.run_sync(hall.bus, lost, {"session": hall.sessions["B"]})
    assert lost.undo is not None
    lost.undo(hall.bus, never_seen)
    assert [m["content"] for m in hall.read("B")["messages"]] == ["for @B"]
    long = hall.say("A", "y" * 9000)["number"]
    [part] = hall.read("B")["messages"]
    rest_of = hall.read("B", number=long, offset=part["offset"])["messages"][0]["content"]
    assert (part["cut"], part["content"] + rest_of) == (True, "y" * 9000)


@pytest.mark.req("rooms:10")
def test_a_wait_is_woken_and_ended(bus: Bus) -> None:
    """Cases 27 and 48: by what is for the waiter; closing ends it, and later ones at once."""
    hall = Hall(bus)
    hall.open("r", "A", "B", mode="free", barrier=2)
    hall.wait("B")
    found: list[dict[str, Any]] = []

    async def waiting(**more: Any) -> None:
        given = {"session": hall.sessions["B"], "timeout_s": 20, **more}
        answer = await commands.run(bus, commands.find("room_wait"), given)
        found.append(answer.model_dump())

    async def both(act: Callable[[], Any]) -> dict[str, Any]:
        async with anyio.create_task_group() as group:
            group.start_soon(waiting)
            await anyio.wait_all_tasks_blocked()
            await anyio.to_thread.run_sync(act)
        return found[-1]

    told = anyio.run(both, partial(hall.say, "A", "for @B"))
    assert [m["content"] for m in told["messages"]] == ["for @B"]
    assert anyio.run(both, partial(hall.act, "boss", "close"))["status"] == "closed"
    assert hall.wait("B")["status"] == "closed"
    with refused("closed"):
        hall.join("late")
    assert hall.act("boss", "close")["already"]
    if bus.layout is not None:
        assert [r["content"] for r in json.loads((bus.layout.archive / "rooms/r.json").read_bytes())] == ["for @B"]


@pytest.mark.req("rooms:11")
def test_a_host_leads_rounds(hall: Hall) -> None:
    """Cases 40 to 44 and 46: hands, an order, speeches; who is out reads on but does nothing."""
    hall.open("r", "bob", "carol", host="mod")
    for act in ("collect", "order", "close", "reveal", "cancel"):
        with refused("host_only"):
            hall.act("bob", act)
    hall.say("mod", "welcome")
    with refused("not_your_turn"):
        hall.say("bob", "hi")
    with refused("wrong_phase"):
        hall.act("bob", "raise", weight=1)
    hall.act("mod", "collect")
    for bad in (11, -2, 1.5, "3"):
        with refused("invalid", "weight"):
            hall.act("bob", "raise", weight=bad)
    with refused("refused"):
        hall.act("mod", "raise", weight=3)
    assert hall.act("bob", "raise", weight=5)["phase"] == "collecting"
    with refused("conflict", "5"):
        hall.act("bob", "raise", weight=5)
    assert hall.act("carol", "raise", weight=0)["phase"] == "ordering"
    assert hall.wait("mod")["obligations"][0]["weights"][0] == {"name": "bob", "weight": 5}
    with refused("unknown_recipient"):
        hall.act("mod", "order", names=["zed"])
    hall.act("mod", "order", names=["bob", "carol"])
    with refused("not_your_turn", "bob"):
        hall.say("carol", "early")
    hall.act("mod", "eliminate", names=["bob"])
    assert "eliminated" in [n["type"] for n in hall.wait("bob")["notices"]]
    with refused("eliminated"):
        hall.say("bob", "but")
    assert hall.wait("carol")["obligations"][0]["do"] == "speak"
    hall.say("carol", "done")
    told = hall.wait("mod")
    assert [n["round"] for n in told["notices"] if n["type"] == "round_done"] == [1]
    assert hall.texts("bob") == ["welcome", "done"]
    hall.act("carol", "leave")
    hall.join("carol")
    with refused("invalid", "names"):
        hall.act("mod", "reveal", names=["x"])


@pytest.mark.req("rooms:12")
def test_scoped_rounds_and_whispers_are_for_few(hall: Hall) -> None:
    """Case 47, and rounds that others do not see."""
    hall.open("r", "bob", "carol", "dan", host="mod")
    hall.act("mod", "collect", names=["bob"])
    assert hall.wait("bob")["obligations"][0]["private_with"] == ["mod"]
    with refused("refused"):
        hall.act("carol", "raise", weight=1)
    hall.act("bob", "raise", weight=1)
    hall.act("mod", "order", names=["bob"])
    hall.say("bob", "among us")
    hall.act("mod", "whisper", names=["bob"], text="you are the seer")
    hall.act("bob", "whisper", text="thanks")
    with refused("host_only"):
        hall.act("bob", "whisper", names=["carol"], text="psst")
    assert hall.texts("bob") == ["among us", "you are the seer", "thanks"]
    assert hall.texts("mod") == hall.texts("bob")
    assert hall.texts("carol") == []
    hall.act("dan", "leave")
    with refused("recipient_left"):
        hall.act("mod", "whisper", names=["dan"], text="hello")


@pytest.mark.req("rooms:13")
def test_ballots_are_published_together(hall: Hall) -> None:
    """Case 45: nobody sees one before; the result is one message for all."""
    hall.open("r", "a", "b", "c", host="mod")
    hall.act("mod", "poll", names=["a", "b"], text="who?")
    with refused("wrong_phase"):
        hall.act("mod", "collect")
    with refused("refused"):
        hall.act("c", "vote", text="x")
    hall.act("b", "vote", text="zebra")
    with refused("conflict"):
        hall.act("b", "vote", text="lion")
    with refused("wrong_phase", "a"):
        hall.act("mod", "reveal")
    docs = [*hall.bus.store.list(".bus/rooms/r/messages"), *hall.bus.store.list(".bus/rooms/r")]
    assert "zebra" not in json.dumps([d.value for d in docs])
    hall.act("a", "vote", text="lion")
    assert hall.wait("mod")["obligations"][0]["do"] == "reveal"
    hall.act("mod", "reveal")
    assert hall.texts("c") == ["who?\na → lion\nb → zebra"]
    assert [n["type"] for n in hall.wait("c")["notices"]][-1] == "vote_result"
    with refused("wrong_phase"):
        hall.act("mod", "reveal")


@pytest.mark.req("rooms:14")
def test_a_kill_between_record_and_head_is_harmless(hall: Hall) -> None:
    """A record that the head does not know is applied by whoever comes next; a lost head is made anew; case 35."""
    talk(hall, "A", "B")
    hall.say("A", "@B one")
    before = hall.bus.store.get(".bus/rooms/r/head")
    assert before is not None
    hall.say("B", "@A two")
    after = hall.bus.store.get(".bus/rooms/r/head")
    assert after is not None
    hall.bus.store.replace(after, before.value)
    assert hall.read("A", "status")["floor"] == "A"
    restored = hall.bus.store.get(".bus/rooms/r/head")
    assert restored is not None
    assert restored.value == after.value
    hall.bus.store.delete(restored)
    assert rooms.settled(hall.bus, "r").head == after.value
    assert hall.say("A", "@B three")["number"] == after.value["number"] + 1


@pytest.mark.req("rooms:15")
def test_a_session_is_needed_and_remembered_where_callers_are_told_apart(hall: Hall) -> None:
    """No session, a foreign one, one of a member who left; an MCP session need not repeat its own."""
    hall.open("r", "A", mode="free")
    for bad in ("", "nonsense", "s_r_" + "0" * 32):
        with refused("bad_token"):
            hall.desk.room_send("x", session=bad)
    hall.act("A", "leave")
    with refused("bad_token"):
        hall.wait("A")
    mine = Desk(hall.bus, Caller(channel="mcp", session="s1"))
    mine.room_join("A")
    assert mine.room_send("back")["number"] == 4
    with refused("bad_token", "missing"):
        Desk(hall.bus, Caller(channel="mcp", session="s2")).room_send("x")
    hall.act("boss", "release", names=["A"])
    with refused("bad_token"):
        mine.room_send("again")
    hall.join("A")
    stored = json.dumps([d.value for d in hall.bus.store.list(".bus/rooms/r/messages")])
    assert not any(s.rpartition("_")[2] in stored for s in hall.sessions.values())


@pytest.mark.req("rooms:16")
def test_many_who_speak_at_once_lose_nothing(make: Make) -> None:
    """Case 33 in threads: numbers without a gap, every message once; eight that join give one start."""
    hall = Hall(make())
    hall.open("r", mode="free", barrier=4)

    async def crowd() -> None:
        async with anyio.create_task_group() as group:
            for name in "ABCD":
                group.start_soon(anyio.to_thread.run_sync, partial(hall.join, name))
        async with anyio.create_task_group() as group:
            for name in "ABCD":
                group.start_soon(anyio.to_thread.run_sync, busy_say, name)

    def busy_say(name: str) -> None:
        for n in range(6):
            hall.say(name, f"{name}{n}")

    anyio.run(crowd)
    found = rooms.settled(hall.bus, "r")
    records = list(rooms.records(hall.bus, found, 0))
    assert [r["number"] for r in records] == list(range(1, 29))
    said = [r["content"] for r in records if r["kind"] == "message"]
    assert sorted(said) == sorted(f"{n}{i}" for n in "ABCD" for i in range(6))
    assert sum(n["type"] == "started" for r in records for n in r.get("notices", [])) == 1


@pytest.mark.req("rooms:17")
def test_the_stop_keeps_rooms_from_being_opened_only(hall: Hall) -> None:
    """What is under way goes on."""
    hall.open("r", "A", mode="free")
    hall.desk.emergency_stop("test")
    with refused("stopped"):
        hall.open("s", mode="free")
    hall.say("A", "still here")


@pytest.mark.req("rooms:18")
def test_the_six_tools_are_small(hall: Hall) -> None:
    """Case 50: plain schemas, 5 kB in all."""
    tools = [c for c in commands.commands().values() if c.group == "meetings"]
    listed = json.dumps([{"name": c.name, "description": c.text, "inputSchema": c.schema()} for c in tools])
    assert len(tools) == 6
    assert len(listed) <= 5_000
    assert not any(word in listed for word in ('"null"', "anyOf", "$ref", '"type": "object", "desc'))
