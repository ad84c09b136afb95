"""The HTTP face over toy commands: a server of its own process, reached over loopback."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from agent_bus.errors import HTTP_STATUS
from agent_bus.faces.guard import Names
from agent_bus.faces.listen import token_of
from tests.faces.toys import CHECKOUT, PATIENCE_S, Meeting, toy_program

JSON = {"Content-Type": "application/json"}
MCP = {**JSON, "Accept": "application/json, text/event-stream"}
CODEX, READER = "codex-token", "reader-token"
SETTINGS = f"""
[[http.tokens]]
token_sha256 = "{hashlib.sha256(CODEX.encode()).hexdigest()}"
agent = "codex"
[[http.tokens]]
token_sha256 = "{hashlib.sha256(READER.encode()).hexdigest()}"
role = "operator"
tools = "queue"
"""


class HttpServer:
    """A server of the toys in a process of its own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        (folder / "bus").mkdir(exist_ok=True)
        config = folder / "bus.toml"
        config.write_text(SETTINGS, encoding="utf-8")
        state = {"AGENT_BUS_STATE_HOME": str(folder / "state"), "AGENT_BUS_CONFIG": str(config)}
        env = {k: v for k, v in os.environ.items() if not k.startswith("AGENT_BUS_")} | state
        command = toy_program(folder / "bus", **{"transport": "http", "port": 0, **options})
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=CHECKOUT, env=env
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp; the token is in (.+)\n", self.said)
        assert found, self.said
        self.port, self.token_file = int(found[1]), Path(found[2])
        self.token = self.token_file.read_text(encoding="ascii").strip()
        self.url = f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, token: str | None = "", **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """One request; `token` "" = the right one, None = none. Header names take _ for -."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(line):
            line.request(method, path, body, sent)
            response = line.getresponse()
            raw = response.read()
            found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, found, json.loads(raw) if raw[:1] == b"{" else raw

    def api(self, name: str, given: Any, token: str | None = "", **headers: str) -> tuple[int, Any]:
        """POST /api/<name>."""
        status, _, answer = self.ask("POST", f"/api/{name}", json.dumps(given), token, **{**JSON, **headers})
        return status, answer

    def call(self, name: str, given: Any, token: str | None = "", **headers: str) -> tuple[int, Any]:
        """tools/call over a single POST, without a session."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
        status, _, answer = self.ask("POST", "/mcp", json.dumps(body), token, **{**MCP, **headers})
        return status, answer

    def close(self) -> int:
        """Ends it as a service manager does; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        with self.process.stderr as errors:
            code = self.process.wait(timeout=PATIENCE_S)
            self.said += errors.read().decode()
        return code


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    found = HttpServer(tmp_path_factory.mktemp("http"), transport="sse")
    yield found
    assert found.close() == 0
    assert found.token not in found.said


@pytest.fixture(scope="module")
def stateful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    found = HttpServer(tmp_path_factory.mktemp("http"), stateful=True)
    yield found
    assert found.close() == 0


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    found = Meeting()
    yield found
    found.close()


def test_health_tells_who_listens_without_a_token(server: HttpServer) -> None:
    status, headers, found = server.ask("GET", "/health", token=None)
    assert status == 200
    assert headers["access-control-allow-origin"] == "*"
    assert found["ok"] is True
    assert found["product"] == "agent-bus"
    assert server.ask("GET", "/health", token=None, Host="evil.example")[0] == 403


def test_the_token_is_new_secret_and_the_same_at_the_next_start(
    server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(server.token) == 43
    if os.name != "nt":
        assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path))
    assert token_of("b-1") == token_of("b-1") != token_of("b-2")


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/?session_id=1", "/api/toy_say", "/nope"])
@pytest.mark.req("mcp:23")
def test_a_foreign_host_or_origin_or_a_bad_token_is_refused_on_every_path(server: HttpServer, path: str) -> None:
    own = f"127.0.0.1:{server.port}"

    def ask(**more: Any) -> int:
        return server.ask("POST", path, "{}", **{**MCP, **more})[0]

    assert ask(Host="evil.example") == 403
    assert ask(Host=f"evil.example:{server.port}") == 403
    assert ask(Host=f"127.0.0.1.evil.example:{server.port}") == 403
    assert ask(Host=f"127.0.0.1:{server.port + 1}") == 403
    assert ask(Origin="http://evil.example") == 403
    assert ask(Origin=f"http://127.0.0.1:{server.port + 1}") == 403
    assert ask(Origin=f"https://{own}") == 403
    assert ask(Origin="null") == 403
    assert ask(Sec_Fetch_Site="cross-site") == 403
    assert ask(token=None) == 401
    assert ask(token="wrong") == 401
    assert ask(token=None, Authorization=f"Basic {server.token}") == 401
    own_page = {"Host": f"LOCALHOST:{server.port}", "Origin": f"http://localhost:{server.port}"}
    assert ask(**own_page, Sec_Fetch_Site="same-origin") not in (401, 403)


@pytest.mark.req("mcp:23")
def test_a_missing_token_is_named_with_the_way_to_it(server: HttpServer) -> None:
    status, headers, answer = server.ask("POST", "/mcp", "{}", token=None, **MCP)
    assert status == 401
    assert headers["www-authenticate"] == "Bearer"
    assert answer["error"]["code"] == "unauthorized"


@pytest.mark.parametrize("path", ["/mcp", "/api/toy_say", "/messages/?session_id=1"])
@pytest.mark.req("mcp:23")
def test_an_oversized_body_is_cut_off_while_it_is_read(server: HttpServer, path: str) -> None:
    assert server.ask("POST", path, b"x" * 4_200_000, **MCP)[0] == 413
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as line:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        with contextlib.suppress(OSError):  # it may hang up before we have sent all
            for _ in range(80):
                line.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert line.recv(12) == b"HTTP/1.1 413"


def test_every_answer_forbids_storing_and_sniffing(server: HttpServer) -> None:
    for method, path in (("GET", "/health"), ("GET", "/nope"), ("POST", "/mcp"), ("POST", "/api/toy_look")):
        _, headers, _ = server.ask(method, path, "{}", **MCP)
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_unknown_paths_and_methods_are_errors_like_all_others(server: HttpServer) -> None:
    status, _, answer = server.ask("GET", "/nope")
    assert (status, answer["error"]["code"]) == (404, "not_found")
    status, headers, answer = server.ask("GET", "/api/toy_say")
    assert (status, headers["allow"], answer["error"]["code"]) == (405, "POST", "invalid")
    assert server.ask("PUT", "/health")[0] == 405


@pytest.mark.parametrize("code", sorted(HTTP_STATUS))
def test_each_code_has_its_status(server: HttpServer, code: str) -> None:
    error = {"code": code, "message": "because.", "hint": "Do this."}
    assert server.api("toy_refuse", {"code": code}) == (HTTP_STATUS[code], {"error": error})


def test_a_bad_body_is_refused_in_our_own_words(server: HttpServer) -> None:
    for body, status in (("{", 400), ("[1]", 400), ('"x"', 400), ("\xff", 400), ('{"txet": "x"}', 400), ("{}", 400)):
        found, _, answer = server.ask("POST", "/api/toy_say", body.encode("latin-1"), **JSON)
        assert found == status, body
        assert answer["error"]["code"] == "invalid"
    assert server.ask("POST", "/api/toy_say", "{}", Content_Type="text/plain")[0] == 415
    assert server.api("toy_sya", {})[1]["error"]["hint"] == "Did you mean toy_say?"
    assert server.api("toy_look", {}, Content_Type="application/json; charset=utf-8")[0] == 200


@pytest.mark.req("mcp:3")
def test_a_fault_of_ours_is_500_with_an_id(server: HttpServer) -> None:
    status, answer = server.api("toy_boom", {})
    assert status == 500
    assert answer["error"]["code"] == "internal"
    assert "secret" not in json.dumps(answer)


def test_api_and_tools_give_equal_json(server: HttpServer) -> None:
    given = {"text": "日本", "items": ["a"], "wait_for_previous": True}
    status, by_name = server.api("toy_say", given)
    assert status == 200
    by_tool = server.call("toy_say", given)[1]["result"]["structuredContent"]
    assert by_name == by_tool


def test_every_group_can_be_called_by_name_but_not_what_is_for_people(server: HttpServer) -> None:
    assert server.api("toy_queue", {})[0] == 200
    status, answer = server.api("toy_person", {})
    assert (status, answer["error"]["code"]) == (403, "refused")


def test_a_token_of_the_settings_is_an_identity_with_its_own_tools(server: HttpServer) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    def names(token: str) -> set[str]:
        answer = server.ask("POST", "/mcp", json.dumps(listing), token, **MCP)[2]
        return {tool["name"] for tool in answer["result"]["tools"]}

    assert server.api("toy_say", {"text": "x"}, CODEX)[1]["caller"] == "codex/http/"
    assert server.call("toy_say", {"text": "x"}, CODEX)[1]["result"]["structuredContent"]["caller"] == "codex/http/"
    assert "toy_say" in names(CODEX)
    assert names(READER) == {"toy_queue", "toy_person"}
    assert server.api("toy_say", {"text": "x"}, READER)[0] == 404
    assert server.api("toy_person", {}, READER)[0] == 200


def leave_during(
    server: HttpServer, path: str, body: dict[str, Any], meeting: Meeting, headers: dict[str, str]
) -> None:
    """Sends a request and hangs up once its verb has begun."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    line.request("POST", path, json.dumps(body), {**headers, "Authorization": f"Bearer {server.token}"})
    with meeting.reached():
        assert line.sock is not None
        line.sock.shutdown(socket.SHUT_RDWR)
        line.close()
        server.ask("GET", "/health")  # by now the server has seen the end of the line


