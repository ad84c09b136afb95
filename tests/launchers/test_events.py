"""Reading what CLIs write: any bytes, no exception, bounded."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bus.launchers import events, registry

KINDS = frozenset({"result"})
RESULT = b'{"type": "result", "n": 1}'


def test_events_are_lines_that_are_objects_with_a_type_and_all_else_are_notes() -> None:
    output = b'warning: x\n{"type": "other"}\n' + RESULT + b'\n{"no": "type"}\n"text"\n[1]\n{broken\n\n'
    found = events.read(output, KINDS)
    assert found.events == [{"type": "result", "n": 1}]
    assert found.notes == ["warning: x", '{"no": "type"}', '"text"', "[1]", "{broken"]


def test_our_own_lines_in_a_log_are_neither() -> None:
    found = events.read(b'#agent-bus 2026 start {"type": "result"}\n' + RESULT + b"\n\n#agent-bus 2026 end\n", KINDS)
    assert (len(found.events), found.notes) == (1, [])


def test_one_array_of_events_is_as_good_as_lines() -> None:
    found = events.read(b'[{"type": "system"}, ' + RESULT + b", 7]", KINDS)
    assert found.last("result") == {"type": "result", "n": 1}


@pytest.mark.parametrize(
    "noise",
    [
        b"\xff\xfe half \xe3\x81",
        b"\x00\x00\x00",
        b'{"type": "result", "n": "\xff"',
        b"{" * 200_000,
        b"[" * 200_000,
        b'{"type": "x", "n": ' + b"9" * 10_000 + b"}",
        b'{"type": "result", "n": "\\ud800',
        b"x" * (10 * 1024 * 1024),
        b'{"type": "result", "text": "' + b"y" * (10 * 1024 * 1024) + b'"}',
        b"\r\n\r\r\n",
    ],
)
def test_noise_is_passed_over_and_what_stands_behind_it_is_read(noise: bytes) -> None:
    found = events.read(noise + b"\n" + RESULT + b"\n" + noise, KINDS)
    assert found.last("result")["n"] == 1
    for name in registry.names():
        launcher = registry.load(name)
        launcher.read(noise + b"\n" + noise, 1, 0)
        launcher.session_in(noise)


@given(st.binary(max_size=300), st.sampled_from(registry.names()), st.integers(-1, 255))
def test_no_launcher_raises_whatever_the_bytes_are(output: bytes, name: str, code: int) -> None:
    launcher = registry.load(name)
    launcher.read(output, code, 0)
    launcher.session_in(output)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        "type item error message usage session_id thread_id result is_error api_error_status permission_denials stats "
        "part tokens cost errors num_turns total_cost_usd data name status server tool_name sessionID".split()
    ), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip
TYPES = ("result", "error", "item.completed", "turn.failed", "turn.completed", "init", "system", "step_finish", "meta")


@given(st.lists(st.tuples(st.sampled_from(TYPES), JSON), max_size=4), st.sampled_from(registry.names()))
def test_no_launcher_raises_whatever_stands_in_the_events(said: list[tuple[str, object]], name: str) -> None:
    lines = [{**(value if isinstance(value, dict) else {"item": value}), "type": kind} for kind, value in said]
    evidence = registry.load(name).read("\n".join(map(json.dumps, lines)).encode(), 1, 0)
    json.dumps(vars(evidence), ensure_ascii=False).encode("utf-8")


def test_reading_much_output_needs_little_memory() -> None:
    line = b'{"type": "assistant", "message": {"content": "' + b"z" * 1000 + b'"}}\n'
    output = line * 8000 + RESULT
    tracemalloc.start()
    try:
        assert events.read(output, KINDS).last("result")
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), (0.5, 0.5), (True, None), ("1", None), (-1, None), (float("nan"), None), (10**400, None), (None, None)],
)
def test_only_finite_numbers_that_are_not_negative_count(value: object, number: float | None) -> None:
    assert events.number(value) == number
