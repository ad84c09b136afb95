"""A second process on a bus: opens it, then runs what comes as JSON lines on stdin and answers with JSON lines.

{"verb": NAME, "args": {…}}            runs a verb: {"ok": …} or {"error": {code, message, hint}}
{"do": "dispatch", "count": N}         dispatches N tasks to coder; their ids
{"do": "race", "agents": […], "meet": PATH, "me": 0 or 1}
                                       receives once for each agent, at each one together with the other process
{"do": "reap"}                         one pass of the reaper
"""

from __future__ import annotations

import json
import mmap
import sys
import time
from functools import partial
from typing import Any

import anyio

from agent_bus import commands
from agent_bus.app import open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.errors import BusError
from agent_bus.jobs import reaper
from agent_bus.settings import Settings


def main() -> None:
    """Serves one bus until stdin ends."""
    given = json.loads(sys.argv[1])
    bus = open_bus(Settings(**given["settings"]), Caller(**given["caller"]))
    say({"ok": "open"})
    for line in sys.stdin:
        say(answer(bus, json.loads(line)))
    bus.close()


def say(value: Any) -> None:
    """One line on stdout."""
    print(json.dumps(value), flush=True)


def answer(bus: Bus, order: dict[str, Any]) -> dict[str, Any]:
    """What an order gave."""
    try:
        return {"ok": _act(bus, order)}
    except BusError as error:
        return {"error": error.as_dict()}


def _act(bus: Bus, order: dict[str, Any]) -> Any:
    if "verb" in order:
        return call(bus, order["verb"], order.get("args", {}))
    if order["do"] == "dispatch":
        sent = (call(bus, "dispatch_task", {"target": "coder", "instruction": f"n {n}"}) for n in range(order["count"]))
        return [s["task_id"] for s in sent]
    if order["do"] == "race":
        return _race(bus, order["agents"], order["meet"], order["me"])
    return reaper.sweep(bus, bus.now()).model_dump()


def call(bus: Bus, verb: str, args: dict[str, Any]) -> dict[str, Any]:
    """A verb's answer as plain values; waits are run to their end."""
    command = commands.find(verb)
    made = (
        anyio.run(partial(commands.run, bus, command, args))
        if command.is_async
        else commands.run_sync(bus, command, args)
    )
    plain: dict[str, Any] = made.model_dump(mode="json")
    return plain


def _race(bus: Bus, agents: list[str], meet: str, me: int) -> list[str]:
    """The agents whose task this process got."""
    won = []
    with open(meet, "r+b") as handle, mmap.mmap(handle.fileno(), 8) as turns:
        for number, agent in enumerate(agents, 1):
            turns[me * 4 : me * 4 + 4] = number.to_bytes(4, "big")
            deadline = time.monotonic() + 20
            other = slice((1 - me) * 4, (1 - me) * 4 + 4)
            while int.from_bytes(turns[other], "big") < number and time.monotonic() < deadline:
                pass
            if call(bus, "receive_task", {"agent_name": agent})["task"] is not None:
                won.append(agent)
    return won


if __name__ == "__main__":
    main()
