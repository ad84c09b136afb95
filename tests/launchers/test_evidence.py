"""What the output of each CLI says of a run; the outputs are as the real ones write them."""

import json
from typing import Any

import pytest

from agent_bus.launchers import Evidence, Failure, registry

NOW = 1_772_878_500.0
SESSION = "4f0c2d1e-0000-4000-8000-00000000000a"


def read(name: str, *said: dict[str, Any] | str, code: int = 0) -> Evidence:
    """The evidence of an output: events and notes, a line each."""
    lines = (one if isinstance(one, str) else json.dumps(one) for one in said)
    return registry.load(name).read("\n".join(lines).encode(), code, 0, NOW)


def claude(result: str = "done", **more: Any) -> dict[str, Any]:
    """Claude Code's result object; its subtype is success even for failures."""
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": SESSION, "result": result, **more}


def codex_error(message: str) -> dict[str, Any]:
    """An error item of Codex."""
    return {"type": "item.completed", "item": {"id": "i", "type": "error", "message": message}}


INIT = {"type": "system", "subtype": "init", "session_id": SESSION}
CODEX = ({"type": "thread.started", "thread_id": SESSION}, {"type": "turn.started"})
CODEX_DONE = {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 5}}
GEMINI = {"type": "init", "session_id": SESSION, "model": "auto"}


def test_a_good_run_of_claude_tells_its_costs_and_what_was_denied() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 9}
    denials = [{"tool_name": "Bash"}, {"tool_name": "Write"}, {"tool_name": "Bash"}, {}, 7]
    last = claude(total_cost_usd=0.25, usage=usage, num_turns=3, permission_denials=denials)
    assert read("claude", INIT, last) == Evidence(
        session_id=SESSION,
        finished=True,
        cost_usd=0.25,
        tokens=115,
        turns=3,
        denials=("Bash", "Write"),
        session_totals=("cost_usd",),
    )


@pytest.mark.parametrize(
    ("last", "failure"),
    [
        (claude("Not logged in · Please run /login", is_error=True), "login"),
        (claude("API Error", is_error=True, api_error_status=401), "login"),
        (claude("API Error", is_error=True, api_error_status=403), "login"),
        (claude("API Error", is_error=True, api_error_status=429), "quota"),
        (claude("API Error", is_error=True, api_error_status=529), "quota"),
        (claude("You've hit your limit · resets 3pm (UTC)", is_error=True), "quota"),
        (claude("API Error: Connection refused", is_error=True, api_error_status=None), ""),
        (claude("", is_error=True, errors=["No conversation found with session ID: x"]), "session_unknown"),
    ],
)
def test_claudes_is_error_counts_and_its_words_or_status_name_the_failure(
    last: dict[str, Any], failure: Failure
) -> None:
    found = read("claude", INIT, last, code=1)
    assert (found.failed, found.finished, found.failure) == (True, True, failure)


@pytest.mark.parametrize(
    ("note", "failure", "option"),
    [
        (f"Error: Session ID {SESSION} is already in use.", "session_in_use", ""),
        (f"No conversation found with session ID: {SESSION}", "session_unknown", ""),
        ("error: unknown option '--disallowedTools'", "unknown_option", "--disallowedTools"),
        ("Claude Code cannot be launched inside another Claude Code session.", "nested", ""),
        ("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons", "config", ""),
    ],
)
def test_what_claude_writes_before_it_starts_is_read_from_standard_error(
    note: str, failure: Failure, option: str
) -> None:
    found = read("claude", note, code=1)
    assert (found.failure, found.option, found.finished) == (failure, option, False)
    assert note[:40] in found.detail


