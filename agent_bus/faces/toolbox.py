"""The commands that one server offers, and how it runs them: short verbs on a few threads, waits on none."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from agent_bus.bus import Bus, Caller
from agent_bus.commands import Command, Result, commands, find, nearest, run, run_sync
from agent_bus.errors import BusError, invalid
from agent_bus.faces.exchange import Exchange
from agent_bus.operations import presence

THREADS = 8
BEAT_S = 10.0
ROLES = ("worker", "orchestrator", "reviewer", "operator")
Beat = Callable[[float], Awaitable[None]]
T = TypeVar("T")


def default_tools(role: str) -> str:
    """The groups of a server that was not told any."""
    return "core,queue" if role == "orchestrator" else "core"


def offered(tools: str, role: str) -> dict[str, Command]:
    """The commands of some groups, in the order of registration; those for people only with role operator.

    Args:
        tools: groups with commas between them, or `all`; "" = the role's own.
        role: one of ROLES.

    Raises:
        BusError: `invalid`, naming the groups there are.
    """
    groups = {c.group for c in commands().values() if not c.people}
    chosen = {name.strip() for name in (tools or default_tools(role)).split(",")} - {""}
    unknown = sorted(chosen - groups - {"all"})
    if unknown and tools:
        raise invalid(
            "--tools",
            f"names an unknown group {unknown[0][:60]!a}",
            f"Groups: {', '.join(sorted(groups))}, all.",
        )
    if "all" in chosen:
        chosen = groups
    return {n: c for n, c in commands().items() if (role == "operator" if c.people else c.group in chosen)}


@dataclass(frozen=True)
class Toolbox:
    """What one identity may call.

    Args:
        open: gives the bus, or raises why there is none.
        caller: who calls, as far as this server knows.
        commands: what is offered as tools, by name.
        api: what may be called by name over HTTP.
        sessions: the HTTP transport keeps sessions, so that their ids are its own.
        state_key: at least 32 secret bytes that seal what travels with a client's question; processes that serve one
            client share it, a process that serves its clients alone makes its own.
        threads: how many verbs run at once.
    """

    open: Callable[[], Bus]
    caller: Caller
    commands: Mapping[str, Command]
    api: Mapping[str, Command] = field(default_factory=dict)
    sessions: bool = False
    state_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(THREADS))

    @property
    def groups(self) -> set[str]:
        """The groups of what is offered: prompts and resources come with the tools of their group."""
        return {command.group for command in self.commands.values()}

    @property
    def pushes(self) -> bool:
        """Whether a client of the 2025 eras can be sent something outside of its calls."""
        return self.sessions or self.caller.channel != "http"

    async def look(self, act: Callable[[Bus], T], caller: Caller | None = None) -> T:
        """Runs a short act on the bus, for a caller (default: this server's own), on one of the threads.

        Raises:
            BusError: what `open` or the act raised.
        """
        who = caller or self.caller
        return await anyio.to_thread.run_sync(lambda: act(self.open().called_by(who)), limiter=self.threads)

    async def call(
        self,
        command: Command,
        given: Mapping[str, object],
        exchange: Exchange,
        caller: Caller,
        beat: Beat | None = None,
    ) -> Result:
        """Runs a command for a caller.

        Args:
            command: one of `commands`.
            given: its arguments as they came.
            exchange: the request; when it is gone, a wait ends within a moment and has taken nothing.
            caller: `self.caller`, with what is known of this request.
            beat: called every BEAT_S seconds of a wait with the seconds so far.

        Raises:
            BusError: what the verb raised, or `timeout` if the caller has gone.
        """
        try:
            if command.is_async:
                bus = await self.look(partial(_heard, command, given), caller)
                return await _wait(bus, command, given, exchange, beat)
            bus, result = await self.look(
                lambda bus: (_heard(command, given, bus), run_sync(bus, command, given)), caller
            )
            await _keep(bus, command, result, exchange)
            return result
        except anyio.get_cancelled_exc_class():
            await exchange.lost()
            raise

    def unknown(self, name: str) -> str:
        """What to tell a caller of a command that is not offered."""
        text = f"Unknown tool: {ascii(name[:60])[1:-1]}."
        try:
            known = find(name)
        except BusError:
            return f"{text} {nearest(name, self.commands)}".rstrip()
        if known.people:
            return f"{text} It is for people, at a terminal: agent-bus {name.replace('_', '-')}."
        return f"{text} It is in the group {known.group}, which this server was started without (--tools)."


def _heard(command: Command, given: Mapping[str, object], bus: Bus) -> Bus:
    """Notes that the caller is there; a heartbeat that cannot be written keeps no call back."""
    with suppress(BusError, OSError):
        presence.heard(bus, command.name, given)
    return bus


async def _keep(bus: Bus, command: Command, result: Result, exchange: Exchange) -> None:
    if command.undo is not None:
        await exchange.keep(partial(command.undo, bus, result))


async def _wait(
    bus: Bus, command: Command, given: Mapping[str, object], exchange: Exchange, beat: Beat | None
) -> Result:
    """Runs a waiting verb until it is done, its caller has gone, or the request is cancelled."""
    results: list[Result] = []
    refusals: list[BusError] = []
    async with anyio.create_task_group() as around:
        around.start_soon(_end_when_gone, exchange, around.cancel_scope)
        if beat is not None:
            around.start_soon(_beat, beat)
        try:
            results.append(await run(bus, command, given))
            await _keep(bus, command, results[0], exchange)
        except BusError as error:
            refusals.append(error)
        around.cancel_scope.cancel()
    if refusals:
        raise refusals[0]
    if not results:
        raise BusError("timeout", "the caller went away before there was an answer.")
    return results[0]


async def _end_when_gone(exchange: Exchange, scope: anyio.CancelScope) -> None:
    await exchange.gone.wait()
    scope.cancel()


async def _beat(beat: Beat) -> None:
    start = anyio.current_time()
    while True:
        await anyio.sleep(BEAT_S)
        await beat(anyio.current_time() - start)


def for_client(caller: Caller, client: str, session: str) -> Caller:
    """The caller with the client's own name (for the journal only) and its session."""
    return replace(caller, client=client[:120], session=session)