def test_a_call_by_name_whose_client_left_gives_back_what_it_took(server: HttpServer, meeting: Meeting) -> None:
    leave_during(server, "/api/toy_take", {"port": meeting.port}, meeting, JSON)
    with meeting.reached(b"undone"):
        pass


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_a_tool_call_whose_client_left_gives_back_what_it_took(server: HttpServer, meeting: Meeting, era: str) -> None:
    params: dict[str, Any] = {"name": "toy_take", "arguments": {"port": meeting.port}}
    headers = MCP
    if era == "2026":
        headers = {**MCP, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "toy_take"}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    leave_during(server, "/mcp", body, meeting, headers)
    with meeting.reached(b"undone"):
        pass


def test_a_call_that_was_answered_keeps_what_it_took(server: HttpServer, meeting: Meeting) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    headers = {**JSON, "Authorization": f"Bearer {server.token}"}
    line.request("POST", "/api/toy_take", json.dumps({"port": meeting.port}), headers)
    with meeting.reached():
        pass
    assert json.loads(line.getresponse().read())["given"] == {"port": meeting.port}
    line.close()
    server.ask("GET", "/health")
    meeting._listener.settimeout(0.3)
    with pytest.raises(TimeoutError), meeting.reached(b"undone"):
        pass


@contextlib.asynccontextmanager
async def connected(server: HttpServer, mode: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {server.token}"}) as web:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=web)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026", "2025"])
@pytest.mark.parametrize("kind", ["server", "stateful"])
async def test_the_sdks_client_lists_and_calls(kind: str, mode: str, request: pytest.FixtureRequest) -> None:
    server: HttpServer = request.getfixturevalue(kind)
    async with connected(server, mode) as client:
        assert "toy_say" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("toy_say", {"text": "x"})
        assert result.structured_content is not None
        assert result.structured_content["given"]["text"] == "x"
        look = await client.call_tool("toy_look", {})
        assert look.structured_content is not None
        assert bool(look.structured_content["given"]["session"]) == (kind == "stateful" and mode == "legacy")


