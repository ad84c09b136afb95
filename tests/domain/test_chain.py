"""Chains as data: what is one, which steps run, and what they are told."""

from typing import Any

import pytest

from agent_bus.domain import chain
from agent_bus.domain.task import STATES, Task
from agent_bus.errors import BusError

STEP = {"target": "a", "instruction": "b"}


def task(status: str = "completed", **more: Any) -> Task:
    given: dict[str, Any] = {"task_id": "t-20260307-120000-001", "to": "c", "instruction": "x", "status": status}
    return Task.model_validate(given | more)


@pytest.mark.parametrize("data", [{"next_tasks": [STEP]}, [STEP]])
def test_a_chain_is_a_list_or_an_object_with_one(data: Any) -> None:
    assert chain.check_chain(data) == [STEP]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ("x", "list"),
        ({}, "list"),
        ([1], "next_tasks[0]"),
        ([{"target": "a"}], "next_tasks[0].instruction"),
        ([STEP | {"instruction": " "}], "next_tasks[0].instruction"),
        ([STEP | {"target": "../x"}], "next_tasks[0].target"),
        ([STEP, STEP | {"priority": "urgent"}], "next_tasks[1].priority"),
        ([STEP | {"when": "never"}], "next_tasks[0].when"),
        ([STEP | {"odd": 1}], "next_tasks[0].odd"),
        ([STEP | {"next_tasks": {}}], "next_tasks[0].next_tasks"),
        ([STEP | {"next_tasks": [STEP, {"target": "a"}]}], "next_tasks[0].next_tasks[1].instruction"),
    ],
)
def test_a_step_that_is_none_is_named_by_its_path(data: Any, word: str) -> None:
    with pytest.raises(BusError) as caught:
        chain.check_chain(data)
    assert caught.value.code == "invalid"
    assert word in caught.value.message


def test_depth_number_and_length_are_limited() -> None:
    deep: dict[str, Any] = dict(STEP)
    for _ in range(chain.DEPTH - 1):
        deep = STEP | {"next_tasks": [deep]}
    assert chain.check_chain([deep])
    for bad in ([STEP | {"next_tasks": [deep]}], [STEP] * 201, [STEP | {"instruction": "x" * 200_001}]):
        with pytest.raises(BusError) as caught:
            chain.check_chain(bad)
        assert caught.value.code == "too_large"


@pytest.mark.parametrize("status", STATES)
def test_only_an_end_by_a_report_has_a_branch(status: str) -> None:
    assert chain.branch(task(status)) == (status if status in ("completed", "failed") else "")


@pytest.mark.parametrize(("branch", "indexes"), [("completed", [0, 2]), ("failed", [1, 2]), ("", [])])
def test_the_steps_of_a_branch(branch: str, indexes: list[int]) -> None:
    steps = [STEP, STEP | {"when": "failed"}, STEP | {"when": "always"}]
    assert [i for i, _ in chain.chosen(steps, branch)] == indexes


def test_the_texts_of_every_level() -> None:
    nested: list[dict[str, Any]] = [
        STEP | {"next_tasks": [{"target": "c", "instruction": "d"}]},
        {"target": "e", "instruction": "f"},
    ]
    assert list(chain.texts(nested)) == [("a", "b"), ("c", "d"), ("e", "f")]


def test_the_result_before_stands_under_previous() -> None:
    done = task(report={"status": "completed", "summary": "s", "artifacts": ["x"]})
    previous = {"task_id": done.task_id, "status": "completed", "summary": "s", "artifacts": ["x"]}
    assert chain.step_context({}, done) == {"previous": previous}
    assert chain.step_context({"context": "t"}, done) == {"text": "t", "previous": previous}
    assert chain.step_context({"context": {"k": 1, "previous": "old"}}, done) == {"k": 1, "previous": previous}
