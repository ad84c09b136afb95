"""Any verbs in any order, by several holders who may die, while time passes: what must always be true stays true."""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agent_bus.app import memory_bus, open_bus
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.domain.task import (
    IN_PROGRESS,
    IN_REVIEW,
    PENDING,
    PENDING_APPROVAL,
    TERMINAL,
    TRANSITIONS,
    Task,
    place,
)
from agent_bus.operations import stop
from agent_bus.settings import Settings
from agent_bus.times import stamp
from tests.e2e.desk import AGENT, Desk
from tests.tools.audit import audit, tasks

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
HOLDERS = st.integers(0, 2)
PICK = st.integers(0, 40)
FULL = 12
KINDS = ("plain", "plain", "risky", "later", "behind", "behind a failure", "steps", "persistent", "frail")
STEPS: list[dict[str, Any]] = [
    {"target": AGENT, "instruction": "go on", "when": w} for w in ("completed", "failed", "always")
]

OPTIONS: dict[str, dict[str, Any]] = {
    "steps": {"next_tasks": STEPS},
    "persistent": {"retry_failed": True},
    "frail": {"max_attempts": 1},
}


class AnyOrder(RuleBasedStateMachine):
    """The verbs as rules; what was seen after the last one is the model of what may be seen next."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(NOON)
        self.bus = self.open()
        self.desks = [Desk(self.bus, session=f"h{n}") for n in range(3)]
        self.boss = Desk(self.bus, session="boss")
        self.seen: dict[str, Task] = {}
        self.sent: dict[str, tuple[str, datetime]] = {}
        self.old_leases: list[dict[str, Any]] = []
        self.deaths = 0

    def open(self) -> Bus:
        return memory_bus(clock=self.clock)

    # --- what people and agents do

    @precondition(lambda self: len(self.seen) < FULL)
    @rule(kind=st.sampled_from(KINDS), priority=st.sampled_from(("high", "normal", "low")), pick=PICK)
    def dispatch(self, kind: str, priority: str, pick: int) -> None:
        options = OPTIONS.get(kind)
        edge = {"behind": "", "behind a failure": ":failure"}.get(kind)
        known = sorted(self.seen)
        sent = self.boss.call(
            "dispatch_task",
            target=AGENT,
            from_agent="boss",
            priority=priority,
            instruction="delete the production database" if kind == "risky" else "x",
            options=json.dumps(options) if options else "",
            not_before=stamp(self.clock.now() + timedelta(seconds=600)) if kind == "later" else "",
            depends_on=[known[pick % len(known)] + edge] if edge is not None and known else [],
        )
        if stop.is_stopped(self.bus):
            assert sent["code"] == "stopped"
        else:
            assert sent["task_id"] not in self.seen
            assert (sent["status"] == PENDING_APPROVAL) == (kind == "risky")

    @rule(key=st.sampled_from("ab"))
    def dispatch_with_a_key(self, key: str) -> None:
        sent = self.boss.call(
            "dispatch_task", target=AGENT, from_agent="boss", instruction=f"once {key}", dedupe_key=key
        )
        if stop.is_stopped(self.bus):
            assert sent["code"] == "stopped"
            return
        before, at = self.sent.get(key, ("", NOON))
        if before and self.clock.now() < at + timedelta(days=1):
            assert (sent["task_id"], sent["deduplicated"]) == (before, True)
        else:
            assert not sent["deduplicated"]
            self.sent[key] = (sent["task_id"], self.clock.now())

    @rule(who=HOLDERS)
    def receive(self, who: int) -> None:
        mine, ready = self.held_by(who), [t for t in self.seen.values() if t.status == PENDING]
        got = self.desks[who].receive()
        if stop.is_stopped(self.bus):
            assert got["code"] == "stopped"
        elif mine is not None:
            assert mine.lease
            assert (got["task_id"], got["lease_id"], got["already_held"]) == (mine.task_id, mine.lease.id, True)
        elif got:
            assert not got["already_held"]
            assert got["attempt"] == (self.seen[got["task_id"]].attempt + 1)
            self.old_leases.append(got)
        else:
            assert not ready, "there was something to receive"

    @rule(who=HOLDERS, status=st.sampled_from(("completed", "failed", "blocked")), review=st.booleans())
    def submit(self, who: int, status: str, review: bool) -> None:
        holding = [n for n in range(3) if self.held_by(n)]
        if not holding:
            return
        who = holding[who % len(holding)]
        mine = self.held_by(who)
        assert mine
        assert mine.lease
        held = {"task_id": mine.task_id, "lease_id": mine.lease.id}
        first = self.desks[who].report(held, status, needs_review=review)
        again = self.desks[who].report(held, status, needs_review=review)
        other = self.desks[who].report(held, status, needs_review=review, summary="something else")
        assert (first["accepted"], first["duplicate"], again["duplicate"]) == (True, False, True)
        assert other.get("code") == "conflict"

    @rule(pick=PICK, who=HOLDERS)
    def submit_for_an_old_lease(self, pick: int, who: int) -> None:
        if not self.old_leases:
            return
        held = self.old_leases[pick % len(self.old_leases)]
        task = self.seen[held["task_id"]]
        current = {task.lease.id if task.lease else "", str((task.report or {}).get("lease_id"))}
        if held["lease_id"] not in current:
            assert self.desks[who].report(held, summary="too late")["stale_attempt"]

    @rule(pick=PICK, verdict=st.sampled_from(("accept", "rework")))
    def acknowledge(self, pick: int, verdict: str) -> None:
        reported = [t for _, t in sorted(self.seen.items()) if t.report]
        task = reported[pick % len(reported)] if reported and pick % 5 else self.pick(pick)
        if task is None:
            return
        answer = self.boss.call("acknowledge_report", task_id=task.task_id, verdict=verdict)
        if "code" in answer:
            assert answer["code"] == "conflict"
            return
        assert self.boss.call("acknowledge_report", task_id=task.task_id, verdict=verdict)["already"]
        if task.status == IN_REVIEW:
            assert answer["task_state"] == ("completed" if verdict == "accept" else PENDING)

    @rule(pick=PICK, verb=st.sampled_from(("cancel_task", "release_task", "retry_task", "approve", "reject")))
    def act(self, pick: int, verb: str) -> None:
        if (task := self.pick(pick)) is not None:
            answer = self.boss.call(verb, task_id=task.task_id)
            assert answer.get("code") in (None, "conflict", "stopped"), answer

    @rule(who=HOLDERS)
    def die(self, who: int) -> None:
        mine = self.held_by(who)
        if mine is not None:
            self.boss.bury(mine.task_id)
        self.deaths += 1
        self.desks[who] = Desk(self.bus, session=f"h{who}-{self.deaths}")

    @rule(seconds=st.sampled_from((1, 61, 700, 4000, 90_000)))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def reap(self) -> None:
        self.boss.reap()

    @precondition(lambda self: len(self.seen) > 3)
    @rule()
    def emergency_stop(self) -> None:
        self.boss.call("emergency_stop")

    @precondition(lambda self: stop.is_stopped(self.bus))
    @rule()
    def resume(self) -> None:
        assert self.boss.call("resume")["resumed"]

    # --- what must always be true

    @invariant()
    def everything_is_once_where_it_belongs(self) -> None:
        found = tasks(self.bus)
        assert all(len(places) == 1 and places[0][0] == place(places[0][1]) for places in found.values())
        now = {name: places[0][1] for name, places in found.items()}
        assert self.seen.keys() <= now.keys(), "a task is lost"
        for name, old in self.seen.items():
            self.went_on(old, now[name])
        holders = [t.lease.holder.session for t in now.values() if t.status == IN_PROGRESS and t.lease]
        assert len(holders) == len(set(holders)), "somebody holds two"
        assert audit(self.bus, stop.is_stopped(self.bus) or self.may_be_unfinished()) == []
        self.seen = now

    def went_on(self, old: Task, new: Task) -> None:
        """From the old to the new only by the table of transitions, in steps that count up."""
        assert new.attempt >= old.attempt
        assert new.step >= old.step
        if old.step == new.step:
            assert new.status == old.status
        if old.status in TERMINAL:
            assert new.status == old.status
            assert new.report == old.report
        if old.verdict is not None and old.status in TERMINAL:
            assert new.verdict == old.verdict
        fresh = (len(new.history) + new.history_cut) - (len(old.history) + old.history_cut)
        states = {old.status}
        for line in new.history[len(new.history) - fresh :]:
            table = TRANSITIONS.get(line["event"])
            if table is not None and (states & set(table[0]) or line["event"] not in ("accept",)):
                assert states & set(table[0]), f"{line['event']} of a task that is {states}"
                states = set(table[1])
        assert new.status in states

    def may_be_unfinished(self) -> bool:
        """A chain that met a stop waits for the reaper or for somebody who acknowledges again."""
        return any(
            "stop" in e.get("event", "") or "resumed" in e.get("event", "") for e in self.bus.journal.read(limit=1000)
        )

    def held_by(self, who: int) -> Task | None:
        session = self.desks[who].bus.caller.session
        return next(
            (
                t
                for t in self.seen.values()
                if t.status == IN_PROGRESS and t.lease and t.lease.holder.session == session
            ),
            None,
        )

    def pick(self, number: int) -> Task | None:
        names = sorted(self.seen)
        return self.seen[names[number % len(names)]] if names else None

    def teardown(self) -> None:
        """In the end a pass leaves nothing undone."""
        if stop.is_stopped(self.bus):
            self.boss.call("resume")
        self.boss.reap()
        assert audit(self.bus) == []
        self.bus.close()


class OnFiles(AnyOrder):
    """The same over a folder."""

    def open(self) -> Bus:
        self.folder = tempfile.mkdtemp()
        return open_bus(Settings(root=self.folder, durability="none"), clock=self.clock)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.mark.req("core:39")
@pytest.mark.parametrize(("machine", "examples", "steps"), [(AnyOrder, 60, 40), (OnFiles, 12, 25)])
def test_any_verbs_in_any_order_keep_every_task_once(machine: type[AnyOrder], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=QUIET,
            derandomize=True,
        ),
    )
