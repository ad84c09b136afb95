"""The life of a stdio server: its private streams, signals, end of input, and a parent that has gone.

The protocol's stream belongs to the SDK alone: fd 1 is duplicated and then points to stderr, fd 0 to nothing,
so that neither a `print` nor a child process can break or eat a frame.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

import anyio
import anyio.to_thread

from agent_bus.errors import BusError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

    from agent_bus.faces.wire import Exchanges, Frame

EOF_GRACE_S = 0.5
"""Calls that are on their way when the input ends still answer, if they take no longer."""
LEAVE_S = 1.0
"""After this long an end is an end, whatever a verb is doing: a kill at any point is repaired."""
PARENT_S = 5.0

log = logging.getLogger(__name__)


class Wire(NamedTuple):
    """The private ends of the protocol's stream, and the process that started this one."""

    source: BinaryIO
    sink: BinaryIO
    parent: int


def claim_wire() -> Wire:
    """Takes stdin and stdout for the protocol alone; nothing else of the process reaches them any more.

    Raises:
        BusError: `unavailable` if they are closed.
    """
    try:
        source, sink = os.dup(0), os.dup(1)
    except OSError as error:
        raise BusError("unavailable", "stdin or stdout is closed.", "An MCP client starts this command.") from error
    if os.isatty(source):
        sys.stderr.write("agent-bus mcp: waiting for an MCP client on stdin (Ctrl-C ends)\n")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        from mcp.os.win32.utilities import rebind_std_handle_to_fd

        rebind_std_handle_to_fd(0)  # children take the system's handles, not the C library's
        rebind_std_handle_to_fd(1)
    for number in _signals():
        signal.signal(number, lambda *_: os._exit(0))
    return Wire(os.fdopen(source, "rb"), os.fdopen(sink, "wb", buffering=0), os.getppid())


def serve(server: Server[Any], wire: Wire) -> NoReturn:
    """Serves one client until its input ends, a signal comes or its parent is gone; then exits with 0."""
    anyio.run(_live, server, wire)
    leave()


def leave() -> NoReturn:
    """Ends the process now, without waiting for threads; what is logged is flushed."""
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


async def _live(server: Server[Any], wire: Wire) -> None:
    end = anyio.Event()
    _listen_to_signals(asyncio.get_running_loop(), end.set)
    async with anyio.create_task_group() as life:
        life.start_soon(_serve_until_end, server, wire, end)
        life.start_soon(_watch_parent, wire.parent, end.set)
        await end.wait()
        last = threading.Timer(LEAVE_S, os._exit, (0,))  # flushing a log may block for ever
        last.daemon = True
        last.start()
        life.cancel_scope.cancel()


async def _serve_until_end(server: Server[Any], wire: Wire, end: anyio.Event) -> None:
    from agent_bus.faces.wire import Answers, Exchanges

    exchanges, one = Exchanges(), anyio.CapacityLimiter(1)

    async def deliver(frame: SessionMessage) -> None:
        line = frame.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            await anyio.to_thread.run_sync(_write_all, wire.sink, line, limiter=one)
        except OSError as error:  # nobody reads any more
            end.set()
            raise anyio.BrokenResourceError from error

    send, receive = anyio.create_memory_object_stream["Frame"](0)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read_lines, args=(wire.source, loop, exchanges, send), daemon=True).start()
    try:
        await server.run(receive, Answers(exchanges, deliver), server.create_initialization_options())
    finally:
        end.set()


def _write_all(sink: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[sink.write(view) :]


def _read_lines(
    source: BinaryIO,
    loop: asyncio.AbstractEventLoop,
    exchanges: Exchanges,
    send: MemoryObjectSendStream[Frame],
) -> None:
    """Hands each line to the loop; on a thread of its own, because reading stdin cannot be cancelled."""

    async def ended() -> None:
        await exchanges.drained(EOF_GRACE_S)
        await send.aclose()

    async def forward(line: bytes) -> None:
        await send.send(exchanges.stamp(_parse(line)))

    try:
        for line in source:
            asyncio.run_coroutine_threadsafe(forward(line), loop).result()
        asyncio.run_coroutine_threadsafe(ended(), loop).result()
    except (OSError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        log.debug("reading stopped: %r", error)  # the loop has ended first


def _parse(line: bytes) -> Frame:
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        text = line.decode("utf-8", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error


def _listen_to_signals(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    """The first signal ends in order, the second at once."""
    seen: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        if seen:
            os._exit(0)
        seen.append(number)
        loop.call_soon_threadsafe(end)

    for number in _signals():
        signal.signal(number, on_signal)


def _signals() -> list[signal.Signals]:
    names = ("SIGTERM", "SIGINT", "SIGBREAK")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


async def _watch_parent(parent: int, end: Callable[[], None]) -> None:
    """POSIX: a client that was killed while a stranger keeps our stdin open shows as another parent."""
    while os.getppid() == parent:  # noqa: ASYNC110 -- no event tells of it
        await anyio.sleep(PARENT_S)
    end()
