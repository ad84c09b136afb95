"""Who listens hears that a document changed, in both eras, from any process; who does not costs nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agent_bus.app import load_features, memory_bus, open_bus
from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.commands import bind
from agent_bus.errors import BusError
from agent_bus.faces import notices
from agent_bus.faces.resources import Documents
from agent_bus.settings import Settings
from tests.faces.seats import ERAS, PATIENCE_S, Ear, client, listening, refused, toolbox
from tests.faces.toys import CHECKOUT

load_features()
PROGRAM = ["-c", "from agent_bus.faces.cli import main; raise SystemExit(main())"]
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def bus() -> Bus:
    return memory_bus()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch does not let people wait."""
    monkeypatch.setattr(notices, "MERGE_S", 0.01)
    monkeypatch.setattr(notices, "SCAN_S", 0.02)


@pytest.fixture
def ear() -> Iterator[Ear]:
    found = Ear()
    yield found
    found.close()


async def quiet(bus: Bus) -> None:
    """Returns when nobody watches the bus any more."""
    with anyio.fail_after(PATIENCE_S):
        while bus.watch._wakes:  # noqa: ASYNC110 (no event tells of it)
            await anyio.sleep(0.01)


@ERAS
@pytest.mark.usefixtures("quick")
@pytest.mark.req("mcp:34")
async def test_a_listener_hears_of_what_it_asked_for_and_of_nothing_else(bus: Bus, mode: str, ear: Ear) -> None:
    one, other = (bind(bus).dispatch_task("coder", text).task_id for text in ("a", "b"))
    wanted = (f"bus://task/{one}", "bus://context/plan", "bus://agent/coder")
    async with (
        client(toolbox(bus), mode, message_handler=ear.take) as found,
        listening(found, ear, *wanted) as kept,
    ):
        assert kept == list(wanted)
        bind(bus).cancel_task(other)
        heard = await ear.all("bus://agent/coder")
        bind(bus).share_context("plan", "x", "boss")
        heard |= await ear.all("bus://context/plan")
        got = await bind(bus).receive_task("coder", worker="coder")
        heard |= await ear.all(f"bus://task/{one}", "bus://agent/coder")
        bind(bus).submit_report(one, "coder", "completed", "done", lease_id=got.lease_id)
        heard |= await ear.all(f"bus://task/{one}", "bus://agent/coder")
    assert heard == set(wanted)


@ERAS
@pytest.mark.usefixtures("quick")
async def test_each_of_the_fixed_documents_tells_of_tasks_and_reports(bus: Bus, mode: str, ear: Ear) -> None:
    fixed = ["bus://tasks", "bus://agents", "bus://health"]
    first = bind(bus).dispatch_task("coder", "a").task_id
    report = f"bus://report/{first}"
    async with (
        client(toolbox(bus), mode, message_handler=ear.take) as found,
        listening(found, ear, *fixed, "bus://reports", report),
    ):
        bind(bus).dispatch_task("coder", "b")
        await ear.all(*fixed)
        got = await bind(bus).receive_task("coder", worker="coder")
        bind(bus).submit_report(first, "coder", "completed", "done", lease_id=got.lease_id)
        await ear.all("bus://reports", report)


async def test_time_that_passes_is_no_change() -> None:
    clock = ManualClock(datetime(2026, 3, 7, 12, 0, tzinfo=UTC))
    bus = memory_bus(clock=clock)
    bind(bus).dispatch_task("coder", "a")
    box = toolbox(bus)
    watch = notices.Notices(box, Documents(box))
    fixed = ["bus://tasks", "bus://reports", "bus://agents", "bus://health"]
    before = await watch.look(fixed)
    clock.advance(300)
    assert await watch.look(fixed) == before
    bind(bus).dispatch_task("coder", "b")
    after = await watch.look(fixed)
    assert [uri for uri in fixed if after[uri] == before[uri]] == ["bus://reports"]


