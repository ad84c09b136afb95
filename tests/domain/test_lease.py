"""Leases: whose they are, when they are lost, and what their end costs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_bus.domain import lease
from agent_bus.domain.task import Holder, Lease, Task
from agent_bus.times import stamp

NOW = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
ME = Holder(host="h", boot="b", pid_ns="n", pid=7, pid_started="1")


def held(worker: str = "coder", holder: Holder = ME, until_s: float = 600, **more: Any) -> Lease:
    return Lease(id="l-1", worker=worker, holder=holder, until=stamp(NOW + timedelta(seconds=until_s)), **more)


def task(**more: Any) -> Task:
    given: dict[str, Any] = {"task_id": "t-20260307-120000-001", "to": "coder", "instruction": "x", "status": "pending"}
    return Task.model_validate(given | more)


def claimed(**more: Any) -> Task:
    return lease.claim(task(**more), "l-1", "coder", ME, NOW, 600)


def test_a_claim_counts_the_attempt_and_clears_what_was_before() -> None:
    found = claimed(attempt=1, report={"a": 1}, verdict={"b": 1}, reason="r", step=3)
    assert (found.status, found.attempt, found.step) == ("in_progress", 2, 4)
    assert (found.report, found.verdict, found.reason) == (None, None, "")
    assert found.lease is not None
    assert found.lease.until == "2026-03-07T12:10:00.000Z"
    assert lease.held_leases(found) == {"l-1"}
    assert lease.last_lease(found, "CODER") == "l-1"
    assert lease.last_lease(found, "chef") == ""


@pytest.mark.parametrize(
    ("worker", "holder", "same"),
    [
        ("coder", ME, True),
        ("CODER", ME, True),
        ("coder#2", ME, False),
        ("coder", ME.model_copy(update={"pid": 8}), False),
        ("coder", ME.model_copy(update={"pid_started": "2"}), False),
        ("coder", ME.model_copy(update={"boot": "c"}), False),
        ("coder", ME.model_copy(update={"run": "r"}), False),
        ("coder", Holder(host="h"), False),
    ],
)
def test_a_holder_is_a_process_and_a_label(worker: str, holder: Holder, same: bool) -> None:
    assert lease.same_holder(held(), worker, holder) is same


def test_a_run_is_one_holder_whatever_its_process() -> None:
    run = held(holder=ME.model_copy(update={"run": "r"}))
    assert lease.same_holder(run, "coder#2", Holder(run="r")) is True
    assert lease.same_holder(run, "coder", Holder(run="s")) is False
    assert lease.same_holder(run, "coder", ME) is False


@pytest.mark.req("core:15", "core:16", "core:17")
@pytest.mark.parametrize(
    ("liveness", "until_s", "run", "verdict"),
    [
        ("alive", 600, "", lease.KEEP),
        ("alive", -99_999, "", lease.KEEP),
        ("dead", 600, "", lease.LOST),
        ("unknown", 1, "", lease.KEEP),
        ("unknown", -1, "", lease.LOST),
        ("dead", -1, "r", lease.KEEP),
        ("dead", -119, "r", lease.KEEP),
        ("unknown", -121, "r", lease.LOST),
    ],
)
def test_expiry_alone_takes_nothing_from_the_living(liveness: str, until_s: float, run: str, verdict: str) -> None:
    found = held(until_s=until_s, holder=ME.model_copy(update={"run": run}))
    assert lease.judge(found, NOW, liveness, 120) == verdict


def test_a_time_that_cannot_be_read_has_ended() -> None:
    assert lease.left_s(held().model_copy(update={"until": "soon"}), NOW) < 0


@pytest.mark.req("core:14")
@pytest.mark.parametrize(("after_s", "called", "crashes"), [(5, False, 0), (121, False, 1), (5, True, 1)])
def test_a_crash_counts_if_the_holder_had_begun(after_s: float, called: bool, crashes: int) -> None:
    found = claimed()
    if called:
        found = lease.renew(found, NOW, 600)
    back = lease.recover(found, NOW + timedelta(seconds=after_s), 120, "gone")
    assert (back.status, back.crashes, back.attempt, back.lease) == ("pending", crashes, 1, None)
    assert lease.recover(found, NOW + timedelta(seconds=after_s), 120, "gone", counted=False).crashes == 0


@pytest.mark.req("core:18")
def test_crashes_and_attempts_are_used_up() -> None:
    dead = lease.recover(lease.renew(claimed(crashes=2), NOW, 600), NOW, 120, "gone")
    assert (dead.status, dead.crashes) == ("dead_letter", 3)
    assert dead.reason == "gone; 3 crashes in 1 attempts"
    assert lease.attempt_cap(task()) == 12
    assert lease.recover(claimed(attempt=11), NOW, 120, "gone").status == "dead_letter"
    assert lease.recover(claimed(attempt=10), NOW, 120, "gone").status == "pending"


def test_a_task_that_was_to_be_cancelled_ends_when_it_comes_back() -> None:
    asked = claimed().model_copy(update={"cancel": {"by": "boss", "reason": "no need"}})
    for back in (lease.recover(asked, NOW, 120, "gone"), lease.release(asked, "coder", NOW)):
        assert (back.status, back.reason, back.lease) == ("cancelled", "cancelled by boss: no need", None)


def test_a_release_is_never_counted() -> None:
    back = lease.release(claimed(), "coder", NOW)
    assert (back.status, back.crashes, back.attempt) == ("pending", 0, 1)
    later = lease.release(claimed(), "coder", NOW, 30)
    assert (later.status, later.not_before) == ("scheduled", "2026-03-07T12:00:30.000Z")


def test_a_renewal_is_worth_a_write_at_the_first_call_and_after_a_tenth() -> None:
    found = claimed()
    assert lease.needs_renewal(found, NOW, 600) is True
    called = lease.renew(found, NOW, 600)
    assert called.step == found.step + 1
    assert lease.needs_renewal(called, NOW + timedelta(seconds=59), 600) is False
    assert lease.needs_renewal(called, NOW + timedelta(seconds=61), 600) is True
    assert lease.needs_renewal(task(), NOW, 600) is False


def test_an_adopted_task_has_a_lease_of_its_agent() -> None:
    found = lease.adopt(task(status="in_progress"), "l-9", NOW, 600)
    assert found.lease is not None
    assert (found.lease.worker, found.attempt, found.lease.holder.pid) == ("coder", 1, 0)
    assert lease.held_leases(found) == {"l-9"}


def test_former_workers_leave_the_present_one_out() -> None:
    again = lease.claim(lease.release(claimed(), "coder", NOW), "l-2", "Coder#2", ME, NOW, 600)
    assert lease.former_workers(again) == {"coder"}
    assert lease.former_workers(claimed()) == set()
