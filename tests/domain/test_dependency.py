"""When a task that waits for others may run."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_bus.domain import dependency
from agent_bus.domain.task import STATES, TERMINAL, Task
from agent_bus.errors import BusError

NOW = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
A, B = "t-20260307-120000-001", "t-20260307-120000-002"


def task(status: str = "waiting", **more: Any) -> Task:
    given: dict[str, Any] = {"task_id": A, "to": "coder", "instruction": "x", "status": status}
    return Task.model_validate(given | more)


@pytest.mark.parametrize(
    ("text", "on"),
    [(A, "success"), (f"{A}:success", "success"), (f"{A}:failure", "failure"), (f"{A}:always", "always")],
)
def test_a_dependency_names_a_task_and_how_it_must_end(text: str, on: str) -> None:
    assert dependency.parse_dependency(text) == {"task": A, "on": on}


@pytest.mark.parametrize("text", ["", "x", f"{A}:", f"{A}:often", f"{A}:success:failure", f" {A}"])
def test_other_words_are_refused_or_mean_success(text: str) -> None:
    if text == f"{A}:":
        assert dependency.parse_dependency(text)["on"] == "success"
        return
    with pytest.raises(BusError, match="depends_on"):
        dependency.parse_dependency(text)


@pytest.mark.parametrize("status", STATES)
def test_the_outcome_of_each_state(status: str) -> None:
    expected = "success" if status == "completed" else "failure" if status in TERMINAL else ""
    assert dependency.outcome(task(status)) == expected
    judged = task(status, verdict={"verdict": "accept"})
    assert dependency.outcome(judged) == ("failure" if status == "dead_letter" else expected)


@pytest.mark.req("core:7")
@pytest.mark.parametrize(
    ("ends", "edges", "state"),
    [
        (("success", "success"), ("success", "success"), "pending"),
        (("success", ""), ("success", "success"), "waiting"),
        (("failure", ""), ("success", "success"), "waiting"),
        (("failure", "success"), ("success", "success"), "blocked"),
        (("failure", "success"), ("always", "success"), "pending"),
        (("failure", "success"), ("failure", "always"), "pending"),
        (("success", "success"), ("failure", "success"), "blocked"),
    ],
)
def test_a_task_waits_until_all_have_ended(ends: tuple[str, str], edges: tuple[str, str], state: str) -> None:
    needs = [{"task": A, "on": edges[0]}, {"task": B, "on": edges[1]}]
    found, reason = dependency.readiness(task(depends_on=needs), dict(zip((A, B), ends, strict=True)), NOW)
    assert found == state
    assert bool(reason) == (state == "blocked")


@pytest.mark.req("core:9")
@pytest.mark.parametrize(
    ("text", "state"), [("2026-03-07T12:00:01Z", "scheduled"), ("2026-03-07T12:00:00Z", "pending"), ("odd", "pending")]
)
def test_a_time_comes_before_everything_else(text: str, state: str) -> None:
    assert dependency.readiness(task(not_before=text), {}, NOW)[0] == state
