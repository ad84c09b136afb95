"""Notices, worked out from documents: what, at which level, in which words, when."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent_bus.domain import notice as notices
from agent_bus.domain.notice import LEVEL_OF, Notice
from agent_bus.domain.task import Task, read_task
from agent_bus.launchers.output import redact
from agent_bus.locale.notices import NOTICES

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
ID = "t-20261201-120000-001"


def task(**changes: Any) -> Task:
    base = {
        "task_id": ID, "from": "boss", "to": "coder", "instruction": "Write the tests.", "status": "pending",
        "created_at": "2026-12-01T12:00:00.000Z", "step": 1,
        "history": [{"at": "2026-12-01T12:00:00.000Z", "event": "dispatch", "by": "boss"}],
    }  # fmt: skip
    return read_task({**base, **changes})


def received(n: int) -> dict[str, str]:
    return {"at": f"2026-12-01T12:0{n}:00.000Z", "event": "receive", "by": "coder", "note": f"L{n}"}


def report(status: str, attempt: int = 1, review: bool = False, worker: str = "coder") -> dict[str, Any]:
    return {"worker": worker, "status": status, "summary": "It is done.", "attempt": attempt, "needs_review": review}


def keys(found: Task, now: datetime = NOW) -> list[str]:
    return [n.key.replace(ID, "T") for n in notices.of_task(found, now, 3600)]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ["task.dispatched:T:0"]),
        ({"status": "pending_approval"}, ["task.approval_needed:T:0"]),
        (
            {"status": "pending_approval", "history": [{"event": "close_gate", "at": "", "by": "bus"}]},
            ["task.approval_needed:T:0.1"],
        ),
        (
            {"status": "completed", "attempt": 1, "history": [received(1)], "report": report("completed")},
            ["task.dispatched:T:0", "task.started:T:1", "report.submitted:T:1"],
        ),
        (
            {
                "status": "in_review", "attempt": 2, "history": [received(1), received(2)],
                "report": report("completed", 2, review=True),
            },
            ["task.dispatched:T:0", "task.started:T:1", "task.started:T:2", "report.needs_review:T:2"],
        ),
        (
            {"status": "failed", "attempt": 1, "history": [received(1)], "report": report("failed")},
            ["task.dispatched:T:0", "task.started:T:1", "task.failed:T:1"],
        ),
        (
            {"status": "scheduled", "attempt": 1, "history": [], "report": report("failed")},
            ["task.dispatched:T:0", "report.submitted:T:1"],
        ),
        ({"status": "blocked", "report": report("blocked")}, ["task.dispatched:T:0", "task.blocked:T:1"]),
        ({"status": "blocked", "reason": "t-1 failed"}, ["task.dispatched:T:0", "task.blocked:T:0.0"]),
        (
            {"status": "dead_letter", "attempt": 3, "crashes": 3, "report": report("failed", worker="bus")},
            ["task.dispatched:T:0", "task.dead_letter:T:3"],
        ),
        ({"status": "cancelled", "report": report("failed", worker="bus")}, ["task.dispatched:T:0"]),
    ],
)  # fmt: skip
def test_a_documents_state_tells_what_has_happened(changes: dict[str, Any], told: list[str]) -> None:
    assert keys(task(**changes)) == told


def test_a_holder_is_silent_once_its_time_is_over_unless_a_launchers_run_holds_the_task() -> None:
    held = {"id": "L1", "worker": "coder", "holder": {"pid": 7}, "until": "", "called_at": "2026-12-01T12:00:00.000Z"}
    one = task(status="in_progress", attempt=1, history=[received(1)], lease=held)
    assert "task.silent:T:1" not in keys(one, NOW + timedelta(seconds=3599))
    assert "task.silent:T:1" in keys(one, NOW + timedelta(seconds=3600))
    run = task(status="in_progress", attempt=1, history=[received(1)], lease={**held, "holder": {"run": "r-1"}})
    assert "task.silent:T:1" not in keys(run, NOW + timedelta(days=1))


def test_every_event_has_a_level_and_a_sentence_in_both_languages() -> None:
    assert set(LEVEL_OF) == set(NOTICES) - {"cut"}
    assert all(all(pair) for pair in NOTICES.values())
    one = notices.of_task(task(), NOW, 3600)[0]
    assert notices.worded(one, "ja", str).text.startswith("新しいタスク\n")
    assert notices.worded(one, "en", str).text.startswith("New task\n")


@pytest.mark.req("notify:9")
def test_a_hostile_summary_pings_nobody_hides_nothing_and_stays_within_its_length() -> None:
    secret = "https://discord.com/api/webhooks/42/s3cr3t-t0ken"
    summary = f"@everyone <@1> <@&2> {secret} \x1b[31mred\u202e\n# big [here](https://evil.example) " + "x" * 5000
    one = task(status="failed", attempt=1, report={**report("failed"), "summary": summary})
    made = notices.worded(notices.of_task(one, NOW, 3600)[-1], "en", redact)
    assert "@everyone" not in made.text
    assert "<@" not in made.text
    assert "s3cr3t" not in made.text
    assert "](" not in made.text
    assert "\x1b" not in made.text
    assert "\u202e" not in made.text
    assert len(made.quote) == notices.QUOTE_CHARS + 1
    many = notices.merge([made] * 40)
    shown = notices.cut_to(many, 2000, "en")
    assert len(shown) <= 2000
    assert shown.endswith(f"agent-bus get {ID}")


def test_a_secret_on_the_edge_of_the_cut_is_masked() -> None:
    one = task(instruction="y" * 190 + " sk-abcdefghijklmnopqrstuvwxyz")
    assert "sk-" not in notices.worded(notices.of_task(one, NOW, 3600)[0], "en", redact).text


@pytest.mark.parametrize(
    ("level", "events", "agents", "wants"),
    [
        ("info", [], [], True), ("need", [], [], True), ("alarm", [], [], False),
        ("info", ["task.*"], [], True), ("info", ["report.*"], [], False),
        ("info", [], ["CODER"], True), ("info", [], ["boss"], True), ("info", [], ["other"], False),
    ],
)  # fmt: skip
def test_a_channel_gets_what_its_filters_let_through(
    level: str, events: list[str], agents: list[str], wants: bool
) -> None:
    one = notices.make("task.blocked", ID, 1, "", sender="coder#2", to="boss")
    assert notices.wanted(one, level, events, agents) is wants
    assert notices.wanted(notices.make("bus.stopped", "bus", 1, ""), "alarm", [], ["other"])


def queued(subject: str, seconds: float, level: str = "info") -> Notice:
    at = (NOW + timedelta(seconds=seconds)).isoformat()
    return Notice("k", "task.started", subject, level, at, queued_at=at)


@pytest.mark.parametrize(
    ("waiting", "after_s", "quiet", "goes"),
    [
        ([queued("a", 0)], 4, False, []),
        ([queued("a", 0), queued("b", 1), queued("a", 4)], 5, False, [0, 2]),
        ([queued("a", 0), queued("a", 9)], 60, False, [0]),
        ([queued("b", 3), queued("a", 0)], 6, False, [1]),
        ([queued("a", 0), queued("b", 0, "need")], 60, True, []),
        ([queued("a", 0), queued("a", 50, "alarm"), queued("a", 51)], 60, True, [0, 1]),
    ],
)
def test_what_goes_out_together(waiting: list[Notice], after_s: float, quiet: bool, goes: list[int]) -> None:
    places, wait_s = notices.pick(waiting, NOW + timedelta(seconds=after_s), 5, quiet)
    assert places == goes
    assert bool(places) != (wait_s > 0)


def test_alarms_are_kept_for_seven_days_and_a_clock_set_back_drops_nothing() -> None:
    for level, hours, over in (("need", 23, False), ("need", 25, True), ("alarm", 167, False), ("alarm", 169, True)):
        assert notices.is_over(queued("a", 0, level), NOW + timedelta(hours=hours), 24) is over
    assert not notices.is_over(queued("a", 0), NOW - timedelta(days=30), 24)


@pytest.mark.req("notify:11")
@pytest.mark.parametrize("day", [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)])
def test_quiet_hours_follow_the_clock_on_the_wall_over_both_changes(day: datetime) -> None:
    zone = ZoneInfo("Europe/Berlin")
    minutes = [day + timedelta(minutes=m) for m in range(2 * 24 * 60)]
    for moment in minutes:
        local = moment.astimezone(zone)
        assert notices.is_quiet(local.time(), "22:00-07:00") is (local.hour >= 22 or local.hour < 7)
    assert notices.is_quiet(time(13), "12:00-14:00")
    assert not notices.is_quiet(time(14), "12:00-14:00")
    assert not notices.is_quiet(time(0), "")
