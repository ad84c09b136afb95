"""Reports and verdicts on the task's machine."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_bus.domain import lease, report
from agent_bus.domain.task import Holder, NotAllowed, Task

NOW = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)


def held(**more: Any) -> Task:
    given: dict[str, Any] = {"task_id": "t-20260307-120000-001", "to": "coder", "instruction": "x", "status": "pending"}
    return lease.claim(Task.model_validate(given | more), "l-1", "coder", Holder(), NOW, 600)


def submitted(status: str = "completed", needs_review: bool = False, wait_s: float = 0, **more: Any) -> Task:
    task = held(**more)
    return report.submit(task, report.make_report(task, "coder", status, "s", ["a"], needs_review, NOW), NOW, wait_s)


@pytest.mark.parametrize(
    ("status", "review", "wait_s", "state"),
    [
        ("completed", False, 0, "completed"),
        ("completed", True, 0, "in_review"),
        ("failed", False, 0, "failed"),
        ("failed", True, 0, "failed"),
        ("failed", False, 30, "scheduled"),
        ("blocked", False, 30, "blocked"),
    ],
)
def test_a_report_says_where_the_task_goes(status: str, review: bool, wait_s: float, state: str) -> None:
    done = submitted(status, review, wait_s, cancel={"by": "boss"})
    assert (done.status, done.cancel) == (state, None)
    assert done.report is not None
    assert (done.report["lease_id"], done.report["step"], done.step) == ("l-1", 2, 2)


def test_a_failure_that_runs_again_counts_and_waits() -> None:
    done = submitted("failed", wait_s=30)
    assert (done.crashes, done.not_before, done.lease) == (1, "2026-03-07T12:00:30.000Z", None)


@pytest.mark.parametrize(
    ("failures", "share", "wait"), [(0, 1.0, 30), (1, 1.0, 60), (3, 0.5, 120), (99, 1.0, 3600), (0, 0.0, 1)]
)
def test_the_back_off_doubles_with_full_jitter_up_to_its_cap(failures: int, share: float, wait: float) -> None:
    assert report.backoff_s(failures, 30, 3600, share) == wait


@pytest.mark.parametrize(
    ("task", "state"),
    [
        (submitted(needs_review=True), "completed"),
        (submitted("blocked"), "failed"),
        (submitted(), "completed"),
        (submitted("failed"), "failed"),
    ],
)
def test_acceptance_ends_what_waits_and_leaves_what_has_ended(task: Task, state: str) -> None:
    done = report.accept(task, "boss", NOW, "good")
    assert done.status == state
    assert done.verdict == {
        "verdict": "accept", "by": "boss", "at": "2026-03-07T12:00:00.000Z", "step": 3, "comment": "good",
    }  # fmt: skip


@pytest.mark.parametrize("task", [submitted(needs_review=True), submitted("blocked")])
def test_rework_clears_the_report_and_keeps_the_comment(task: Task) -> None:
    back = report.rework(task, "rework", "boss", NOW, "more")
    assert (back.status, back.report, back.lease, back.reason) == ("pending", None, None, "")
    assert back.comment is not None
    assert back.comment["text"] == "more"
    assert back.attempt == 1


def test_retry_forgives_crashes_and_rework_does_not() -> None:
    task = submitted("blocked", crashes=2)
    assert report.rework(task, "retry", "boss", NOW, "").crashes == 0
    assert report.rework(task, "rework", "boss", NOW, "").crashes == 2


@pytest.mark.parametrize("task", [submitted(), held(), submitted("failed", wait_s=9)])
def test_what_waits_for_no_verdict_is_not_reworked(task: Task) -> None:
    with pytest.raises(NotAllowed):
        report.rework(task, "rework", "boss", NOW, "")


def test_an_end_by_the_bus_has_its_report_in_the_same_write() -> None:
    ended = report.end(held(), "cancel", "cancelled", "boss", NOW, "no need")
    assert ended.report is not None
    assert (
        ended.report | {"worker": "bus", "status": "failed", "reason": "no need", "lease_id": "bus-2"} == ended.report
    )
    assert (ended.lease, ended.report["step"], ended.step) == (None, 2, 2)


def test_a_report_is_the_same_if_it_says_the_same() -> None:
    one = report.make_report(held(), "coder", "completed", "s", ["a"], False, NOW)
    later = report.make_report(held(), "coder", "completed", "s", ["a"], False, datetime(2027, 1, 1, tzinfo=UTC))
    assert report.same_content(one, later)
    for key, value in (
        ("worker", "x"),
        ("status", "failed"),
        ("summary", "t"),
        ("artifacts", []),
        ("needs_review", True),
    ):
        assert not report.same_content(one, {**one, key: value})
