"""Conversations by mention, with the tools of a turn-taking hub."""

import json

import pytest

from agent_bus import commands
from agent_bus.bus import Bus, Caller
from tests.tools.buses import Make
from tests.tools.desk import Desk, refused


def seat(bus: Bus, name: str) -> Desk:
    """One MCP client."""
    return Desk(bus, Caller(channel="mcp", session=name))


@pytest.mark.req("rooms:19")
def test_a_conversation_passes_the_floor_by_mention(bus: Bus) -> None:
    """The example of the hub's own page: the user is absent, Alice begins, Bob answers her, then asks the user."""
    boss, alice, bob = seat(bus, "s0"), seat(bus, "s1"), seat(bus, "s2")
    made = boss.init_conversation("", ["@user", "Alice", "@Bob"], topic="Cache", room="r1")
    assert (made["status"], made["first_speaker"], made["participants"]) == (
        "initialized",
        "@user",
        ["@user", "@Alice", "@Bob"],
    )
    before = boss.list_participants("r1")
    assert {p["status"] for p in before["participants"]} == {"not_joined"}
    assert (before["active_turn"], before["message_count"]) == ("", 0)
    first = alice.join_conversation("@Alice", timeout_s=0)
    assert (first["status"], first["waiting_for"]) == ("timeout", ["@user", "@Bob"])
    assert bob.join_conversation("Bob", name="Bob B")["status"] == "joined"
    turn = alice.wait_for_turn("@alice", timeout_s=0)
    assert (turn["status"], turn["active_turn"], turn["next"]) == ("your_turn", "@Alice", "send_message")
    early = bob.send_message("Bob", "@Alice me first", timeout_s=0)
    assert (early["status"], early["error"].split(":")[0]) == ("not_your_turn", "not_your_turn")
    sent = alice.send_message("@Alice", "SQLite? @Bob", timeout_s=0)
    assert (sent["status"], sent["number"], sent["active_turn"]) == ("timeout", 3, "@Bob")
    told = bob.wait_for_message("@Bob", timeout_s=0)
    assert (told["status"], told["new_messages"][0]["sender"]) == ("your_turn", "@Alice")
    assert bob.whisper_message("@Bob", ["@Alice"], "just us")["status"] == "sent"
    assert alice.wait_for_turn("Alice", timeout_s=0)["new_messages"][-1]["is_private"] is True
    user = seat(bus, "s3")
    with refused("recipient_left", "user"):
        alice.broadcast_message("Alice", "@user approve?")
    assert user.join_conversation("user", room="r1", timeout_s=0)["status"] == "message_received"
    assert alice.broadcast_message("Alice", "@user approve?")["status"] == "sent"
    assert user.send_message("user", "I do @Alice", block=False, room="r1")["active_turn"] == "@Alice"
    assert [p["name"] for p in boss.list_participants("r1")["participants"]] == ["user", "Alice", "Bob B"]
    with refused("not_found", "list_participants"):
        alice.wait_for_turn("Zed", session=first["session"], timeout_s=0)
    with refused("bad_token"):
        bob.send_message("Alice", "@Bob I am Alice", session=told.get("session") or "s_r1_" + "0" * 32)


@pytest.mark.req("rooms:20")
def test_somebody_s_file_is_never_taken(make: Make) -> None:
    """With force neither; the room's name comes from the path."""
    bus = make()
    desk = Desk(bus)
    if bus.layout is not None:
        note = bus.layout.root / "note.md"
        note.write_text("mine", encoding="utf-8")
        for force in (False, True):
            with refused("path_exists", "note.md"):
                desk.init_conversation("note.md", ["A"], force=force)
        assert note.read_text(encoding="utf-8") == "mine"
        with refused("invalid", "vault"):
            desk.init_conversation("../x.md", ["A"])
    with refused("invalid", ".md"):
        desk.init_conversation("x.txt", ["A"])
    assert desk.init_conversation("talks/My talk.md", ["A"])["room"] == "My-talk"
    assert [desk.init_conversation("", ["A"])["room"] for _ in range(2)] == ["room-1", "room-2"]
    with refused("ambiguous_room", "room-1"):
        desk.list_participants()
    tools = [c for c in commands.commands().values() if c.group == "rooms" and not c.people]
    listed = json.dumps([{"name": c.name, "description": c.text, "inputSchema": c.schema()} for c in tools])
    assert (len(tools), len(listed) <= 6_000) == (8, True)
