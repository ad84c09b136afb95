"""The options of a dispatch."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from agent_bus.domain.options import read_options
from agent_bus.errors import BusError

NOW = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, {}),
        ({"max_attempts": None}, {}),
        ({"max_attempts": 20, "retry_failed": True}, {"max_attempts": 20, "retry_failed": True}),
        ({"expires_at": "2026-03-07T14:00:00+01:00"}, {"expires_at": "2026-03-07T13:00:00.000Z"}),
        ({"labels": ["a", "ナナ"], "thread": "t.1"}, {"labels": ["a", "ナナ"], "thread": "t.1"}),
        ({"limits": {"runtime_s": 1, "cost_usd": 0.5}}, {"limits": {"runtime_s": 1, "cost_usd": 0.5}}),
    ],
)
def test_good_options_are_kept(given: dict[str, Any], kept: dict[str, Any]) -> None:
    assert read_options(json.dumps(given), NOW) == kept


def test_no_text_is_no_option() -> None:
    assert read_options("", NOW) == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{", "options"),
        ("[]", "options"),
        ("null", "options"),
        ("[" * 100_000, "options"),
        ('{"odd": 1}', "options.odd"),
        ('{"max_attempts": 0}', "options.max_attempts"),
        ('{"max_attempts": 21}', "options.max_attempts"),
        ('{"max_attempts": true}', "options.max_attempts"),
        ('{"max_attempts": "3"}', "options.max_attempts"),
        ('{"retry_failed": 1}', "options.retry_failed"),
        ('{"expires_at": "2026-03-07T14:00:00"}', "options.expires_at"),
        ('{"expires_at": "2026-03-07T12:00:00Z"}', "options.expires_at"),
        ('{"parent": "x"}', "options.parent"),
        ('{"thread": ""}', "options.thread"),
        ('{"thread": "../x"}', "options.thread"),
        (json.dumps({"labels": ["a"] * 17}), "options.labels"),
        ('{"labels": [1]}', "options.labels"),
        ('{"limits": {"odd": 1}}', "options.limits"),
        ('{"limits": {"tokens": 0}}', "options.limits.tokens"),
        ('{"limits": {"tokens": NaN}}', "options.limits.tokens"),
        ('{"limits": {"tokens": true}}', "options.limits.tokens"),
        ('{"next_tasks": [{}]}', "options.next_tasks[0].target"),
    ],
)
def test_a_bad_option_is_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(BusError) as caught:
        read_options(text, NOW)
    assert caught.value.code == "invalid"
    assert name in caught.value.message
