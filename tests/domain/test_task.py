"""The table of what may follow what, and the document."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_bus.domain.task import (
    HISTORY,
    NOTE_CHARS,
    PARKED,
    SEED_KEYS,
    STATES,
    TERMINAL,
    TRANSITIONS,
    NotAllowed,
    Task,
    aged_rank,
    follow,
    may,
    note_event,
    place,
    rank,
    read_task,
)

NOW = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
ID = "t-20260307-120000-001"


def task(status: str = "pending", **more: Any) -> Task:
    value = {"task_id": ID, "from": "boss", "to": "Coder", "instruction": "x", "status": status}
    return read_task(value | more)


@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("event", list(TRANSITIONS))
def test_an_event_happens_where_the_table_has_it_and_nowhere_else(event: str, status: str) -> None:
    sources, targets = TRANSITIONS[event]
    assert may(task(status), event) == (status in sources)
    for target in STATES:
        if status in sources and target in targets:
            done = follow(task(status, step=4), event, target, "boss", NOW, "why")
            assert (done.status, done.step) == (target, 5)
            line = {"at": "2026-03-07T12:00:00.000Z", "event": event, "by": "boss", "note": "why"}
            assert done.history == [line]
        else:
            with pytest.raises(NotAllowed):
                follow(task(status), event, target, "boss", NOW)


def test_terminal_states_never_change() -> None:
    assert not [e for e, (sources, _) in TRANSITIONS.items() if TERMINAL & set(sources)]


def test_every_state_can_be_reached_and_left_unless_it_is_terminal() -> None:
    sources = {s for into, _ in TRANSITIONS.values() for s in into}
    targets = {t for _, out in TRANSITIONS.values() for t in out}
    assert sources == set(STATES) - TERMINAL
    assert targets == set(STATES)


@pytest.mark.parametrize("status", STATES)
def test_the_status_decides_the_place(status: str) -> None:
    folder = place(task(status)).rpartition("/")[0]
    if status in TERMINAL:
        assert folder == "archive/2026-03"
    elif status in PARKED:
        assert folder == "waiting"
    else:
        names = {"pending_approval": "approvals", "dead_letter": "dead_letter"}
        assert folder == names.get(status, "inbox/coder")


@pytest.mark.req("core:1")
def test_a_document_has_the_seed_keys_first_and_no_others_without_need() -> None:
    assert tuple(task().value()) == SEED_KEYS


@pytest.mark.req("core:40")
def test_unknown_keys_survive_every_change() -> None:
    found = follow(task(mood={"colour": "blue"}), "cancel", "cancelled", "boss", NOW)
    assert found.value()["mood"] == {"colour": "blue"}
    assert read_task(found.value()) == found


@pytest.mark.parametrize(
    "change", [{"status": "odd"}, {"to": 1}, {"task_id": None}, {"history": "x"}, {"lease": {"id": "x"}}]
)
def test_what_is_no_task_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_task(task().value() | change)


def test_the_history_keeps_the_last_two_hundred_and_counts_what_was_cut() -> None:
    found = task()
    for n in range(HISTORY + 5):
        found = note_event(found, "note", "boss", NOW, str(n))
    assert (len(found.history), found.history_cut, found.history[0]["note"]) == (HISTORY, 5, "5")
    assert found.step == HISTORY + 5


def test_a_long_note_is_cut() -> None:
    note = note_event(task(), "note", "boss", NOW, "x" * 20_000).history[0]["note"]
    assert len(note) == NOTE_CHARS + 1


@pytest.mark.req("core:11")
def test_a_rank_rises_one_step_for_each_time_waited() -> None:
    assert [rank(p) for p in ("high", "normal", "low", "odd")] == [0, 1, 2, 1]
    assert [aged_rank("low", s, 1800) for s in (-5, 0, 1799, 1800, 3600, 99_999)] == [2, 2, 2, 1, 0, 0]
    assert aged_rank("low", 99_999, 0) == 2
