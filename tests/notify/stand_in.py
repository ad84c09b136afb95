"""A stand-in for Discord on loopback: a real HTTP server that answers as it is told and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "tOkEn-0f-7he-We6h00k_nobody-may-see"
PATH = f"/api/webhooks/1234567890/{TOKEN}"


@dataclass
class Answer:
    """One answer; `hang` waits for the end of the server instead."""

    status: int = 204
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False


class StandIn:
    """The server; `script` gives the answers in order, then all is well."""

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.script: list[Answer] = []
        self.always: Answer | None = None
        self.on_post: Callable[[], None] = lambda: None
        self.ending = threading.Event()
        self._serve(0)

    def _serve(self, port: int) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = outer.always or (outer.script.pop(0) if outer.script else Answer())
                assert self.path == PATH
                outer.posts.append({"status": answer.status, "hang": answer.hang, **body})
                outer.on_post()
                if answer.hang:
                    outer.ending.wait(30)
                    return
                data = json.dumps(answer.body or {}).encode() if answer.status != 204 else b""
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        ThreadingHTTPServer.daemon_threads = True
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def die(self) -> None:
        """Refuses connections from now on."""
        self.ending.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)

    def rise(self) -> None:
        """Listens again, on the same port."""
        self.ending.clear()
        self._serve(self.port)

    def delivered(self) -> list[str]:
        """The texts that were taken, in order."""
        return [text(post) for post in self.posts if post["status"] < 300 and not post["hang"]]


def text(post: dict[str, Any]) -> str:
    """All that a post shows."""
    return "\n".join(f"{e['title']}\n{e['description']}" for e in post["embeds"])
