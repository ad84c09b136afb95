"""The MCP face over toy commands, in process: both protocol eras through the SDK's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.types import CallToolResult

from agent_bus import app, commands
from agent_bus.bus import Bus, Caller
from agent_bus.errors import HTTP_STATUS, BusError
from agent_bus.faces import toolbox as toolboxes
from agent_bus.faces.exchange import Exchange
from agent_bus.faces.mcp import build_server, describe, instructions
from agent_bus.faces.toolbox import ROLES, Toolbox, offered
from tests.faces import toys

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026", "2025"])


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_registry", {})
    monkeypatch.setattr(app, "load_features", lambda: None)
    toys.register()


@pytest.fixture
def bus() -> Bus:
    return app.memory_bus()


@pytest.fixture
def meeting() -> Iterator[toys.Meeting]:
    found = toys.Meeting()
    yield found
    found.close()


def box(bus: Bus, role: str = "worker", tools: str = "", agent: str = "") -> Toolbox:
    return Toolbox(lambda: bus, Caller(agent=agent, role=role, channel="mcp"), offered(tools, role))


def text(result: CallToolResult) -> str:
    [item] = result.content
    assert item.type == "text"
    return item.text


@ERAS
@pytest.mark.req("mcp:6")
async def test_the_text_of_a_result_is_the_compact_json_of_its_structured_half(bus: Bus, mode: str) -> None:
    async with Client(build_server(box(bus)), mode=mode) as client:
        result = await client.call_tool("toy_say", {"text": '日本 "語"\n'})
    assert not result.is_error
    assert json.loads(text(result)) == result.structured_content
    assert "日本" in text(result)
    assert ": " not in text(result).replace("日本 ", "")


async def test_both_eras_see_the_same_tools_and_results(bus: Bus) -> None:
    seen = []
    for mode in ("auto", "legacy"):
        async with Client(build_server(box(bus)), mode=mode) as client:
            tools = [t.model_dump(mode="json") for t in (await client.list_tools()).tools]
            result = await client.call_tool("toy_say", {"text": "x", "items": ["a"]})
            seen.append((tools, result.structured_content, text(result), result.is_error))
    assert seen[0] == seen[1]


@ERAS
@pytest.mark.parametrize("code", sorted(HTTP_STATUS))
@pytest.mark.req("mcp:2")
async def test_each_codes_text_reaches_the_model_as_it_is(bus: Bus, mode: str, code: str) -> None:
    async with Client(build_server(box(bus)), mode=mode) as client:
        result = await client.call_tool("toy_refuse", {"code": code})
    assert result.is_error
    assert text(result) == f"{code}: because. Do this."
    assert result.structured_content is None


@ERAS
@pytest.mark.parametrize("name", ["toy_boom", "toy_wait_then_boom"])
@pytest.mark.req("mcp:3")
async def test_a_fault_shows_an_id_and_the_log_has_the_traceback_under_it(
    bus: Bus, mode: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(build_server(box(bus)), mode=mode) as client:
        result = await client.call_tool(name, {})
    assert result.is_error
    said = text(result)
    assert said.startswith("internal: something went wrong here (id ")
    assert "home" not in said
    assert "KeyError" not in said
    [record] = [r for r in caplog.records if r.levelname == "ERROR"]
    assert record.getMessage().split()[1] in said
    assert record.exc_info is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": "x", "tone": "urgent"}, 'invalid: tone must be high or low, got "urgent". Use "high".'),
        (
            {"text": "x", "times": "5"},
            'invalid: times must be a whole number, got "5". Use a number from 1 to 9.',
        ),
        (
            {"text": "x", "loud": "true"},
            'invalid: loud must be JSON true or false, got "true". Use true or false.',
        ),
        (
            {"text": "x", "itms": []},
            "invalid: toy_say has no parameter 'itms'; it is unknown. Did you mean items?",
        ),
        ({}, "invalid: text is missing: What."),
    ],
)
@ERAS
@pytest.mark.req("mcp:15")
async def test_a_bad_argument_is_refused_in_our_own_words(
    bus: Bus, mode: str, arguments: dict[str, Any], said: str
) -> None:
    async with Client(build_server(box(bus)), mode=mode) as client:
        result = await client.call_tool("toy_say", arguments)
    assert result.is_error
    assert text(result) == said


@ERAS
@pytest.mark.req("mcp:14", "mcp:16", "mcp:17")
async def test_json_text_null_and_what_clients_add_are_taken_as_meant(bus: Bus, mode: str) -> None:
    async with Client(build_server(box(bus)), mode=mode) as client:

        async def given(**arguments: Any) -> Any:
            result = await client.call_tool("toy_say", arguments)
            assert not result.is_error, text(result)
            assert result.structured_content is not None
            return result.structured_content["given"]

        as_text, as_object = await given(text='{"a": true}'), await given(text={"a": True})
        assert as_text["text"] == as_object["text"] == '{"a": true}'
        assert (await given(text="x", items='["a", "b"]'))["items"] == ["a", "b"]
        plain = await given(text="x")
        assert await given(text="x", tone=None, times=None, items=None) == plain
        assert await given(text="x", wait_for_previous=True, _meta_like=1) == plain


@ERAS
async def test_an_unknown_tool_is_a_result_with_the_nearest_name_or_the_way_to_it(bus: Bus, mode: str) -> None:
    async with Client(build_server(box(bus)), mode=mode) as client:
        near = await client.call_tool("toy_sya", {})
        other = await client.call_tool("toy_queue", {})
        person = await client.call_tool("toy_person", {})
    assert near.is_error
    assert other.is_error
    assert person.is_error
    assert text(near) == "Unknown tool: toy_sya. Did you mean toy_say?"
    assert "group queue" in text(other)
    assert "agent-bus toy-person" in text(person)


def test_groups_and_roles_decide_what_is_offered() -> None:
    core = set(offered("", "worker"))
    assert "toy_queue" not in core
    assert set(offered("", "orchestrator")) == core | {"toy_queue"} == set(offered("all", "worker"))
    assert set(offered("queue", "worker")) == {"toy_queue"}
    assert "toy_person" not in offered("all", "orchestrator")
    assert "toy_person" in offered("queue", "operator")
    with pytest.raises(BusError, match=r"invalid.*'rooms'.*core, queue, all"):
        offered("core,rooms", "worker")


def test_annotations_follow_from_the_record() -> None:
    found = {
        c.name: describe(c).model_dump(by_alias=True, exclude_none=True) for c in offered("all", "operator").values()
    }
    assert found["toy_say"]["annotations"] == {
        "readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
    }  # fmt: skip
    assert found["toy_look"]["annotations"]["readOnlyHint"] is True
    assert found["toy_block"]["annotations"]["destructiveHint"] is True
    assert found["toy_say"]["_meta"] == {"anthropic/alwaysLoad": True}
    assert "_meta" not in found["toy_look"]
    assert all("outputSchema" not in tool for tool in found.values())


@pytest.mark.parametrize("role", ROLES)
async def test_a_server_says_who_it_is_and_how_to_work_with_it(bus: Bus, role: str) -> None:
    async with Client(build_server(box(bus, role)), mode="legacy") as client:
        assert client.server_info is not None
        assert client.server_info.name == "agent-bus"
        assert client.server_info.version
        assert client.instructions == instructions(role)
    assert len(instructions(role)) <= 2000


@ERAS
async def test_the_caller_is_the_servers_agent_and_the_client_only_a_name_for_the_journal(bus: Bus, mode: str) -> None:
    async with Client(build_server(box(bus, agent="codex")), mode=mode) as client:
        result = await client.call_tool("toy_say", {"text": "x"})
    assert result.structured_content is not None
    assert result.structured_content["caller"].startswith("codex/mcp/mcp ")


@ERAS
async def test_a_wait_reports_progress_to_a_client_that_asked(
    bus: Bus, mode: str, monkeypatch: pytest.MonkeyPatch, meeting: toys.Meeting
) -> None:
    monkeypatch.setattr(toolboxes, "BEAT_S", 0.01)
    told: list[float] = []
    enough = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        if len(told) >= 2:
            enough.set()

    async def go_on() -> None:
        await enough.wait()
        await anyio.to_thread.run_sync(lambda: meeting.reached().__enter__())

    async with Client(build_server(box(bus)), mode=mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        result = await client.call_tool("toy_take", {"port": meeting.port}, progress_callback=on_progress)
    assert not result.is_error
    assert told == sorted(set(told))


async def test_a_call_that_is_cancelled_after_it_took_something_gives_it_back(bus: Bus, meeting: toys.Meeting) -> None:
    tools, undone = box(bus), anyio.Event()

    async def put_back() -> None:
        def see() -> None:
            with meeting.reached(b"undone"):
                pass

        await anyio.to_thread.run_sync(see)
        undone.set()

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def call() -> None:
            exchange = Exchange()
            with scope:
                try:
                    await tools.call(tools.commands["toy_take"], {"port": meeting.port}, exchange, tools.caller)
                finally:
                    await exchange.lost()

        def take() -> None:
            with meeting.reached():
                anyio.from_thread.run_sync(scope.cancel)

        tasks.start_soon(call)
        await anyio.to_thread.run_sync(take)
        tasks.start_soon(put_back)
        with anyio.fail_after(toys.PATIENCE_S):
            await undone.wait()


async def test_a_wait_whose_caller_has_gone_ends_and_has_taken_nothing(bus: Bus) -> None:
    tools, exchange = box(bus), Exchange()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(exchange.lost)
        with anyio.fail_after(toys.PATIENCE_S), pytest.raises(BusError, match="timeout"):
            await tools.call(tools.commands["toy_wait"], {"wait_s": 50}, exchange, tools.caller)
