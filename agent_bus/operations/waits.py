"""Waiting without holding a thread: listen, look at the state, sleep until a hint or a second has passed, look again.

anyio is imported by the first wait: a verb that does not wait need not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from agent_bus.bus import Bus

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from anyio.lowlevel import RunVar

T = TypeVar("T")
THREADS = 8
LOOK_S = 1.0
"""A wait looks anew at least this often: hints may be lost, and people edit files by hand."""


async def on_thread(act: Callable[[], T]) -> T:
    """Runs a short sync act on one of 8 threads of our own; it is never abandoned half-way, whoever cancels."""
    import anyio
    import anyio.to_thread

    try:
        limiter = _limiter().get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _limiter().set(limiter)
    return await anyio.to_thread.run_sync(act, limiter=limiter)


@cache
def _limiter() -> RunVar[CapacityLimiter]:
    """The limiter of each event loop."""
    from anyio.lowlevel import RunVar

    return RunVar("agent_bus_threads")


async def until(
    bus: Bus, look: Callable[[bool], T | None], wait_s: float, undo: Callable[[T], None] = lambda _: None
) -> T | None:
    """The first result of `look` that is not None, or None after `wait_s` seconds.

    Args:
        look: called with True at first, with False in the wait after it.
        wait_s: 0 … 50; AGENT_BUS_WAIT_MAX_S lowers it further.
        undo: takes back a result whose waiter was cancelled while the look was under way.
    """
    import anyio

    found = await _kept(partial(look, True), undo)
    wait_s = min(wait_s, bus.settings.wait_max_s)
    if found is not None or wait_s <= 0:
        return found
    deadline = anyio.current_time() + wait_s
    with bus.watch.listen() as ear:
        while True:
            found = await _kept(partial(look, False), undo)
            left = deadline - anyio.current_time()
            if found is not None or left <= 0:
                return found
            await ear.wait(min(LOOK_S, left))


async def _kept(look: Callable[[], T | None], undo: Callable[[T], None]) -> T | None:
    import anyio.lowlevel

    found = await on_thread(look)
    try:
        await anyio.lowlevel.checkpoint()  # a cancel that landed during the look is raised here
    except anyio.get_cancelled_exc_class():
        if found is not None:
            with anyio.CancelScope(shield=True):
                await on_thread(partial(undo, found))
        raise
    return found
