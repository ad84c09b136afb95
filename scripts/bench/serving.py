"""The MCP face against the SDK's trivial tool and fastmcp's: calls, start, memory, the size of the tool list."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agent_bus.faces.listen import bus_id, token_of
from bench.boxes import AGENT, TEXT, Box, fill
from bench.measure import Row, Scale, Side, interleave, median, p50
from bench.wire import Served, Stdio, ours, toy

_CLIENTS = 8
_WARM = 20


def calls(folder: Path, scale: Scale) -> Iterator[Row]:
    """One tool call over stdio, one client."""
    empty, full = _bus(folder / "empty"), _bus(folder / "full", scale.deep)
    bus, deep = Stdio(ours(empty)), Stdio(ours(full))
    sdk, fast = Stdio(toy("sdk", "stdio")), Stdio(toy("fastmcp", "stdio"))
    acts = {
        "read": partial(bus.call, "get_shared_context", key="notes"),
        "write": partial(bus.call, "share_context", key="notes", data=TEXT, author="boss"),
        "dispatch": partial(bus.call, "dispatch_task", target=AGENT, instruction=TEXT, from_agent="boss"),
        "deep dispatch": partial(deep.call, "dispatch_task", target=AGENT, instruction=TEXT, from_agent="boss"),
        "deep read": partial(deep.call, "get_shared_context", key="notes"),
        "sdk": partial(sdk.call, "echo", text=TEXT),
        "fastmcp": partial(fast.call, "echo", text=TEXT),
    }
    for act in acts.values():
        p50(act, _WARM)
    found = interleave({n: partial(p50, act, scale.calls) for n, act in acts.items()}, scale.rounds)
    for server in (bus, deep, sdk, fast):
        server.close()
    ms = {name: median(times) * 1e3 for name, times in found.items()}
    low = min(found["sdk"]) * 1e3
    trivial = "the SDK's trivial tool"
    yield Row("MCP call over stdio, reads (get_shared_context)", ms["read"], "ms", low, trivial, "<=", 1.25)
    yield Row("MCP call over stdio, fsynced (share_context)", ms["write"], "ms", low, trivial, "<=", 1.5)
    yield Row("MCP call over stdio, fsynced (dispatch_task)", ms["dispatch"], "ms", low, trivial)
    yield Row("MCP call over stdio, reads", ms["read"], "ms", ms["fastmcp"], "fastmcp's trivial tool", "<=", 1.0)
    yield Row(f"MCP read, {scale.deep:,} queued", ms["deep read"], "ms", ms["read"], "empty bus", "<=", 1.5)
    yield Row(f"MCP dispatch, {scale.deep:,} queued", ms["deep dispatch"], "ms", ms["dispatch"], "empty bus", "<=", 1.5)


def over_http(folder: Path, scale: Scale) -> Iterator[Row]:
    """Tool calls a second over HTTP, eight clients at once, connections kept."""
    root = _bus(folder / "bus")
    box = Box(root)
    token = token_of(bus_id(box.bus.settings))[0]
    box.close()
    ports = [_free_port() for _ in range(3)]
    servers = {
        "ours": Served(ours(root, "--transport", "http", "--port", str(ports[0])), ports[0], token),
        "sdk": Served(toy("sdk", "http", str(ports[1])), ports[1]),
        "fastmcp": Served(toy("fastmcp", "http", str(ports[2])), ports[2]),
    }
    read, echo = ("get_shared_context", {"key": "notes"}), ("echo", {"text": TEXT})
    sides: dict[str, Side] = {
        name: partial(_rate, server, *(read if name == "ours" else echo), calls=scale.calls)
        for name, server in servers.items()
    }
    for side in sides.values():
        side()
    found = interleave(sides, scale.rounds)
    for server in servers.values():
        server.close()
    rate = median(found["ours"])
    yield Row("HTTP, 8 clients, reads", rate, "/s", max(found["sdk"]), "the SDK's trivial tool", ">=", 0.8)
    yield Row("HTTP, 8 clients, reads", rate, "/s", median(found["fastmcp"]), "fastmcp's trivial tool", ">=", 1.0)


def start(folder: Path, scale: Scale) -> Iterator[Row]:
    """From the start of the process to the answer of tools/list."""
    empty, full = _bus(folder / "empty"), _bus(folder / "full", scale.deep)
    commands = {
        "ours": ours(empty),
        "full": ours(full),
        "sdk": toy("sdk", "stdio"),
        "fastmcp": toy("fastmcp", "stdio"),
    }
    found = interleave({name: partial(_start, words) for name, words in commands.items()}, scale.rounds)
    ms = {name: median(times) * 1e3 for name, times in found.items()}
    low = min(found["sdk"]) * 1e3
    yield Row("start to tools/list", ms["ours"], "ms", low, "the SDK's trivial server", "<=", 1.2)
    yield Row("start to tools/list", ms["ours"], "ms", ms["fastmcp"], "fastmcp's trivial server", "<=", 0.9)
    yield Row(f"start to tools/list, {scale.deep:,} tasks stored", ms["full"], "ms", ms["ours"], "empty", "<=", 1.3)


def memory(folder: Path, scale: Scale) -> Iterator[Row]:
    """Resident memory after the tool list and some calls."""
    empty, full = _bus(folder / "empty"), _bus(folder / "full", scale.deep)
    box = Box(empty)
    box.dispatch()
    box.close()
    sides: dict[str, Side] = {
        "ours": partial(_memory, empty),
        "full": partial(_memory, full),
        "sdk": _toy_memory,
    }
    found = interleave(sides, max(3, scale.rounds - 2))
    mib = {name: median(times) for name, times in found.items()}
    low = min(found["sdk"])
    yield Row("memory of a stdio server", mib["ours"], "MiB", low, "the SDK's trivial server", "<=", 1.25)
    yield Row(f"memory, {scale.deep:,} tasks stored", mib["full"], "MiB", mib["ours"], "empty bus", "<=", 1.5)


def list_size(folder: Path, scale: Scale) -> Iterator[Row]:
    """The bytes of the tools/list result, which every session of a client pays for in its model's context."""
    root = _bus(folder / "bus")
    for words, tools, limit in (("core", "core", 10.0), ("all groups", "all", 60.0)):
        server = Stdio(ours(root, "--tools", tools))
        size = len(json.dumps(server.tools(), ensure_ascii=False, separators=(",", ":")).encode())
        server.close()
        yield Row(f"tools/list, {words}", size / 1000, "kB", None, "", "<=", limit)


