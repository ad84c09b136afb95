"""Debates: turns in order, each once, whatever dies; and the same story in the archive."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from agent_bus import commands
from agent_bus.app import memory_bus
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.domain import debate, debate_words
from agent_bus.jobs import reaper
from agent_bus.operations import debates
from tests.board.conftest import Judge
from tests.tools.buses import NOON
from tests.tools.desk import Desk, Server, refused

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")
SECRET = "zebra"


def begin(desk: Desk, *agents: str, rounds: int = 2, **rules: Any) -> None:
    """A debate t1 that has started."""
    desk.moa_init("t1", agents=list(agents or ("a", "b")), rounds=rounds, **rules)
    desk.moa_start_debate("t1", f"all about the {SECRET}")


def look(desk: Desk, agent: str, **how: Any) -> dict[str, Any]:
    """What an agent is told now."""
    found: dict[str, Any] = desk.moa_wait_turn("t1", agent, **{"timeout_s": 0, **how})
    return found


def files(bus: Bus) -> dict[str, bytes]:
    """The archive of t1."""
    folder = Path(bus.settings.root) / "archive" / "debates" / "t1"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}


def events(bus: Bus) -> list[dict[str, Any]]:
    """The events of the archive."""
    return [json.loads(line) for line in files(bus)["events.jsonl"].splitlines()]


@pytest.mark.req("debate:1")
def test_a_preset_is_taken_as_object_or_text_with_its_slots_and_extras(disk: Bus) -> None:
    desk = Desk(disk)
    preset = {"agents": [{"id": "a", "binding_slot": "s"}, "b"], "goal": "x", "debate": {"rounds": 3}}
    made = desk.moa_init("t1", preset)
    assert made["agents"] == [{"id": "a", "binding_slot": "s"}, {"id": "b"}]
    assert desk.moa_init("t2", json.dumps(preset))["agents"] == made["agents"]
    assert desk.moa_init("t3", agents=["a@s", "b"])["agents"] == made["agents"]
    desk.moa_complete("t1")
    first = events(disk)[0]
    assert (first["type"], first["extras"], first["rounds"]) == ("task_initialized", {"goal": "x"}, 3)
    result = json.loads(files(disk)["result.json"])
    assert (result["status"], result["rounds_completed"], result["turns"]) == ("not_started", 0, 0)


@pytest.mark.req("debate:1")
def test_the_answer_says_what_the_settings_know_of_a_slot(make: Callable[..., Bus]) -> None:
    desk = Desk(make(slots={"strong": {"client": "codex", "effort": "high"}}))
    made = desk.moa_init("t1", agents=["a@strong", "b@other"])
    strong = {"id": "a", "binding_slot": "strong", "client": "codex", "effort": "high"}
    assert made["agents"] == [strong, {"id": "b", "binding_slot": "other"}]


@pytest.mark.req("debate:2")
def test_an_id_is_used_once_and_a_debate_starts_once(desk: Desk) -> None:
    begin(desk)
    with refused("conflict", "t1"):
        desk.moa_init("t1", agents=["c"])
    with refused("conflict", "debating"):
        desk.moa_start_debate("t1", "again")
    desk.moa_complete("t1")
    with refused("conflict", "T1"):
        desk.moa_init("T1", agents=["c"])
    with refused("conflict", "closed"):
        desk.moa_start_debate("t1", "again")
    with refused("not_found", "t9"):
        desk.moa_start_debate("t9", "x")


@pytest.mark.req("debate:3")
def test_what_is_no_setup_and_no_id_is_refused_and_nothing_is_made(desk: Desk) -> None:
    bads: tuple[dict[str, Any], ...] = (
        {},
        {"agents": ["a", "a"]},
        {"agents": ["a", "A"]},
        {"preset_config": {"agents": [{}]}},
        {"preset_config": {"agents": ["a"]}, "agents": ["a"]},
        {"preset_config": "{"},
        {"agents": ["a"], "rounds": 0},
        {"agents": ["a"], "rounds": 21},
        {"preset_config": {"agents": ["a"], "debate": {"rounds": "2"}}},
    )
    for bad in bads:
        with refused("invalid"):
            desk.moa_init("t1", **bad)
    for name in ("../../e", "a/b", "", "..", ".x", "CON", "x" * 65, "a..b"):
        with refused("invalid"):
            desk.moa_init(name, agents=["a"])
    assert desk.bus.store.folders(debates.PREFIX) == []
    desk.moa_init("t1", agents=["a", "b"])
    with refused("debate_not_active", "initialized"):
        desk.moa_submit_turn("t1", "a", "x")


@pytest.mark.req("debate:4")
def test_who_waits_before_the_start_is_woken_by_another_process(live: Bus, server: Callable[..., Server]) -> None:
    other = server()
    other.moa_init(task_id="t1", agents=["a", "b"])
    command = commands.find("moa_wait_turn")
    found: list[Any] = []

    async def waits() -> None:
        async with anyio.create_task_group() as around:

            async def wait() -> None:
                found.append(await commands.run(live, command, {"task_id": "t1", "agent_id": "a", "timeout_s": 30}))

            around.start_soon(wait)
            with live.watch.listen() as ear:
                while len(live.watch._wakes) < 2:  # until it listens too
                    await ear.wait(0.01)
            args = {"task_id": "t1", "reference_results": "r"}
            await anyio.to_thread.run_sync(lambda: other.moa_start_debate(**args))

    anyio.run(waits)
    assert (found[0].status, found[0].turn, found[0].round) == ("your_turn", 1, 1)
    other.moa_submit_turn(task_id="t1", agent_id="a", content="one")
    other.kill()
    assert [t["content"] for t in look(Desk(live), "b")["full_context"]["transcript"]] == ["one"]


@pytest.mark.req("debate:5")
def test_only_the_speaker_speaks_and_asking_again_changes_no_turn(desk: Desk) -> None:
    begin(desk)
    with refused("not_your_turn", "turn 1", "of a"):
        desk.moa_submit_turn("t1", "b", "x")
    with refused("not_found", "a, b"):
        look(desk, "zz")
    with refused("not_found", "a, b"):
        desk.moa_submit_turn("t1", "zz", "x")
    assert {look(desk, "a")["turn"] for _ in range(3)} == {1}
    assert look(desk, "b") == {"status": "timeout", "retry": True, "state": "debating", "speaker": "a", "cursor": ""}
    for vote in ("true", 1):
        with refused("invalid", "signoff"):
            desk.moa_submit_turn("t1", "a", "x", signoff=vote)
    with refused("invalid", "content"):
        desk.moa_submit_turn("t1", "a", " \n ")
    with refused("too_large", "20001", "20000"):
        desk.moa_submit_turn("t1", "a", "x" * 20_001)
    assert desk.bus.store.keys(".bus/debates/t1/turns") == []


@pytest.mark.req("debate:6")
def test_a_debate_runs_through_its_rounds_and_is_archived(disk: Bus) -> None:
    desk = Desk(disk)
    begin(desk)
    desk.moa_board_write("note", "n", scope="task:t1", tags=["x"])
    answers = [desk.moa_submit_turn("t1", agent, f"{agent}{n}") for n, agent in enumerate("abab")]
    assert answers[0] == {"accepted": True, "turn": 1, "next_speaker": "b", "round": 1}
    assert answers[3] == {"accepted": True, "turn": 4, "debate_complete": True}
    told = look(desk, "a", since=2)
    assert (told["status"], told["early"], [t["turn"] for t in told["transcript"]]) == (
        "debate_complete",
        False,
        [3, 4],
    )
    with refused("debate_not_active", "complete"):
        desk.moa_submit_turn("t1", "a", "more")
    done = desk.moa_complete("t1", verdict="SAFE", confidence="high", findings=["f"])
    assert done == {"ok": True, "archive": "archive/debates/t1", "status": "complete", "already": False}
    first = files(disk)
    assert desk.moa_complete("t1", verdict="RISKY") == {**done, "already": True}
    assert files(disk) == first
    result = json.loads(first["result.json"])
    assert (result["status"], result["rounds_completed"], result["turns"], result["verdict"]) == (
        "complete",
        2,
        4,
        "SAFE",
    )
    story = events(disk)
    assert [e["seq"] for e in story] == list(range(1, len(story) + 1))
    assert [e["type"] for e in story] == [
        "task_initialized", "debate_started", *["turn_submitted", "turn_advanced"] * 3, "turn_submitted",
        "debate_complete", "task_closed",
    ]  # fmt: skip
    (note,) = [json.loads(line) for line in first["board.jsonl"].splitlines()]
    assert (note["op"], note["key"], note["value"], note["scope"]) == ("write", "note", "n", "task:t1")
    for name in first:
        (Path(disk.settings.root) / "archive" / "debates" / "t1" / name).unlink()
    reaper.sweep(disk, disk.now())
    assert files(disk) == first
    with refused("conflict", "closed"):
        desk.moa_board_write("note", "m", scope="task:t1")
    assert desk.moa_board_wait("note", scope="task:t1", cursor="1")["status"] == "closed"
    assert look(desk, "b")["status"] == "closed"


@pytest.mark.req("debate:7")
def test_all_votes_end_it_early_and_a_speech_without_one_clears_them(disk: Bus) -> None:
    desk = Desk(disk)
    begin(desk)
    desk.moa_submit_turn("t1", "a", "yes", signoff=True)
    assert look(desk, "b")["tally"] == {"signed": 1, "of": 2}
    desk.moa_submit_turn("t1", "b", "no")
    told = look(desk, "a")
    assert (told["tally"], "0/2" in told["prompt"]) == ({"signed": 0, "of": 2}, True)
    desk.moa_submit_turn("t1", "a", "yes again", signoff=True)
    ended = desk.moa_submit_turn("t1", "b", "agreed", signoff=True)
    assert ended == {"accepted": True, "turn": 4, "debate_complete": True, "early": True, "reason": "unanimous_signoff"}
    desk.moa_complete("t1")
    result = json.loads(files(disk)["result.json"])
    assert (result["rounds_completed"], result["signoffs"]) == (1, {"a": "yes again", "b": "agreed"})
    (reset,) = [e for e in events(disk) if e["type"] == "signoff_reset"]
    assert (reset["agent_id"], reset["round"], reset["reset_from"]) == ("b", 1, 1)
    desk.moa_init("alone", agents=["a"], rounds=3)
    desk.moa_start_debate("alone", "")
    assert desk.moa_submit_turn("alone", "a", "x", signoff=True)["early"]


@pytest.mark.req("debate:8")
@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_the_prompt_has_the_rules_and_no_word_of_the_debate(make: Callable[..., Bus], language: str) -> None:
    desk = Desk(make(debate={"language": language}))
    begin(desk, "a", "b", rounds=3)
    desk.moa_submit_turn("t1", "a", f"{SECRET} again")
    told = look(desk, "b")
    assert len(told["prompt"]) <= 1500
    for word in ("moa_submit_turn", "moa_wait_turn", "not_your_turn", "0/2", told["deadline"]):
        assert word in told["prompt"]
    assert SECRET not in told["prompt"]
    assert SECRET in told["full_context"]["reference_results"]


@pytest.mark.req("debate:9")
def test_a_repeated_submit_is_known_and_a_changed_one_is_not_taken(desk: Desk) -> None:
    begin(desk, rounds=1)
    first = desk.moa_submit_turn("t1", "a", "one", turn=1)
    for given_turn in (1, 0):
        assert desk.moa_submit_turn("t1", "a", "one", turn=given_turn) == {**first, "duplicate": True}
    with refused("not_your_turn"):
        desk.moa_submit_turn("t1", "a", "other", turn=1)
    last = desk.moa_submit_turn("t1", "b", "two", turn=2)
    assert desk.moa_submit_turn("t1", "b", "two", turn=2) == {**last, "duplicate": True}
    assert desk.moa_submit_turn("t1", "a", "one", turn=1) == {**first, "duplicate": True}
    desk.moa_complete("t1")
    assert desk.moa_submit_turn("t1", "b", "two", turn=2)["duplicate"]
    assert len(desk.bus.store.keys(".bus/debates/t1/turns")) == 3


@pytest.mark.req("debate:10")
@posix
def test_of_eight_processes_that_speak_for_one_agent_one_is_taken(judge: Judge) -> None:
    found = judge("submit_race")
    assert found == {"said": ["accepted", *["not_your_turn"] * 7], "turns": 1}


@pytest.mark.req("debate:11")
@posix
@pytest.mark.parametrize("act", ["submit_killed", "complete_killed"])
def test_a_kill_before_any_write_counts_a_turn_once_and_closes_once(judge: Judge, act: str) -> None:
    found = judge(act)
    assert found["wrong"] == []
    assert found["points"] > 5


@pytest.mark.req("debate:12")
def test_a_silent_speaker_pauses_the_debate_until_it_speaks(desk: Desk, clock: ManualClock) -> None:
    begin(desk, turn_timeout_s=2, on_timeout="pause")
    assert look(desk, "b")["state"] == "debating"
    clock.advance(3)
    told = look(desk, "b")
    assert (told["state"], told["speaker"]) == ("paused", "a")
    assert look(desk, "a")["status"] == "your_turn"
    assert desk.moa_submit_turn("t1", "a", "late")["next_speaker"] == "b"
    assert look(desk, "b")["status"] == "your_turn"


@pytest.mark.req("debate:13")
def test_who_misses_two_turns_is_absent_and_comes_back_by_a_call(disk: Bus, clock: ManualClock) -> None:
    desk = Desk(disk)
    begin(desk, "a", "b", "c", rounds=6, turn_timeout_s=10)
    for _ in range(2):
        clock.advance(16)
        told = look(desk, "b")
        assert (told["status"], told["speaker_id"]) == ("your_turn", "b")
        desk.moa_submit_turn("t1", "b", "b", signoff=True)
        desk.moa_submit_turn("t1", "c", "c")
    told = look(desk, "b")
    assert (told["turn"], told["tally"]) == (8, {"signed": 0, "of": 2})  # turn 7, of a, was skipped at once
    look(desk, "a")
    desk.moa_submit_turn("t1", "b", "b")
    desk.moa_submit_turn("t1", "c", "c")
    assert look(desk, "a")["status"] == "your_turn"
    assert look(desk, "a")["tally"]["of"] == 3
    desk.moa_complete("t1")
    assert [e["turn"] for e in events(disk) if e["type"] == "turn_missed"] == [1, 4, 7]
    result = json.loads(files(disk)["result.json"])
    assert (result["status"], result["missed"], "absent" in result) == ("interrupted", 3, False)


@pytest.mark.req("debate:13")
def test_when_all_are_absent_it_pauses_and_any_call_goes_on(desk: Desk, clock: ManualClock) -> None:
    begin(desk, rounds=9, turn_timeout_s=10)
    for _ in range(6):
        clock.advance(16)
        reaper.sweep(desk.bus, desk.bus.now())
    assert debates.settled(desk.bus, "t1").state == "paused"
    assert look(desk, "b")["status"] in ("your_turn", "timeout")
    found = debates.settled(desk.bus, "t1")
    assert found.head is not None
    assert (found.state, found.head["speaker"], found.head["absent"]) == ("debating", "b", ["a"])


@pytest.mark.req("debate:14")
def test_waiting_keeps_a_turn_but_not_for_ever_and_a_skip_that_came_too_late_is_void(
    disk: Bus, clock: ManualClock
) -> None:
    desk = Desk(disk)
    begin(desk, turn_timeout_s=10)
    before = debates.settled(disk, "t1")
    assert before.head is not None
    for _ in range(6):
        clock.advance(6)
        assert look(desk, "a")["status"] == "your_turn"
    skip = debate.due(before.setup, before.head, disk.now())
    assert skip is not None
    assert debates.record(disk, before, skip)  # somebody who had seen the first lease only
    assert look(desk, "a")["turn"] == 1
    desk.moa_submit_turn("t1", "a", "one")
    assert [t["content"] for t in look(desk, "b")["full_context"]["transcript"]] == ["one"]
    for _ in range(9):
        clock.advance(6)
        told = look(desk, "b")
    assert told["status"] == "timeout"
    desk.moa_complete("t1")
    turns = [(e["type"], e["turn"]) for e in events(disk) if e["type"].startswith("turn_") and "turn" in e]
    assert turns == [("turn_submitted", 1), ("turn_missed", 2)]


@pytest.mark.req("debate:15")
def test_a_long_debate_is_told_in_parts_that_fit_without_reading_it_all(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(bus)
    agents = [f"agent-{n:02}" for n in range(12)]
    desk.moa_init("t1", agents=agents, rounds=20)
    desk.moa_start_debate("t1", "r" * 30_000)
    for n in range(60):
        desk.moa_submit_turn("t1", agents[n % 12], f"{n:02}" * 1000)
    reads: list[str] = []
    real = bus.store.get

    def counted(key: str) -> Any:
        reads.append(key)
        return real(key)

    monkeypatch.setattr(bus.store, "get", counted)
    told = look(desk, agents[0], since=59)
    assert [t["turn"] for t in told["full_context"]["transcript"]] == [60]
    assert len(to_json(told)) < 8000
    assert len(reads) <= 12
    said: dict[int, str] = {}
    references, cursor = "", ""
    while True:
        told = look(desk, agents[0], cursor=cursor)
        assert len(to_json(told)) < 8000
        part = told["full_context"]
        references += part.get("reference_results", "")
        for turn in part["transcript"]:
            said[turn["turn"]] = said.get(turn["turn"], "") + turn["content"]
        if not (cursor := part["cursor"]):
            break
    assert references == "r" * 30_000
    assert said == {n + 1: f"{n:02}" * 1000 for n in range(60)}
    with refused("invalid", "cursor"):
        look(desk, agents[0], cursor="nonsense")


@pytest.mark.req("debate:16")
def test_while_stopped_nothing_begins_and_a_running_debate_goes_on(desk: Desk) -> None:
    begin(desk)
    desk.moa_init("t2", agents=["a"])
    desk.emergency_stop("test")
    with refused("stopped"):
        desk.moa_init("t3", agents=["a"])
    with refused("stopped"):
        desk.moa_start_debate("t2", "x")
    assert desk.moa_submit_turn("t1", "a", "x")["accepted"]
    assert desk.moa_status()["tasks"] == ["t1", "t2"]
    desk.moa_complete("t1")
    assert desk.moa_status()["tasks"] == ["t2"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 25)), max_size=25), st.integers(1, 3))
def test_the_story_told_from_the_records_is_the_one_that_was_lived(
    acts: list[tuple[str, bool, int]], rounds: int
) -> None:
    clock = ManualClock(NOON)
    bus = memory_bus(clock=clock)
    desk = Desk(bus)
    begin(desk, "a", "b", "c", rounds=rounds, turn_timeout_s=10)
    for agent, signoff, seconds in acts:
        clock.advance(seconds)
        debates.come_back(bus, "t1", agent)
        head = debates.settled(bus, "t1").head
        assert head is not None
        if head["state"] in ("debating", "paused") and head["speaker"] == agent:
            desk.moa_submit_turn("t1", agent, f"{head['turn']}", signoff=signoff)
    found = debates.settled(bus, "t1")
    assert found.head is not None
    told = debate.events(found.setup, found.head, debates.records(bus, found))
    turns = [e["turn"] for e in told if e["type"] in ("turn_submitted", "turn_missed")]
    assert turns == list(range(1, found.head["turn"]))
    assert ("debate_complete" in [e["type"] for e in told]) == (found.state == "complete")
    assert [t["turn"] for t in debates.turns(bus, found)] == turns
    assert found.head["missed"] == sum(e["type"] == "turn_missed" for e in told)


def test_every_language_has_every_text() -> None:
    assert set(debate_words._ROUNDS) == set(debate_words._RULES) == set(debate_words._DEADLINE) == {"en", "ja", "zh"}
