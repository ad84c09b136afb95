"""A model's endpoint on loopback for the real Claude Code: it keeps what it is asked and answers one sentence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SAID = "All is well."


class Asked:
    """What the endpoint was asked, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []

    def tools(self) -> set[str]:
        """The names of the tools of the first request that offers any."""
        offered: list[dict[str, Any]] = next((one["tools"] for one in self.requests if one.get("tools")), [])
        return {tool["name"] for tool in offered}

    def text(self) -> str:
        """All that the requests say, as one text."""
        return json.dumps([one.get("messages") for one in self.requests], ensure_ascii=False)


@contextmanager
def model() -> Iterator[Asked]:
    """Serves within the block."""
    asked = Asked()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"asked": asked}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    asked.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    asked: Asked

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if not self.path.startswith("/v1/messages"):
            self._answer(b"{}", "application/json")
        elif "count_tokens" in self.path:
            self._answer(b'{"input_tokens": 1}', "application/json")
        else:
            self.asked.requests.append(body)
            events = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in _events(str(body.get("model"))))
            whole = json.dumps(_message(str(body.get("model")), SAID))
            streamed = bool(body.get("stream"))
            self._answer(
                (events if streamed else whole).encode(), f"{'text/event-stream' if streamed else 'application/json'}"
            )

    def do_GET(self) -> None:
        self._answer(b"{}", "application/json")

    def do_HEAD(self) -> None:
        self._answer(b"", "application/json")

    def log_message(self, format: str, *args: Any) -> None:
        """What was asked is kept, not printed."""

    def _answer(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _message(name: str, text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    usage = {"input_tokens": 1, "output_tokens": 1}
    end = "end_turn" if text else None
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": name, "content": content,
            "stop_reason": end, "stop_sequence": None, "usage": usage}  # fmt: skip


def _events(name: str) -> list[dict[str, Any]]:
    """One streamed answer (the events of the Messages API)."""
    return [
        {"type": "message_start", "message": _message(name, "")},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop"},
    ]
