"""Toy commands that show what a face does, and a stdio server of them in a process of its own.

As a program: `python -m tests.faces.toys '{"root": …, "transport": "http", …}'` serves the toys alone.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
from pydantic import BaseModel

from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.errors import BusError

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE_S = 20


class Echo(BaseModel):
    given: dict[str, Any] = {}
    caller: str = ""


def toy_say(
    bus: Bus,
    text: Annotated[str, Param("What.", json=True)],
    tone: Annotated[Literal["high", "low"], Param("How.")] = "high",
    times: Annotated[int, Param("How often, 1 to 9.", low=1, high=9)] = 1,
    loud: Annotated[bool, Param("With noise.")] = False,
    items: Annotated[list[str], Param("Things.", max_items=3)] = [],  # noqa: B006
) -> Echo:
    """Say something. Next: nothing."""
    given = {"text": text, "tone": tone, "times": times, "loud": loud, "items": items}
    return Echo(given=given, caller=f"{bus.caller.agent}/{bus.caller.channel}/{bus.caller.client}")


def toy_look(bus: Bus) -> Echo:
    """Look."""
    return Echo(given={"session": bus.caller.session, "role": bus.caller.role})


def toy_refuse(bus: Bus, code: str) -> Echo:
    """Refuse with a code."""
    raise BusError(code, "because.", "Do this.")


def toy_boom(bus: Bus) -> Echo:
    """Fail in a way that nobody foresaw."""
    raise KeyError("/home/x/secret")


def toy_noise(bus: Bus) -> Echo:
    """Print, and start a program that prints."""
    print("noise of the body", flush=True)
    subprocess.run([sys.executable, "-c", "print('noise of a child')"], stdin=subprocess.DEVNULL, check=True)
    return Echo(given={"done": True})


async def toy_wait(bus: Bus, wait_s: int = 0) -> Echo:
    """Wait."""
    await anyio.sleep(wait_s)
    return Echo(given={"waited": wait_s})


async def toy_wait_then_boom(bus: Bus) -> Echo:
    """Wait and fail."""
    raise KeyError("/home/x/secret")


async def toy_take(bus: Bus, port: int) -> Echo:
    """Take something when the test says go; no cancel can come between the taking and the return."""
    await anyio.to_thread.run_sync(meet, port)
    return Echo(given={"port": port})


def toy_block(bus: Bus, port: int) -> Echo:
    """Hold a thread until the test says go."""
    meet(port)
    return Echo(given={"port": port})


def toy_person(bus: Bus) -> Echo:
    """For people."""
    return Echo(given={"person": True})


def toy_queue(bus: Bus) -> Echo:
    """In another group."""
    return Echo()


def put_back(bus: Bus, result: Any) -> None:
    """Takes toy_take back: tells the test so."""
    meet(result.given["port"], b"undone")


def meet(port: int, word: bytes = b"here") -> None:
    """Tells the test that this point is reached and goes on when the test answers, or is gone."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as line:
        line.sendall(word)
        line.recv(1)


class Meeting:
    """The test's side of `meet`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_S)
        self.port = int(self._listener.getsockname()[1])

    @contextmanager
    def reached(self, word: bytes = b"here") -> Iterator[None]:
        """Within the block the other side stands at its point."""
        line, _ = self._listener.accept()
        with line:
            line.settimeout(PATIENCE_S)
            assert line.recv(100) == word
            yield
            with suppress(OSError):
                line.sendall(b"g")

    def close(self) -> None:
        self._listener.close()


def register() -> None:
    """Puts the toys into the registry as it is."""
    core: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (toy_say, {"writes": True, "idempotent": True, "always_load": True}),
        (toy_look, {"writes": False}),
        (toy_refuse, {"writes": False}),
        (toy_boom, {"writes": True}),
        (toy_noise, {"writes": False}),
        (toy_wait, {"writes": False}),
        (toy_wait_then_boom, {"writes": False}),
        (toy_take, {"writes": True, "undo": put_back}),
        (toy_block, {"writes": True, "destructive": True}),
        (toy_person, {"writes": True, "people": True}),
    ]
    for verb, record in core:
        command(group="core", **record)(verb)
    command(group="queue", writes=False)(toy_queue)


class StdioServer:
    """A stdio server in a process of its own, spoken to in raw lines."""

    def __init__(self, command: list[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=CHECKOUT,
            env=env,
        )
        self._number = 0
        self._said: str | None = None
        self._early: dict[Any, dict[str, Any]] = {}

    def write(self, line: bytes) -> None:
        """Sends one raw line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None, note: bool = False) -> int:
        """Sends a request, or a notification, and gives the request's id."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if not note:
            self._number += 1
            message["id"] = self._number
        self.write(json.dumps(message, ensure_ascii=False).encode())
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; those to others are kept."""
        assert self.process.stdout is not None
        while number not in self._early:
            line = self.process.stdout.readline()
            assert line, "the server closed its output"
            message = json.loads(line)
            self._early[message.get("id", message.get("method"))] = message
        return self._early.pop(number)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        return self.answer(self.send(method, params))

    def start(self, version: str = "2025-11-25", client: str = "test") -> dict[str, Any]:
        """The handshake of the 2025 eras."""
        info = {"name": client, "version": "1"}
        found = self.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info})
        self.send("notifications/initialized", note=True)
        return found

    def begin_call(self, name: str, **arguments: Any) -> int:
        """Sends a tool call and gives its id."""
        return self.send("tools/call", {"name": name, "arguments": arguments})

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool call's result object."""
        return self.finish(self.begin_call(name, **arguments))

    def finish(self, number: int) -> dict[str, Any]:
        """The result object of a call that was begun."""
        result: dict[str, Any] = self.answer(number)["result"]
        return result

    def wait(self) -> int:
        """The exit code, when the process has ended."""
        return self.process.wait(timeout=PATIENCE_S)

    def close(self) -> str:
        """Ends the process and gives what it wrote to stderr."""
        if self._said is not None:
            return self._said
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with suppress(OSError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=PATIENCE_S)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with self.process.stderr as errors:
            self._said = errors.read().decode("utf-8", "replace")
        return self._said


def toy_program(root: Path | str, **options: Any) -> list[str]:
    """The command that serves the toys."""
    return [sys.executable, "-m", "tests.faces.toys", json.dumps({"root": str(root), **options})]


def main(options: dict[str, Any]) -> int:
    """Serves the toys as `agent-bus mcp` serves the features."""
    import agent_bus.features
    from agent_bus import app
    from agent_bus.faces import stdio
    from agent_bus.faces.serve import serve_mcp
    from agent_bus.settings import load_settings

    agent_bus.features.__path__ = []
    register()
    stdio.PARENT_S = options.pop("parent_s", stdio.PARENT_S)
    if options.pop("double", False):
        clash = "def toy_say(bus): ...\ntoy_say.__module__ = 'other_feature'"
        scope: dict[str, Any] = {}
        exec(clash, scope)

        def load() -> None:
            command(group="core", writes=False)(scope["toy_say"])

        app.load_features = load
    return serve_mcp(load_settings(overrides={"root": options.pop("root")}), **options)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