def _bus(root: Path, tasks: int = 0) -> Path:
    """A bus with a note in its shared context and so many tasks queued."""
    box = Box(root)
    box.verbs.share_context("notes", TEXT, author="boss")
    if tasks:
        fill(box, tasks)
    box.close()
    return root


def _start(command: list[str]) -> float:
    server = Stdio(command)
    server.tools()
    found = time.perf_counter() - server.started
    server.close()
    return found


def _memory(root: Path) -> float:
    """After a receive, which reads the whole inbox into its index, and its report."""
    server = Stdio(ours(root, "--tools", "all"))
    server.tools()
    for _ in range(_WARM):
        server.call("get_shared_context", key="notes")
    task = server.call("receive_task", agent_name=AGENT)["structuredContent"]
    found = server.memory_mib()
    server.call("release_task", task_id=task["task"]["task_id"], lease_id=task["lease_id"])
    server.close()
    return found


def _toy_memory() -> float:
    server = Stdio(toy("sdk", "stdio"))
    server.tools()
    for _ in range(_WARM):
        server.call("echo", text=TEXT)
    found = server.memory_mib()
    server.close()
    return found


def _rate(server: Served, name: str, given: dict[str, str], calls: int) -> float:
    ready = threading.Barrier(_CLIENTS + 1)
    failed: list[Exception] = []

    def client() -> None:
        connection = server.client()
        ready.wait()
        try:
            for _ in range(calls):
                server.call(connection, name, given)
        except (OSError, RuntimeError) as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=client) for _ in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return _CLIENTS * calls / (time.perf_counter() - begun)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
