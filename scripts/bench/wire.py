"""Clients of MCP servers as thin as can be, so that what is measured is the server: JSON lines, and HTTP posts."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.oneshot import CLI

VERSION = "2025-06-18"
TOY = str(Path(__file__).with_name("toy_server.py"))
_START_S = 30.0


class Stdio:
    """A server as a child process, one request at a time."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._into, self._from = self._process.stdin, os.fdopen(os.dup(self._process.stdout.fileno()), "rb")
        self._id = 0
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            line = self._from.readline()
            if not line:
                raise EOFError(f"the server has ended ({self._process.poll()})")
            found: dict[str, Any] = json.loads(line)
            if found.get("id") == self._id:
                result: dict[str, Any] = found["result"]
                return result

    def call(self, name: str, **given: Any) -> dict[str, Any]:
        """The result of a tool; it must succeed."""
        result = self.ask("tools/call", {"name": name, "arguments": given})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result['content']}")
        return result

    def tools(self) -> dict[str, Any]:
        """The result of tools/list."""
        return self.ask("tools/list", {})

    def memory_mib(self) -> float:
        """Its resident memory."""
        psutil: Any = importlib.import_module("psutil")
        return float(psutil.Process(self._process.pid).memory_info().rss) / 2**20

    def close(self) -> None:
        """Ends it as a client does, by closing its input; a slow one is killed."""
        self._into.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._from.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        self._into.write(json.dumps(message).encode() + b"\n")


class Served:
    """A server on a port of this machine.

    Args:
        command: starts it.
        port: where it will listen.
        token: sent with each request; "" = none.
    """

    def __init__(self, command: list[str], port: int, token: str = "") -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = port
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        self._await()

    def client(self) -> http.client.HTTPConnection:
        """A connection that is kept open."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def call(self, client: http.client.HTTPConnection, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool; it must succeed."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
        client.request("POST", "/mcp", json.dumps(message), self._headers)
        answer = client.getresponse()
        body = answer.read()
        found = json.loads(body) if answer.status == 200 else {}
        result: dict[str, Any] = found.get("result", {})
        if answer.status != 200 or not result or result.get("isError"):
            raise RuntimeError(f"{name}: {answer.status} {body[:300]!r}")
        return result

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            client = self.client()
            try:
                client.request("GET", "/health")
                client.getresponse().read()
                return
            except OSError:
                time.sleep(0.05)
            finally:
                client.close()
        raise TimeoutError(f"nothing listens on port {self.port}")


def ours(root: Path, *words: str) -> list[str]:
    """The command that serves a bus."""
    return [*CLI, "mcp", "--root", str(root), "--role", "orchestrator", *words]


def toy(kind: str, *words: str) -> list[str]:
    """The command of a trivial server."""
    return [sys.executable, TOY, kind, *words]
