"""The real tools as MCP clients of both eras see them, in process over the memory engine."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.client import Client

from agent_bus.app import load_features, memory_bus
from agent_bus.bus import Bus, Caller
from agent_bus.commands import bind, commands
from agent_bus.faces.mcp import build_server, describe
from agent_bus.faces.toolbox import Toolbox, offered

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026", "2025"])
CORE = {
    "dispatch_task", "receive_task", "list_tasks", "submit_report", "get_reports", "acknowledge_report",
    "update_status", "get_all_status", "share_context", "get_shared_context", "system_health", "emergency_stop",
}  # fmt: skip
KEYWORDS = {"type", "description", "enum", "default", "minimum", "maximum", "items"}
load_features()
GROUPS = sorted({c.group for c in commands().values() if not c.people})
SETS = [*GROUPS, "all"]


class Seat:
    """One client with short words for its calls."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result object of a call that must succeed; both halves are checked."""
        result = await self.client.call_tool(name, arguments)
        [item] = result.content
        assert item.type == "text"
        assert not result.is_error, item.text
        assert json.loads(item.text) == result.structured_content
        assert len(item.text) <= 8000
        found: dict[str, Any] = json.loads(item.text)
        return found

    async def refused(self, name: str, **arguments: Any) -> str:
        """The error's text of a call that must fail."""
        result = await self.client.call_tool(name, arguments)
        [item] = result.content
        assert item.type == "text"
        assert result.is_error, item.text
        return item.text


@asynccontextmanager
async def seat(bus: Bus, mode: str, agent: str = "", tools: str = "core,queue") -> AsyncIterator[Seat]:
    """A client of a server over the bus, as a stdio server's process would be."""
    caller = Caller(agent=agent, channel="mcp", process=True)
    async with Client(build_server(Toolbox(lambda: bus, caller, offered(tools, "worker"))), mode=mode) as client:
        yield Seat(client)


def plain(found: Any) -> Any:
    """A result without what differs from run to run: ids and times."""
    text = re.sub(r"t-\d{8}-\d{6}-\d+|\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{12,}\b", "X", json.dumps(found))
    return json.loads(re.sub(r'"(pid|pid_started|boot|host|age_s|free_bytes)": [^,}]+', r'"\1": 0', text))


async def a_life(call: Seat) -> list[Any]:
    """Dispatch to acknowledgement."""
    sent = await call("dispatch_task", target="coder", instruction="write tests", from_agent="boss")
    got = await call("receive_task", agent_name="coder")
    task = sent["task_id"]
    assert got["task"]["task_id"] == task
    told = await call("update_status", agent="coder", state="working", current_task_id=task)
    done = await call(
        "submit_report", task_id=task, worker="coder", status="completed", summary="done", lease_id=got["lease_id"]
    )
    reports = await call("get_reports", task_id=task)
    accepted = await call("acknowledge_report", task_id=task)
    return [sent, got, told, done, reports, accepted, await call("list_tasks"), await call("get_task", task_id=task)]


@pytest.mark.req("mcp:1")
async def test_both_eras_see_the_same_life_of_a_task() -> None:
    lives = []
    for mode in ("auto", "legacy"):
        async with seat(memory_bus(), mode) as call:
            tools = [tool.model_dump(mode="json") for tool in (await call.client.list_tools()).tools]
            lives.append((tools, plain(await a_life(call))))
    assert lives[0] == lives[1]


@ERAS
@pytest.mark.req("mcp:6")
async def test_each_reading_tool_answers_both_halves_on_an_empty_bus(mode: str) -> None:
    async with seat(memory_bus(), mode) as call:
        for name in ("list_tasks", "get_reports", "get_all_status", "get_shared_context", "system_health"):
            await call(name)


