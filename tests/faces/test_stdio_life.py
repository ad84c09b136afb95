"""A stdio server as its clients see it: a process of its own, raw lines."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faces.toys import CHECKOUT, PATIENCE_S, Meeting, StdioServer, toy_program

Start = Callable[..., StdioServer]
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    for name in ("AGENT", "RUN_ID", "LEASE_ID", "ROOT", "CONFIG"):
        monkeypatch.delenv(f"AGENT_BUS_{name}", raising=False)
    found = tmp_path / "bus"
    found.mkdir()
    return found


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    """Starts a server of the toys; all are ended after the test."""
    servers = []

    def begin(where: Path | str = root, **options: object) -> StdioServer:
        servers.append(StdioServer(toy_program(where, **options)))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    found = Meeting()
    yield found
    found.close()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.req("mcp:12")
def test_each_version_of_the_old_era_is_answered_with_itself(start: Start, version: str) -> None:
    found = start().start(version)["result"]
    assert found["protocolVersion"] == version
    assert found["serverInfo"]["name"] == "agent-bus"


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28"])
@pytest.mark.req("mcp:12")
def test_any_other_version_is_answered_with_the_newest_of_the_old_era(start: Start, version: str) -> None:
    assert start().start(version)["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.req("mcp:12")
def test_a_client_of_the_new_era_is_served_and_the_eras_do_not_mix(start: Start) -> None:
    server = start()
    assert server.request("server/discover", {"_meta": ENVELOPE})["result"]["supportedVersions"] == ["2026-07-28"]
    assert server.request("tools/list", {"_meta": ENVELOPE})["result"]["tools"]
    say = {"name": "toy_say", "arguments": {"text": "x"}}
    assert (
        server.request("tools/call", {**say, "_meta": ENVELOPE})["result"]["structuredContent"]["given"]["text"] == "x"
    )
    assert server.request("tools/call", say)["error"]["code"] == -32602
    assert server.start()["error"]["code"] == -32022


@pytest.mark.req("mcp:13")
def test_garbage_batches_and_unknown_methods_do_not_harm_what_follows(start: Start) -> None:
    server = start()
    server.write(b"garbage")
    server.write(b"\xff\xfe\x00")
    server.write(b"[]")
    server.start()
    server.write(b'[{"jsonrpc":"2.0","id":99,"method":"tools/list"}]')
    server.write(b'{"jsonrpc":"2.0"')
    assert server.request("no/such")["error"]["code"] == -32601
    assert server.request("tools/list")["result"]["tools"]


def test_tools_can_be_listed_before_the_client_says_initialized(start: Start) -> None:
    server = start()
    info = {"name": "t", "version": "1"}
    server.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
    assert server.request("tools/list")["result"]["tools"]


def test_answers_are_utf8_whatever_the_locale(root: Path) -> None:
    server = StdioServer(
        toy_program(root), {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    )
    server.start()
    assert server.call("toy_say", text="日本語 ✓")["structuredContent"]["given"]["text"] == "日本語 ✓"
    server.close()


@pytest.mark.req("mcp:29")
def test_what_a_body_and_its_children_print_stays_off_the_protocols_stream(start: Start) -> None:
    server = start()
    server.start()
    assert server.call("toy_noise")["structuredContent"]["given"] == {"done": True}
    assert server.request("tools/list")["result"]["tools"]
    errors = server.close()
    assert "noise of the body" in errors
    assert "noise of a child" in errors


@pytest.mark.req("mcp:3")
def test_a_faults_traceback_stands_on_stderr_under_its_id(start: Start) -> None:
    server = start()
    server.start()
    said = server.call("toy_boom")["content"][0]["text"]
    errors = server.close()
    assert f"fault {said.partition('(id ')[2][:6]}" in errors
    assert "KeyError" in errors


def test_the_log_of_the_host_beside_the_state_holds_the_traceback_and_no_environment(
    start: Start, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_CLIENTS_TOKEN", "hush-hush")
    first = start()
    first.start()
    first.call("toy_say", text="x")  # makes the folder a bus
    server = start()
    server.start()
    said = server.call("toy_boom")["content"][0]["text"]
    errors = server.close()
    [log] = (root / ".bus" / "log").glob("mcp-*.log")
    written = log.read_text(encoding="utf-8")
    assert f"fault {said.partition('(id ')[2][:6]}" in written
    assert "hush-hush" not in written + errors


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.req("mcp:11")
def test_a_signal_ends_the_server_with_0_while_its_input_is_open(start: Start, number: int) -> None:
    server = start()
    server.start()
    server.begin_call("toy_wait", wait_s=50)
    server.request("tools/list")
    server.process.send_signal(number)
    assert server.wait() == 0


@posix
@pytest.mark.req("mcp:11")
def test_a_signal_ends_the_server_though_a_verb_does_not_return(start: Start, meeting: Meeting) -> None:
    server = start()
    server.start()
    server.begin_call("toy_block", port=meeting.port)
    with meeting.reached():
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


@posix
def test_the_second_signal_ends_it_at_once(start: Start, meeting: Meeting) -> None:
    server = start()
    server.start()
    server.begin_call("toy_block", port=meeting.port)
    with meeting.reached():
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


@pytest.mark.req("mcp:11")
def test_the_end_of_its_input_ends_the_server_with_0_in_a_wait_too(start: Start) -> None:
    server = start()
    server.start()
    server.begin_call("toy_wait", wait_s=50)
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.wait() == 0


def test_what_was_asked_before_the_input_ended_is_still_answered(root: Path) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "toy_say", "arguments": {"text": "x"}}},
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, lines)).encode()
    done = subprocess.run(
        toy_program(root), input=text, capture_output=True, timeout=PATIENCE_S, cwd=CHECKOUT, check=True
    )
    answers = {a["id"]: a for a in map(json.loads, done.stdout.splitlines())}
    assert answers[2]["result"]["structuredContent"]["given"]["text"] == "x"


@posix
def test_a_client_that_no_longer_reads_ends_the_server_with_0_and_without_a_traceback(
    start: Start, meeting: Meeting
) -> None:
    server = start()
    server.start()
    server.begin_call("toy_take", port=meeting.port)
    with meeting.reached():
        assert server.process.stdout is not None
        server.process.stdout.close()
    with meeting.reached(b"undone"):  # the answer could not be written
        pass
    assert server.wait() == 0
    assert server.process.stderr is not None
    assert b"Traceback" not in server.process.stderr.read()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing else tells of the end of a stranger's child")
def test_a_server_whose_parent_is_gone_ends_though_a_stranger_holds_its_input(root: Path) -> None:
    parent = """if True:
        import subprocess, sys
        child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
        child.stdout.readline()
        print(child.pid)
    """
    reading, writing = os.pipe()
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    os.write(writing, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}).encode() + b"\n")
    command = [sys.executable, "-c", parent, *toy_program(root, parent_s=0.5)]
    done = subprocess.run(
        command,
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        cwd=CHECKOUT,
        check=True,
    )
    os.close(reading)
    try:
        handle = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        os.close(writing)
        return
    assert select.select([handle], [], [], PATIENCE_S)[0], "the server is still there"
    os.close(handle)
    os.close(writing)


def test_a_cancelled_call_that_took_something_gives_it_back_and_is_not_answered(start: Start, meeting: Meeting) -> None:
    server = start()
    server.start()
    number = server.begin_call("toy_take", port=meeting.port)
    with meeting.reached():
        server.send("notifications/cancelled", {"requestId": number}, note=True)
        server.request("tools/list")  # the cancel is read by now
    with meeting.reached(b"undone"):
        pass
    assert server.request("tools/list")["result"]["tools"]
    assert number not in server._early


def test_an_answered_call_keeps_what_it_took(start: Start, meeting: Meeting) -> None:
    server = start()
    server.start()
    number = server.begin_call("toy_take", port=meeting.port)
    with meeting.reached():
        pass
    assert server.finish(number)["structuredContent"]["given"] == {"port": meeting.port}
    server.process.stdin.close()  # type: ignore[union-attr]
    assert server.wait() == 0


def test_verbs_that_hold_threads_do_not_make_the_server_deaf(start: Start) -> None:
    server = start()
    server.start()
    meetings = [Meeting() for _ in range(6)]
    numbers = [server.begin_call("toy_block", port=m.port) for m in meetings]
    waits = [server.begin_call("toy_wait", wait_s=50) for _ in range(60)]
    assert server.call("toy_look")["isError"] is False
    assert server.request("tools/list")["result"]["tools"]
    assert not {*numbers, *waits} & set(server._early), "a thread was waited for"
    for meeting, number in zip(meetings, numbers, strict=True):
        with meeting.reached():
            pass
        assert server.finish(number)["isError"] is False
        meeting.close()


@pytest.mark.req("mcp:18")
def test_a_server_without_a_bus_folder_starts_lists_and_says_how_to_mend_it(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / "missing")
    assert server.start()["result"]["serverInfo"]["name"] == "agent-bus"
    assert server.request("tools/list")["result"]["tools"]
    result = server.call("toy_say", text="x")
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith(
        "not_found: the bus folder missing does not exist. Run: agent-bus init"
    )
    (tmp_path / "missing").mkdir()
    assert server.call("toy_say", text="x")["isError"] is False


@pytest.mark.req("mcp:28")
def test_two_features_with_one_tool_name_stop_the_start_naming_both(start: Start) -> None:
    server = start(double=True)
    assert server.wait() == 2
    errors = server.close()
    assert "toys" in errors or "__main__" in errors
    assert "other_feature" in errors


def test_a_wrong_group_or_agent_stops_the_start(start: Start) -> None:
    server, other = start(tools="core,rooms"), start(agent="../x")
    assert server.wait() == 2
    assert "'rooms'" in server.close()
    assert other.wait() == 2
    assert "--agent" in other.close()


def test_the_agent_of_the_server_is_the_caller(start: Start) -> None:
    server = start(agent="codex")
    server.start(client="somebody")
    assert server.call("toy_say", text="x")["structuredContent"]["caller"] == "codex/mcp/somebody 1"