@pytest.mark.parametrize("name", [n for n in registry.names() if n != "command"])
def test_what_the_agent_itself_writes_about_limits_is_no_failure(name: str) -> None:
    words = "HTTP 429 rate limit, not logged in, usage limit reached, unknown option '--x'"
    said: list[dict[str, Any]] = [
        {"type": "assistant", "role": "assistant", "message": {"content": [{"type": "text", "text": words}]}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": words}},
        {"type": "item.completed", "item": {"type": "command_execution", "aggregated_output": words}},
        {"type": "message", "role": "assistant", "content": words},
        {"type": "text", "part": {"text": words}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": words}]}},
    ]
    assert read(name, *said, code=2).failure == ""
    assert read(name, *said, "a note: rate limit", code=0).failure == ""


def test_a_note_older_than_the_last_twenty_is_not_looked_at() -> None:
    lines = ["Not logged in", *(f"line {n}" for n in range(20))]
    assert read("claude", *lines, code=1).failure == ""
    assert read("claude", *lines[:20], code=1).failure == "login"


def test_an_unknown_exit_counts_as_a_failure_only_without_a_result() -> None:
    assert read("claude", INIT, claude(), code=-1).failed is False
    assert read("claude", INIT, code=-1).failed is True


def test_a_good_run_of_codex_is_good_in_spite_of_its_warnings() -> None:
    found = read("codex", *CODEX, codex_error("Model metadata for `x` not found."), CODEX_DONE)
    assert found == Evidence(session_id=SESSION, finished=True, tokens=15, session_totals=("tokens",))


def test_codex_that_reconnects_has_not_ended() -> None:
    reconnecting = {"type": "error", "message": "Reconnecting... 3/5 (unexpected status 429)"}
    assert read("codex", *CODEX, reconnecting, CODEX_DONE).failure == ""
    assert read("codex", *CODEX, reconnecting, code=1).failure == ""


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("You've hit your usage limit. Try again in 2 hours.", "quota"),
        ("unexpected status 401 Unauthorized: Missing bearer", "login"),
        ("stream disconnected", ""),
    ],
)
def test_the_error_of_a_failed_turn_of_codex_names_the_failure(message: str, failure: Failure) -> None:
    for code in (0, 1):
        found = read("codex", *CODEX, {"type": "turn.failed", "error": {"message": message}}, code=code)
        assert (found.failed, found.failure) == (True, failure)
        assert found.until == (NOW + 7200 if failure == "quota" else 0)


def cancelled(server: str) -> dict[str, Any]:
    """A tool call that Codex did not let through."""
    item = {"type": "mcp_tool_call", "server": server, "tool": "submit_report", "status": "failed"}
    return {"type": "item.completed", "item": {**item, "error": {"message": "user cancelled MCP tool call"}}}


def test_refused_bus_tools_of_codex_are_not_approved_whatever_the_exit_code() -> None:
    assert read("codex", *CODEX, cancelled("bus"), CODEX_DONE).failure == "not_approved"
    assert read("codex", *CODEX, "user cancelled MCP tool call", code=1).failure == "not_approved"
    assert read("codex", *CODEX, cancelled("another"), CODEX_DONE).failure == ""


def test_codex_without_its_session_says_so_on_standard_error() -> None:
    note = "Error: thread/resume: thread/resume failed: no rollout found for thread id 01a2 (code -32600)"
    assert read("codex", note, code=1).failure == "session_unknown"


def test_a_good_run_of_gemini_tells_its_tokens() -> None:
    found = read("gemini", GEMINI, {"type": "result", "status": "success", "stats": {"total_tokens": 4}})
    assert found == Evidence(session_id=SESSION, finished=True, tokens=4)


@pytest.mark.parametrize(
    ("code", "note", "failure"),
    [
        (41, '{"error": {"type": "Error", "message": "Please set an Auth method", "code": 41}}', "login"),
        (
            42,
            f'Error starting session: Session ID "{SESSION}" already exists. Use --resume to resume it',
            "session_in_use",
        ),
        (42, f'Error resuming session: Invalid session identifier "{SESSION}".', "session_unknown"),
        (42, "something is wrong with the input", "config"),
        (52, "bad settings", "config"),
        (55, "the folder is not trusted", "config"),
        (53, "Reached max session turns; rate limit", ""),
        (1, "Unknown argument: skip-trust", "unknown_option"),
    ],
)
def test_geminis_exit_codes_go_before_its_words(code: int, note: str, failure: Failure) -> None:
    found = read("gemini", *note.split("\n"), code=code)
    assert (found.failed, found.failure) == (True, failure)


