"""HTTP in front of stdio servers, as the suite speaks HTTP alone: each message is a line, each answer an SSE stream.

It adds nothing to what a server says and keeps nothing from it. Statuses, headers and sessions of HTTP are the
bridge's own, so that scenarios about those say nothing about the server. A connection that begins with `initialize`
gets a process of its own; requests of the newer era, which have no session, share one.
"""

from __future__ import annotations

import json
import queue
import secrets
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from conformance.served import STOP_S, Served, fixture_command, spawn

SESSION = "Mcp-Session-Id"
ANSWER_S = 60.0
Message = dict[str, Any]


class Pipe:
    """One stdio server, and the requests that wait for its lines."""

    def __init__(self, command: list[str], folder: Path, said: list[str]) -> None:
        self._process = spawn(command, folder, subprocess.PIPE)
        self._said = said
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[Message, queue.Queue[Message]]] = {}
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._listen)]
        for reader in self._readers:
            reader.start()

    def send(self, message: Message) -> None:
        """Writes one line."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def answers(self, request: Message) -> Iterator[Message]:
        """What the server says while it works on a request, the answer last; ids of several clients cannot meet."""
        number, frames = next(self._numbers), queue.Queue[Message]()
        self._waiting[number] = (request, frames)
        try:
            self.send({**request, "id": number})
            while True:
                frame = frames.get(timeout=ANSWER_S)
                if "method" in frame:
                    yield frame
                    continue
                yield {**frame, "id": request["id"]}
                return
        finally:
            del self._waiting[number]

    def close(self) -> None:
        """Ends the server by the end of its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(STOP_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                frame = json.loads(line)
                waiting = dict(self._waiting)
                number = _belongs(frame, {number: request for number, (request, _) in waiting.items()})
                if number in waiting:
                    waiting[number][1].put(frame)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            self._said.extend(line.rstrip("\n") for line in lines)


def _belongs(frame: Message, waiting: Mapping[int, Message]) -> int:
    """The number of the request that a line belongs to, 0 for none.

    Progress names the token that its request gave. Other notices, and requests of the server, name nothing that is the
    client's own: they go with the oldest request that holds no stream open.
    """
    if "method" not in frame:
        return int(frame.get("id") or 0)
    token = frame.get("params", {}).get("progressToken")
    if token is not None:
        return min((n for n, one in waiting.items() if _meta(one).get("progressToken") == token), default=0)
    named = _meta(frame).get("io.modelcontextprotocol/subscriptionId")
    if named is not None:
        return int(named)
    return min((n for n, one in waiting.items() if one["method"] != "subscriptions/listen"), default=0)


def _meta(message: Message) -> Message:
    found: Message = message.get("params", {}).get("_meta") or {}
    return found


class Bridge:
    """The pipes of one run, by session."""

    def __init__(self, root: Path, folder: Path, said: list[str]) -> None:
        self._command = fixture_command(root, transport="stdio")
        self._folder = folder
        self._said = said
        self._lock = threading.Lock()
        self._pipes: dict[str, Pipe] = {}

    def open(self) -> tuple[str, Pipe]:
        """A new session."""
        name = secrets.token_hex(8)
        with self._lock:
            self._pipes[name] = pipe = Pipe(self._command, self._folder, self._said)
        return name, pipe

    def find(self, name: str) -> Pipe | None:
        """A session's pipe; without a session the one of the newer era."""
        with self._lock:
            if not name and name not in self._pipes:
                self._pipes[name] = Pipe(self._command, self._folder, self._said)
            return self._pipes.get(name)

    def end(self, name: str) -> bool:
        """Ends a session; False if there is none."""
        with self._lock:
            pipe = self._pipes.pop(name, None)
        if pipe is not None:
            pipe.close()
        return pipe is not None

    def close(self) -> None:
        """Ends all."""
        for name in list(self._pipes):
            self.end(name)


@contextmanager
def over_stdio(root: Path, folder: Path) -> Iterator[Served]:
    """The suite's fixtures on our stdio server, reached over HTTP."""
    served = Served()
    bridge = Bridge(root, folder, served.lines)
    http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"bridge": bridge}))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{http.server_address[1]}/mcp"
    try:
        yield served
    finally:
        http.shutdown()
        http.server_close()
        bridge.close()


class _Handler(BaseHTTPRequestHandler):
    bridge: Bridge

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        name = self.headers.get(SESSION, "")
        if message.get("method") == "initialize":
            name, pipe = self.bridge.open()
        else:
            found = self.bridge.find(name)
            if found is None:
                self._end(404)
                return
            pipe = found
        if "method" not in message or "id" not in message:
            pipe.send(message)
            self._end(202)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if name:
            self.send_header(SESSION, name)
        self.end_headers()
        for frame in pipe.answers(message):
            self.wfile.write(f"event: message\ndata: {json.dumps(frame)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def do_GET(self) -> None:
        self._end(405)

    def do_DELETE(self) -> None:
        self._end(200 if self.bridge.end(self.headers.get(SESSION, "")) else 404)

    def log_message(self, format: str, *args: Any) -> None:
        """The suite tells what it did."""

    def _end(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
