"""A stand-in for a coding CLI, started by the bus for one task: a real process that speaks MCP to the bus.

It takes its task from the variables of its run, writes a note into its working folder and reports; a task of job `hang`
it never ends.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

HANG_S = 120


def write_note(task: dict[str, Any]) -> str:
    """The work: a note in the working folder; its name."""
    note = Path(f"{task['context']['job']}.md")
    note.write_text(f"{task['instruction']}\n", encoding="utf-8")
    return note.name


async def main(server: list[str]) -> None:
    """One task, from receive to report.

    Args:
        server: how `agent-bus` is started.
    """
    sys.stdin.read()  # the prompt; a model would read it, the stand-in asks the bus
    found = {"PYTHONPATH": str(Path(__file__).parents[2])} if "-m" in server else {}  # not installed: from the checkout
    place = StdioServerParameters(command=server[0], args=[*server[1:], "mcp"], env=os.environ | found)
    async with Client(stdio_client(place)) as client:
        got = (await client.call_tool("receive_task", {})).structured_content or {}
        task = got["task"]
        if task["context"]["job"] == "hang":
            await anyio.sleep(HANG_S)
        name = write_note(task)
        report = {"task_id": task["task_id"], "status": "completed", "summary": f"wrote {name}", "artifacts": [name]}
        await client.call_tool("submit_report", report | {"lease_id": got["lease_id"]})
    print(json.dumps({"session_id": "stand-in"}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