def test_a_session_that_does_not_exist_or_is_another_tokens_is_404(stateful: HttpServer) -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    _, headers, _ = stateful.ask("POST", "/mcp", body, **MCP)
    session = headers["mcp-session-id"]
    assert stateful.call("toy_look", {}, Mcp_Session_Id=session)[0] == 200
    assert stateful.call("toy_look", {}, CODEX, Mcp_Session_Id=session)[0] == 404
    assert stateful.call("toy_look", {}, Mcp_Session_Id="0" * 32)[0] == 404


@pytest.mark.req("mcp:25")
async def test_a_client_of_the_old_sse_transport_initializes_lists_and_calls(server: HttpServer) -> None:
    transport = sse_client(f"{server.url}/sse", headers={"Authorization": f"Bearer {server.token}"})
    async with Client(transport, mode="legacy") as client:
        assert "toy_say" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("toy_say", {"text": "x"})
    assert result.structured_content is not None
    assert result.structured_content["given"]["text"] == "x"


@pytest.mark.req("mcp:25")
def test_the_old_transport_is_announced_as_such(tmp_path: Path) -> None:
    server = HttpServer(tmp_path, transport="sse")
    assert server.close() == 0
    assert "/sse is for old clients only" in server.said


def test_without_the_old_transport_its_paths_do_not_exist(stateful: HttpServer) -> None:
    assert stateful.ask("GET", "/sse")[0] == 404


def test_a_taken_port_is_named_with_its_holder(server: HttpServer, tmp_path: Path) -> None:
    command = toy_program(tmp_path, transport="http", port=server.port)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=CHECKOUT, check=False)
    assert done.returncode == 2
    assert f"port {server.port} is taken by agent-bus" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_ends_waits_and_the_server_with_0(tmp_path: Path) -> None:
    server = HttpServer(tmp_path)
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    headers = {**JSON, "Authorization": f"Bearer {server.token}"}
    line.request("POST", "/api/toy_wait", json.dumps({"wait_s": 50}), headers)
    server.ask("GET", "/health")
    assert server.close() == 0
    line.close()


@pytest.mark.parametrize(
    ("host", "own"), [("192.168.1.5", "192.168.1.5:82"), ("::1", "[::1]:82"), ("0.0.0.0", "localhost:82")]
)
def test_a_server_knows_its_own_names(host: str, own: str) -> None:
    names = Names.of(host, 82, ["Bus.example", "proxy:443"], ["https://bus.example"])
    assert own in names.hosts
    assert "bus.example:82" in names.hosts
    assert "proxy:443" in names.hosts
    assert "0.0.0.0:82" not in names.hosts
    assert "https://bus.example" in names.origins