@pytest.mark.parametrize("tools", SETS)
@pytest.mark.req("mcp:4")
def test_schemas_keep_to_what_every_client_accepts(tools: str) -> None:
    for command in offered(tools, "operator").values():
        tool = describe(command)
        assert re.fullmatch(r"[a-z][a-zA-Z0-9_]{2,39}", tool.name)
        assert len(f"bus{tool.name}") <= 60
        assert set(tool.input_schema) <= {"type", "properties", "required"}
        assert tool.input_schema["type"] == "object"
        assert set(tool.input_schema.get("required", [])) <= set(tool.input_schema["properties"])
        for name, schema in tool.input_schema["properties"].items():
            where = f"{tool.name}.{name}"
            assert len(name) <= 64, where
            assert set(schema) <= KEYWORDS, where
            assert schema["type"] in ("string", "integer", "number", "boolean", "array"), where
            assert schema["description"], where
            if schema["type"] == "array":
                assert schema["items"] == {"type": "string"}, where
            if "enum" in schema:
                assert len(schema["enum"]) >= 2, where
                assert all(schema["enum"]), where
            assert schema.get("default", "x") not in (None, ""), where


def listing(tools: str, role: str = "worker") -> bytes:
    found = [describe(c).model_dump(by_alias=True, exclude_none=True) for c in offered(tools, role).values()]
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.req("mcp:5")
async def test_the_core_is_the_twelve_tools_within_the_limits_and_the_same_bytes_each_time() -> None:
    core = offered("", "worker")
    assert set(core) == CORE
    assert len(listing("core")) <= 10_000
    assert all(0 < len(c.text) <= 1000 for c in core.values())
    pages = []
    for _ in range(2):
        async with seat(memory_bus(), "legacy", tools="core") as call:
            pages.append((await call.client.list_tools()).model_dump_json(by_alias=True))
            assert len(call.client.instructions or "") <= 2000
    assert pages[0] == pages[1]


def test_no_group_is_too_large_for_the_clients() -> None:
    for group in GROUPS:
        assert len(listing(group)) <= 12_000, group
    assert len(listing("all", "operator")) <= 90_000
    assert len(offered("core,queue", "operator")) <= 40


def test_the_table_of_hints() -> None:
    hints = {name: describe(c).annotations for name, c in offered("core,queue", "worker").items()}
    reading = {n for n, h in hints.items() if h is not None and h.read_only_hint}
    assert reading == {
        "list_tasks", "get_reports", "get_all_status", "get_shared_context", "system_health", "get_task"
    }  # fmt: skip
    assert {n for n, h in hints.items() if h is not None and h.destructive_hint} == {"cancel_task"}
    assert {n for n, h in hints.items() if h is not None and h.idempotent_hint} == {
        "submit_report", "acknowledge_report", "update_status", "share_context", "emergency_stop",
        "release_task", "cancel_task",
    }  # fmt: skip
    loaded = {n for n, c in offered("all", "operator").items() if c.always_load}
    assert loaded == {"dispatch_task", "receive_task", "submit_report", "update_status", "get_reports"}


@pytest.mark.req("mcp:7")
async def test_a_full_bus_is_listed_in_answers_that_fit_and_each_task_once() -> None:
    bus = memory_bus()
    texts = (f"{n} " + "words " * (3_333 if n % 10 == 0 else 333) for n in range(1000))
    sent = [bind(bus).dispatch_task("coder", text).task_id for text in texts]
    async with seat(bus, "auto") as call:
        seen, cursor = [], ""
        while True:
            page = await call("list_tasks", limit=100, cursor=cursor)
            seen += [row["task_id"] for row in page["tasks"]]
            cursor = page["cursor"]
            if not cursor:
                break
        assert sorted(seen) == sorted(sent)
        part, whole = await call("get_task", task_id=sent[0]), ""
        while part["cursor"]:
            whole += part["task_json"]
            part = await call("get_task", task_id=sent[0], cursor=part["cursor"])
        task = json.loads(whole + part["task_json"])
        assert len(task["instruction"]) == len("0 ") + 3_333 * len("words ")
        await call("receive_task", agent_name="coder")
        await call("get_all_status")
        await call("system_health")


