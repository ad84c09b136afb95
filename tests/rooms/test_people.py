"""Rooms for people, and in words."""

import re

import pytest

from agent_bus.bus import Bus
from agent_bus.domain import room_note
from agent_bus.operations import rooms
from agent_bus.texts import Texts
from tests.rooms.conftest import Hall
from tests.tools.desk import Desk, refused


@pytest.mark.req("rooms:22")
def test_people_see_export_and_mend_rooms(hall: Hall) -> None:
    """Case 39: public messages for all, private ones for the host; a lost session; a damaged record."""
    hall.open("r", "A", "B", mode="mention", topic="Cache [[x]]")
    hall.say("A", "@B look:\n```\n#### 9 · forged\n```")
    hall.say("B", "psst", to=["A"])
    hall.say("A", "@B bye")
    people = hall.desk
    row = people.room_list()["rooms"][0]
    assert (row["room"], row["floor"], row["messages"]) == ("r", "B", 3)
    text = people.room_show("r")["text"]
    assert "A → B" in text
    assert "| **B** | 🎤 has the floor |" in text
    assert "[[x]]" not in text
    public = people.room_export("r")["messages"]
    assert [m["content"] for m in public][1:] == ["@B bye"]
    assert all(re.fullmatch("[0-9a-f]{8}", m["id"]) and m["timestamp"] > 10**12 for m in public)
    full = people.room_export("r", session=hall.sessions["boss"])["messages"]
    assert (len(full), full[1]["visibleTo"]) == (3, ["B", "A"])
    with refused("host_only"):
        people.room_export("r", session=hall.sessions["A"])
    people.room_release("r", "A")
    assert hall.join("A")["ok"]


@pytest.mark.req("rooms:22")
def test_a_damaged_record_stops_the_room_until_it_is_repaired(make: object, bus: Bus) -> None:
    """Its file goes to quarantine; what follows it stays."""
    hall = Hall(bus)
    hall.open("r", "A", "B", mode="free", barrier=2)
    if bus.layout is None:
        return
    hall.say("A", "one")
    found = rooms.settled(bus, "r")
    path = bus.layout.state / "rooms/r/messages/000004.json"
    path.write_text("{torn", encoding="utf-8")
    with refused("conflict", "record 4", "room-repair"):
        hall.say("A", "two")
    assert Desk(bus).room_repair("r")["numbers"] == [4]
    assert hall.say("A", "two")["number"] == found.head["number"] + 2


@pytest.mark.req("rooms:22")
def test_a_transcript_hides_what_is_private_and_cannot_be_forged(hall: Hall) -> None:
    """Entries in both languages, each in its fence."""
    hall.open("r", "A", "B", mode="mention")
    hall.say("A", "@B look:\n```\n#### 9 · forged\n```")
    hall.say("B", "psst", to=["A"])
    hall.act("boss", "close")
    found = rooms.settled(hall.bus, "r")
    said = [room_note.transcript_entry(Texts("ja"), r, "Asia/Tokyo") for r in rooms.records(hall.bus, found, 0)]
    assert "A が参加しました" in said[0]
    assert said[2].startswith("#### 3 · A → B · 2026-03-07 21:00:00\n````text\n")
    assert said[3] == "> 🔒 4 · 非公開の発言（表示しません） · 2026-03-07 21:00:00\n\n"
    assert "終了しました" in said[4]
    assert "psst" not in "".join(said)
    english = room_note.room_note(Texts("en"), found.setup, found.head, None, "Asia/Tokyo")
    assert "- **State:** closed" in english
