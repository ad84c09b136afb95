"""One agent of the demo: a process with an MCP client, which starts a server of its own over stdio.

`python -m demo_parts.agent PART NAME FOLDER LANGUAGE SERVER…`. Each line on stdout is a JSON object: what it did.

    boss     calls the tool that each line on stdin names: {"tool": …, "arguments": {…}}
    worker   receives tasks, does them and reports, until stdin ends
    frozen   receives one task and never reports
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from demo_parts import work
from demo_parts.say import Say
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

PAUSE_S = 0.3
WAIT_S = 45


class Refused(Exception):
    """The bus refused a call; its words."""


class Agent:
    """A name, and the client through which it calls the bus."""

    def __init__(self, client: Client, name: str, folder: Path, say: Say) -> None:
        self._client = client
        self._name = name
        self._folder = folder
        self._say = say

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One tool call.

        Raises:
            Refused: the bus says no.
        """
        result = await self._client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            raise Refused(" ".join(getattr(item, "text", "") for item in result.content))
        return dict(result.structured_content)

    async def obey(self) -> None:
        """The boss: one call a line."""
        while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            order = json.loads(line)
            try:
                tell("result", result=await self.call(order["tool"], **order["arguments"]))
            except Refused as error:
                tell("refused", text=str(error))

    async def work(self) -> None:
        """The worker: receive, do, report, again."""
        stopped = False
        while True:
            try:
                got = await self.call("receive_task", agent_name=self._name, wait_s=WAIT_S)
            except Refused as error:
                if not stopped:
                    tell("refused", text=str(error))
                stopped = True
                await anyio.sleep(PAUSE_S)
                continue
            stopped = False
            if got["task"] is not None:
                await self._do(got)

    async def freeze(self) -> None:
        """The frozen worker: takes a task, says so, and does nothing more."""
        got = await self.call("receive_task", agent_name=self._name, wait_s=WAIT_S)
        await self._begin(got)
        await anyio.sleep_forever()

    async def _begin(self, got: dict[str, Any]) -> str:
        task = got["task"]
        tell("received", task_id=task["task_id"], attempt=task["attempt"])
        await self.call("update_status", agent=self._name, state="working", current_task_id=task["task_id"])
        tell("working", task_id=task["task_id"])
        return str(task["task_id"])

    async def _do(self, got: dict[str, Any]) -> None:
        task_id = await self._begin(got)
        job = got["task"]["context"]["job"]
        facts, made = work.do(job, self._folder)
        summary = self._say(f"report.{job}", **facts)
        await self.call(
            "submit_report",
            task_id=task_id,
            worker=self._name,
            status="completed",
            summary=summary,
            artifacts=[path.relative_to(self._folder).as_posix() for path in made],
            lease_id=got["lease_id"],
        )
        tell("reported", task_id=task_id, text=summary)


def tell(did: str, **what: Any) -> None:
    """One line for the demo."""
    print(json.dumps({"did": did, "at": time.time(), **what}), flush=True)


async def run(part: str, name: str, folder: Path, say: Say, transport: Any) -> None:
    """Connects and plays the part until stdin ends."""
    async with Client(transport) as client:
        agent = Agent(client, name, folder, say)
        tell("started", client=os.getpid())
        if part == "boss":
            await agent.obey()
            return
        async with anyio.create_task_group() as around:
            around.start_soon(agent.work if part == "worker" else agent.freeze)
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            around.cancel_scope.cancel()


def main(part: str, name: str, folder: str, language: str, *server: str) -> None:
    """Starts the server, its stderr in a file, and plays."""
    environ = {k: v for k, v in os.environ.items() if k == "PYTHONPATH" or k.startswith("AGENT_BUS_")}
    command = StdioServerParameters(command=server[0], args=list(server[1:]), env=environ)
    with open(Path(folder) / "logs" / f"{name}-{os.getpid()}-server.log", "w", encoding="utf-8") as errors:
        transport = stdio_client(command, errlog=errors)
        anyio.run(run, part, name, Path(folder), Say(language), transport)


if __name__ == "__main__":
    main(*sys.argv[1:])