def test_geminis_error_result_names_the_failure() -> None:
    error = {"type": "Error", "message": "You exceeded your current quota. Please retry in 34.5s"}
    found = read("gemini", GEMINI, {"type": "result", "status": "error", "error": error}, code=1)
    assert (found.failure, found.until) == ("quota", NOW + 34.5)


def test_qwens_output_may_be_one_array() -> None:
    events = [INIT, {"type": "result", "is_error": True, "error": {"message": "Incorrect API key provided"}}]
    found = read("qwen", json.dumps(events), code=1)
    assert (found.session_id, found.failure, found.finished) == (SESSION, "login", True)


def test_agy_that_says_nothing_but_a_note_was_denied_its_tools() -> None:
    assert read("agy", "tool use was denied", code=0).failure == "not_approved"
    assert read("agy", {"type": "init", "conversation_id": SESSION}, code=0) == Evidence(session_id=SESSION)
    assert read("agy", code=0) == Evidence()


def test_cursors_result_shows_that_its_turn_is_over_though_it_lives() -> None:
    assert read("cursor", INIT, {"type": "result", "is_error": False}, code=-1).finished is True
    assert read("cursor", INIT, code=-1).finished is False


def test_opencode_sums_its_steps() -> None:
    step = {"type": "step_finish", "sessionID": "ses_1", "part": {"cost": 0.5, "tokens": {"input": 3, "output": 1}}}
    last = {**step, "part": {**step["part"], "reason": "stop"}}  # type: ignore[dict-item]
    found = read("opencode", step, last)
    assert found == Evidence(session_id="ses_1", finished=True, cost_usd=1.0, tokens=8, turns=2)


def test_opencodes_error_event_names_the_failure() -> None:
    error = {"name": "APIError", "data": {"message": "Unauthorized: invalid api key"}}
    assert read("opencode", {"type": "error", "sessionID": "ses_1", "error": error}, code=1).failure == "login"


@pytest.mark.parametrize(("code", "failure"), [(75, "quota"), (1, "config"), (2, "")])
def test_kimis_exit_codes(code: int, failure: Failure) -> None:
    assert read("kimi", "something", code=code).failure == failure


def test_kimis_session_is_read_from_its_events() -> None:
    found = read("kimi", {"role": "assistant", "content": "x"}, {"role": "meta", "session_id": "s-1"})
    assert (found.session_id, found.finished) == ("s-1", True)


def test_a_program_may_tell_its_costs_in_its_last_line() -> None:
    last = '{"session_id": "s-1", "cost_usd": 0.5, "tokens": 7}'
    assert read("command", "working", last, "", "#agent-bus 2026 end") == Evidence(
        session_id="s-1", finished=True, cost_usd=0.5, tokens=7
    )
    assert read("command", last, "more").session_id == ""


def test_a_programs_words_are_never_read_as_a_failure_of_a_cli() -> None:
    found = read("command", "rate limit", '{"error": "not logged in"}', code=1)
    assert (found.failed, found.failure, found.detail) == (True, "", "not logged in")


@pytest.mark.parametrize("bad", ["--resume", "a b", "x/../y", "", 7, None, "x" * 200, "a\n"])
def test_a_session_id_that_could_not_stand_in_argv_is_none(bad: object) -> None:
    for name in ("claude", "codex", "gemini", "opencode", "kimi", "agy"):
        event = dict.fromkeys(("session_id", "thread_id", "sessionID", "conversation_id"), bad)
        output = json.dumps({"type": "init", **event}).encode()
        assert registry.load(name).session_in(output) == ""


@pytest.mark.parametrize("key", ["claude session_id", "codex thread_id", "opencode sessionID", "agy conversation_id"])
def test_the_session_is_known_while_the_run_still_writes(key: str) -> None:
    name, field = key.split()
    output = b"note\n" + json.dumps({"type": "init", field: SESSION}).encode() + b'\n{"type": "half'
    assert registry.load(name).session_in(output) == SESSION
    assert registry.load(name).session_in(b"note\n") == ""


def test_the_detail_shows_no_secret() -> None:
    found = read("claude", claude("Invalid API key: sk-ant-api03-abcdefgh", is_error=True), code=1)
    assert "sk-ant" not in found.detail
