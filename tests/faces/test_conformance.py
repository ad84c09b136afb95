"""What `scripts/conformance` stands on: fixtures on our own factory, exceptions with reasons, a page that tells all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from agent_bus.app import load_features, memory_bus
from agent_bus.bus import Caller
from agent_bus.faces.mcp import build_server
from agent_bus.faces.toolbox import Toolbox, offered
from tests.docs.checkout import ROOT, SCRIPTS
from tests.faces.suite_answers import PROMPTS, RESOURCES, STATIC, TEMPLATE, TOOLS
from tests.faces.suite_fixtures import MISSING, extend

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026", "2025"])


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts' own modules can be imported."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


def extended() -> Any:
    """The server of the real tools, with the fixtures."""
    load_features()
    bus = memory_bus()
    return extend(build_server(Toolbox(lambda: bus, Caller(channel="mcp", process=True), offered("core", "worker"))))


@ERAS
@pytest.mark.req("mcp:27")
async def test_the_suites_fixtures_stand_beside_our_own_tools_and_answer(mode: str) -> None:
    async with Client(extended(), mode=mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools >= {*TOOLS, "dispatch_task"}
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} >= set(PROMPTS)
        assert {str(one.uri) for one in (await client.list_resources()).resources} >= set(RESOURCES)
        assert TEMPLATE in [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        assert (await client.call_tool("test_multiple_content_types", {})).content[1].type == "image"
        assert (await client.call_tool("test_error_handling", {})).is_error
        health = await client.call_tool("system_health", {})
        assert health.structured_content is not None
        assert "counts" in health.structured_content
        [item] = (await client.read_resource(TEMPLATE.replace("{id}", "7"))).contents
        assert '"7"' in getattr(item, "text", "")
        assert (await client.read_resource(STATIC)).contents
        given = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        assert "arg2='b'" in getattr(given.messages[0].content, "text", "")


@ERAS
async def test_what_the_suite_calls_and_we_lack_is_told_and_is_no_success(
    mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with Client(extended(), mode=mode) as client:
        assert (await client.call_tool("test_new_thing", {})).is_error
        with pytest.raises(MCPError):
            await client.get_prompt("test_new_prompt", {})
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith(MISSING)]
    assert told == [f"{MISSING}: tools/call test_new_thing", f"{MISSING}: prompts/get test_new_prompt"]


@pytest.mark.req("mcp:27")
def test_the_file_of_exceptions_is_in_order() -> None:
    from conformance import judge

    assert list(judge.form_problems(judge.read_exceptions())) == []
    wrong = judge.Failing(["2099"], ["a"], "because")
    assert len(list(judge.form_problems(judge.Exceptions([wrong, wrong], [])))) == 7


@pytest.mark.req("mcp:27")
def test_a_run_fails_on_what_nobody_expects_and_on_exceptions_that_are_stale() -> None:
    from conformance import judge
    from conformance.suite import LEGS, NEW, Ran

    leg = LEGS["2026"]
    checks = {"ping": {"ping": "SUCCESS"}, "logging": {"log": "FAILURE", "more": "WARNING"}}
    ran = Ran(leg, checks, {"logging:log": "No log."}, [])
    found = judge.Findings({NEW: {"ping", "logging", "tasks-a"}}, [ran], [])
    failing = judge.Failing(["2026"], ["logging:log", "logging:more"], "We do not log.")
    fits = judge.Exceptions([failing], [judge.NotRun(NEW, ["tasks-*"], "Not offered.")])

    def problems(found: judge.Findings, exceptions: judge.Exceptions) -> list[str]:
        return judge.problems(found, exceptions, complete=True)

    assert problems(found, fits) == []
    assert problems(found, replace(fits, failing=[replace(failing, checks=["logging:more"])])) == [
        "2026: logging:log: No log."
    ]
    stale = replace(failing, checks=[*failing.checks, "ping:ping"])
    assert problems(found, replace(fits, failing=[stale])) == ["2026: ping:ping passes: take it out of exceptions.toml"]
    assert problems(found, replace(fits, not_run=[])) == [f"{NEW}: tasks-a was not run"]
    assert problems(replace(found, known={NEW: {"ping", "logging"}}), fits) == [
        f"{NEW}: tasks-* covers nothing: take it out of exceptions.toml"
    ]
    lacking = replace(ran, missing=[f"{MISSING}: tools/call test_x"] * 2)
    assert problems(replace(found, legs=[lacking]), fits) == [f"2026: {MISSING}: tools/call test_x"]


@pytest.mark.req("mcp:26")
def test_an_exit_code_of_the_inspector_that_differs_is_a_problem() -> None:
    from conformance import judge
    from conformance.inspector import Seen

    calls = [Seen("tools/call", "stdio", 5, 5), Seen("tools/call", "http", 0, 5), Seen("tools/list", "http", 0, 0, "x")]
    found = judge.Findings({}, [], calls)
    assert judge.problems(found, judge.Exceptions([], []), complete=False) == [
        "inspector: tools/call (http): exit code 5, not 0",
        "inspector: tools/list (http): x",
    ]


@pytest.mark.req("mcp:26", "mcp:27")
def test_the_page_shows_every_leg_every_exception_and_every_call_of_the_inspector() -> None:
    from conformance import inspector, judge, report, suite

    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    exceptions = judge.read_exceptions()
    for line in report.reasons(exceptions):
        assert line in page
    for name in suite.LEGS:
        assert f"\n| {name} | " in page
    for what, (code, _) in inspector.METHODS.items():
        rows = [f"\n| {what} | {way}, {era} | {code} | yes |" for way in ("stdio", "http") for era in inspector.ERAS]
        assert all(row in page for row in rows), what
