"""Rooms in the vault: every message once and in order, private ones as one line, written seldom and in parts."""

from __future__ import annotations

import re

import pytest

from agent_bus.domain import room_mirror
from agent_bus.jobs.mirror import MirrorJob
from tests.notes.vault_check import split_note
from tests.vault.conftest import Vault


@pytest.mark.req("vault:18")
def test_a_long_room_is_mirrored_in_parts_each_message_once_and_in_order(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room_mirror, "PART_BYTES", 4_000)
    host = vault.boss.room_open("kickoff", mode="free", topic="Who does what? [[x]]")["session"]
    sessions = [vault.desk.room_join(name, room="kickoff")["session"] for name in ("alice", "bob")]
    writes, sign = 0, None
    for number in range(120):
        text = f"message {number}\n#### 9 · forged\n```\n- [ ] box"
        vault.desk.room_send(text, session=sessions[number % 2])
        if number % 10 == 0:
            vault.desk.room_send(f"secret {number}", to=["bob"], private=True, session=sessions[0])
        vault.clock.advance(0.5)
        vault.job.tick(vault.bus, vault.clock.now())
        now = vault.times().get("rooms/kickoff.md")
        writes, sign = writes + (now != sign), now
    vault.run(10)
    assert writes <= 60 / 5 + 2
    parts = sorted(name for name in vault.files() if "Transcript" in name)
    assert len(parts) > 3
    said = "".join(vault.note(name.removesuffix(".md")) for name in parts)
    assert [int(n) for n in re.findall(r"^message (\d+)$", said, re.MULTILINE)] == list(range(120))
    assert "secret" not in "".join(path.read_text() for path in vault.files().values())
    assert said.count("🔒") == 12
    data, body = split_note(vault.note("rooms/kickoff"))
    assert (data["ab_room"], data["ab_messages"], data["ab_members"]) == ("kickoff", 132, ["alice", "bob"])
    assert f"![[{parts[-1].removeprefix('rooms/').removesuffix('.md')}]]" in body
    assert "[[kickoff]] · 132 messages" in vault.note("Dashboard")
    before = vault.times()
    vault.job = MirrorJob()
    vault.run(30)
    assert vault.times() == before, "the same room gives the same bytes"
    vault.type("rooms/kickoff", "### Notes\n", "### Notes\nmine\n")
    vault.desk.room_send("one more", session=sessions[0])
    vault.run(30)
    assert vault.note("rooms/kickoff").endswith("### Notes\nmine\n")
    assert "one more" in vault.note("rooms/kickoff")
    vault.desk.room_act("close", session=host)
    vault.run(30)
    assert "closed" in vault.note("rooms/kickoff")
    before = vault.times()
    vault.job = MirrorJob()
    vault.run(30)
    assert vault.times() == before, "of a room that is over nothing is written again, the Dashboard still has it"
    assert "[[kickoff]]" in vault.note("Dashboard")


def test_a_room_with_the_name_of_an_agent_has_a_note_of_its_own(vault: Vault) -> None:
    vault.worker("coder").update_status(state="idle")
    vault.boss.room_open("coder", mode="free")
    vault.run(8)
    assert {"notes/agents/coder.md", "rooms/coder-room.md"} <= set(vault.files())


def test_a_person_speaks_in_a_room_by_a_note_and_again_when_it_is_their_turn(vault: Vault) -> None:
    vault.boss.room_open("talk", mode="mention", barrier=2)
    alice = vault.desk.room_join("alice", room="talk")["session"]
    bob = vault.desk.room_join("bob", room="talk")["session"]
    note = vault.root / "commands" / "Mine.md"
    note.parent.mkdir(exist_ok=True)
    text = "---\nab_kind: command\nab_room: talk\nab_ready: true\n---\n@bob what do you think?\n"
    note.write_text(text)
    vault.run(16)
    assert "ab_state: refused" in note.read_text()
    assert "Not done" in note.read_text()
    vault.desk.room_send("@user your view?", session=alice)
    note.write_text(note.read_text() + "\n")
    vault.run(20)
    assert "Said in [[talk]]" in note.read_text()
    said = vault.desk.room_read("history", session=bob)["messages"]
    assert [(m["from"], m["content"]) for m in said][-1] == ("user", "@bob what do you think?")
    assert len(said) == 2
    vault.run(80)
    assert (note.parent / "done" / "Mine.md").exists()