@pytest.mark.req("mcp:34")
async def test_many_changes_at_once_are_one_or_two_notices(bus: Bus, ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    assert notices.MERGE_S >= 1
    monkeypatch.setattr(notices, "MERGE_S", 0.2)
    async with (
        client(toolbox(bus), "legacy", message_handler=ear.take) as found,
        listening(found, ear, "bus://context/plan", "bus://context/end"),
    ):
        for n in range(50):
            bind(bus).share_context("plan", str(n), "boss")
            await anyio.lowlevel.checkpoint()
        bind(bus).share_context("end", "x", "boss")
        heard = [await ear.next()]
        while heard[-1] != "bus://context/end":
            heard.append(await ear.next())
    assert 1 <= heard.count("bus://context/plan") <= 2


@ERAS
@pytest.mark.usefixtures("quick")
@pytest.mark.req("mcp:34")
async def test_with_the_last_listener_the_watch_ends(bus: Bus, mode: str, ear: Ear) -> None:
    async with client(toolbox(bus), mode, message_handler=ear.take) as found:
        assert not bus.watch._wakes
        async with listening(found, ear, "bus://tasks", "bus://agents"):
            bind(bus).dispatch_task("coder", "a")
            await ear.next()
            assert bus.watch._wakes
        if mode == "legacy":
            await found.session.unsubscribe_resource("bus://tasks")
            assert bus.watch._wakes
            for _ in range(2):
                await found.session.unsubscribe_resource("bus://agents")
        await quiet(bus)
        if mode == "legacy":
            await found.session.subscribe_resource("bus://tasks")
    await quiet(bus)  # a client that went away listens no more


@ERAS
@pytest.mark.req("mcp:35")
async def test_a_hundred_addresses_are_the_most_and_what_is_none_is_not_promised(bus: Bus, mode: str, ear: Ear) -> None:
    many = [f"bus://context/k{n}" for n in range(100)]
    async with client(toolbox(bus), mode) as found:
        if mode == "legacy":
            for uri in (*many, *many[:5]):
                await found.session.subscribe_resource(uri)
            error = await refused(found.session.subscribe_resource("bus://context/more"))
            unknown = await refused(found.session.subscribe_resource("bus://task/../x"))
            assert unknown.data == {"uri": "bus://task/../x"}
        else:
            async with listening(found, ear, *many[:99], "bus://task/../x") as kept:
                assert kept == many[:99]

            async def too_much() -> None:
                async with listening(found, ear, *many, "bus://context/more"):
                    pass

            error = await refused(too_much())
    assert str(error).startswith("too_large: the subscription has 101 addresses, the limit is 100.")


@pytest.mark.usefixtures("quick")
@pytest.mark.req("mcp:35")
async def test_a_server_without_sessions_says_how_to_listen(bus: Bus, ear: Ear) -> None:
    box = toolbox(bus, channel="http")
    async with client(box, "legacy") as found:
        error = await refused(found.session.subscribe_resource("bus://tasks"))
        assert "--stateful" in str(error)
        assert "subscriptions/listen" in str(error)
        await found.session.unsubscribe_resource("bus://tasks")
    async with client(box, "auto") as found, listening(found, ear, "bus://tasks") as kept:
        assert kept == ["bus://tasks"]


@ERAS
async def test_who_wants_to_listen_to_a_bus_that_is_not_there_is_told(mode: str, ear: Ear) -> None:
    def gone() -> Bus:
        raise BusError("not_found", "there is no bus.", "agent-bus init makes one.")

    box = toolbox(memory_bus())

    async def listen(found: Client) -> None:
        async with listening(found, ear, "bus://tasks"):
            pass

    async with client(type(box)(gone, box.caller, box.commands), mode) as found:
        assert "agent-bus init" in str(await refused(listen(found)))


@pytest.mark.usefixtures("quick")
async def test_a_document_that_breaks_and_one_that_is_mended_are_changes_too(tmp_path: Path, ear: Ear) -> None:
    (tmp_path / "bus").mkdir()
    bus = open_bus(Settings(root=str(tmp_path / "bus"), durability="none"))
    task = bind(bus).dispatch_task("coder", "a").task_id
    path = tmp_path / "bus" / "inbox" / "coder" / f"{task}.json"
    whole = path.read_bytes()
    async with (
        client(toolbox(bus), "legacy", message_handler=ear.take) as found,
        listening(found, ear, f"bus://task/{task}"),
    ):
        path.write_bytes(whole[:50])
        assert await ear.next() == f"bus://task/{task}"
        path.write_bytes(whole.replace(b'"a"', b'"by hand"'))
        assert await ear.next() == f"bus://task/{task}"
    bus.close()


# Real processes


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in [name for name in os.environ if name.startswith("AGENT_BUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AGENT_BUS_CONFIG", os.devnull)
    return dict(os.environ)


@pytest.fixture
def here(tmp_path: Path, environment: dict[str, str]) -> Iterator[Bus]:
    """The bus folder as this process has it open."""
    (tmp_path / "bus").mkdir()
    found = open_bus(Settings(root=str(tmp_path / "bus"), durability="none"))
    yield found
    found.close()


@asynccontextmanager
async def over_stdio(bus: Bus, environment: dict[str, str], mode: str, ear: Ear) -> AsyncIterator[Client]:
    assert bus.layout is not None
    words = ["mcp", "--root", str(bus.layout.root)]
    program = StdioServerParameters(command=sys.executable, args=[*PROGRAM, *words], env=environment, cwd=CHECKOUT)
    async with Client(program, mode=mode, message_handler=ear.take) as found:
        yield found


@contextmanager
def serving(bus: Bus, environment: dict[str, str], *words: str) -> Iterator[tuple[str, str]]:
    """The address and the token of an HTTP server of its own process."""
    assert bus.layout is not None
    command = [sys.executable, *PROGRAM, "mcp", "--root", str(bus.layout.root), "--transport", "http", "--port", "0"]
    server = subprocess.Popen([*command, *words], env=environment, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    with server.stderr as errors:
        told = re.search(r"(http://\S+/mcp); the token is in (.+)", errors.readline())
        assert told is not None
        try:
            yield told[1], Path(told[2]).read_text(encoding="ascii").strip()
        finally:
            server.terminate()
            assert server.wait(PATIENCE_S) == 0


@asynccontextmanager
async def over_http(url: str, token: str, mode: str, ear: Ear) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as web:
        transport = streamable_http_client(url, http_client=web)
        async with Client(transport, mode=mode, message_handler=ear.take) as found:
            yield found


@ERAS
@pytest.mark.req("mcp:21")
async def test_a_listener_over_stdio_hears_what_another_process_reports(
    here: Bus, environment: dict[str, str], mode: str, ear: Ear
) -> None:
    task = bind(here).dispatch_task("coder", "write tests").task_id
    got = await bind(here).receive_task("coder", worker="coder")
    async with over_stdio(here, environment, mode, ear) as found, listening(found, ear, f"bus://task/{task}"):
        bind(here).submit_report(task, "coder", "completed", "done", lease_id=got.lease_id)
        assert await ear.next() == f"bus://task/{task}"


@pytest.mark.req("mcp:21")
async def test_listeners_of_both_eras_over_http_hear_what_another_process_reports(
    here: Bus, environment: dict[str, str], ear: Ear
) -> None:
    task = bind(here).dispatch_task("coder", "write tests").task_id
    got = await bind(here).receive_task("coder", worker="coder")
    uri, other = f"bus://task/{task}", Ear()
    with serving(here, environment, "--stateful") as (url, token):
        async with (
            over_http(url, token, "legacy", ear) as old,
            over_http(url, token, "auto", other) as new,
            listening(old, ear, uri),
            listening(new, other, uri),
        ):
            bind(here).submit_report(task, "coder", "completed", "done", lease_id=got.lease_id)
            assert [await ear.next(), await other.next()] == [uri, uri]
    other.close()