@ERAS
@pytest.mark.req("mcp:9")
async def test_a_wait_with_nothing_there_is_a_result(mode: str) -> None:
    bus = memory_bus()
    async with seat(bus, mode) as call:
        assert (await call("receive_task", agent_name="coder", wait_s=1))["task"] is None
        assert "wait_s" in await call.refused("receive_task", agent_name="coder", wait_s=-1)
        await call("dispatch_task", target="coder", instruction="x")
        assert (await call("receive_task", agent_name="coder", wait_s=500))["task"]["instruction"] == "x"


@ERAS
@pytest.mark.req("mcp:14")
async def test_a_context_may_come_as_text_or_as_an_object_and_null_is_none(mode: str) -> None:
    async with seat(memory_bus(), mode) as call:
        contexts = []
        for n, context in enumerate(('{"new_project": true}', {"new_project": True}, None)):
            await call("dispatch_task", target=f"coder{n}", instruction="x", context=context)
            contexts.append(
                (await call("receive_task", agent_name=f"coder{n}", worker=f"coder{n}"))["task"].get("context")
            )
    assert contexts[0] == contexts[1] == {"new_project": True}
    assert contexts[2] is None


@ERAS
@pytest.mark.req("mcp:15")
async def test_a_bad_argument_is_named_and_nothing_is_written(mode: str) -> None:
    async with seat(memory_bus(), mode) as call:
        good = {"target": "coder", "instruction": "x"}
        for bad, words in (
            ({"priority": "urgent"}, ('"urgent"', "high", "normal", "low")),
            ({"targt": "x"}, ("'targt'", "target")),
            ({"instruction": 5}, ("instruction", "text")),
            ({"target": "../x"}, ("target",)),
        ):
            said = await call.refused("dispatch_task", **{**good, **bad})
            assert said.startswith("invalid: ")
            assert all(word in said for word in words), said
        assert "wait_s" in await call.refused("receive_task", agent_name="coder", wait_s="5")
        assert "needs_review" in await call.refused(
            "submit_report", task_id="t-20260307-101500-001", worker="w", status="completed", summary="s",
            needs_review="true",
        )  # fmt: skip
        assert (await call("list_tasks"))["tasks"] == []


@ERAS
@pytest.mark.req("mcp:16", "mcp:17")
async def test_artifacts_may_come_as_an_array_or_its_text_beside_what_clients_add(mode: str) -> None:
    async with seat(memory_bus(), mode) as call:
        artifacts = []
        for n, given in enumerate((["a.py", "b.py"], '["a.py", "b.py"]')):
            task = (await call("dispatch_task", target=f"coder{n}", instruction="x"))["task_id"]
            lease = (await call("receive_task", agent_name=f"coder{n}", worker=f"coder{n}"))["lease_id"]
            await call(
                "submit_report", task_id=task, worker=f"coder{n}", status="completed", summary="s", artifacts=given,
                lease_id=lease, wait_for_previous=True,
            )  # fmt: skip
            [report] = (await call("get_reports", task_id=task))["reports"]
            artifacts.append(report["artifacts"])
    assert artifacts == [["a.py", "b.py"], ["a.py", "b.py"]]


@ERAS
@pytest.mark.req("mcp:19")
async def test_a_server_bound_to_an_agent_acts_as_it_and_as_nobody_else(mode: str) -> None:
    async with seat(memory_bus(), mode, agent="codex") as call:
        task = (await call("dispatch_task", target="codex", instruction="x"))["task_id"]
        got = await call("receive_task")
        assert got["task"]["from"] == "codex"
        report = {"task_id": task, "status": "completed", "summary": "s", "lease_id": got["lease_id"]}
        assert (await call.refused("submit_report", worker="other", **report)).startswith("not_yours: ")
        assert (await call.refused("receive_task", agent_name="other")).startswith("not_yours: ")
        assert (await call("submit_report", **report))["accepted"] is True


@ERAS
@pytest.mark.req("mcp:24")
async def test_a_risky_dispatch_from_a_client_that_cannot_ask_is_a_pending_result(mode: str) -> None:
    async with seat(memory_bus(), mode) as call:
        sent = await call("dispatch_task", target="coder", instruction="pay the invoice and delete all files")
    assert sent["status"] == "pending_approval"
    assert sent["matched_terms"]
