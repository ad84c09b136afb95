"""The archive of a debate: `archive/debates/<id>/`, made from its documents alone, so that it can be made again.

The folder is whole when result.json is there: it is written last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from agent_bus.bus import Bus
from agent_bus.domain import debate
from agent_bus.errors import BusError
from agent_bus.operations import debates
from agent_bus.operations.debates import Debate
from agent_bus.store import atomic

FILES = ("probe.json", "events.jsonl", "board.jsonl", "result.json")


def place(found: Debate) -> str:
    """The folder of the archive, relative to the bus folder."""
    return f"archive/{_folder(found)}"


def make(bus: Bus, found: Debate) -> None:
    """Writes the files that are missing; a bus without a folder has no archive.

    Raises:
        BusError: `unavailable` if they cannot be written.
    """
    if bus.layout is None:
        return
    folder = bus.layout.archive / _folder(found)
    missing = _missing(folder)
    if not missing:
        return
    content = _content(bus, found)
    try:
        atomic.make_folder(str(folder), True)
        for name in missing:
            atomic.put_file(str(bus.layout.temp), str(folder / name), content[name], True)
        atomic.sync_folder(str(folder))
    except OSError as error:
        raise atomic.unavailable(error, bus.layout.root) from error


def tidy(bus: Bus) -> None:
    """Applies what time asks for in every debate, and archives what is closed and not archived; for the reaper."""
    for name in bus.store.folders(debates.PREFIX):
        if bus.layout is not None and not _missing(bus.layout.archive / "debates" / name):
            continue  # it is over: nothing of it is read any more
        try:
            found = debates.settled(bus, name)
        except BusError as error:
            if error.code not in ("not_found", "corrupt", "invalid"):
                raise
            continue
        if found.state == debate.CLOSED:
            make(bus, found)


def _missing(folder: Path) -> list[str]:
    return [name for name in FILES if not (folder / name).is_file()]


def _folder(found: Debate) -> str:
    return f"debates/{found.folder.rpartition('/')[2]}"


def _content(bus: Bus, found: Debate) -> dict[str, bytes]:
    setup, head = found.setup, found.head
    assert head is not None
    records = list(debates.records(bus, found))
    said = {r["turn"]: r["content"] for r in records if r["kind"] == debate.SPEECH}
    statements = {agent: said.get(number, "") for agent, number in head["signoffs"].items()}
    born = {"initialized_at": setup["created_at"]}
    agents = {a["id"]: {k: v for k, v in a.items() if k != "id"} | born for a in setup["agents"]}
    probe = {"task_id": setup["task_id"], "created_at": setup["created_at"], "agents": agents}
    return {
        "probe.json": to_json(probe, indent=2) + b"\n",
        "events.jsonl": _lines(debate.events(setup, head, records, place(found))),
        "board.jsonl": _lines(_board(bus, found)),
        "result.json": to_json(debate.result(setup, head, statements), indent=2) + b"\n",
    }


def _board(bus: Bus, found: Debate) -> list[dict[str, Any]]:
    """Every version of every entry of the debate's board, by time."""
    base = f"{found.folder}/board"
    docs = [d for name in bus.store.folders(f"{base}/history") for d in bus.store.list(f"{base}/history/{name}")]
    values = [d.value for d in (*docs, *bus.store.list(f"{base}/entries"))]
    versions = {(str(v.get("key")), v.get("version")): v for v in values}
    ordered = sorted(versions.values(), key=lambda v: (str(v.get("ts")), str(v.get("key"))))
    return [_entry(found.id, v) for v in ordered]


def _entry(task_id: str, value: dict[str, Any]) -> dict[str, Any]:
    deleted = bool(value.get("deleted"))
    row = {"op": "delete" if deleted else "write", "scope": f"task:{task_id}", "key": value.get("key")}
    row |= {} if deleted else {"value": value.get("value")}
    row |= {"author": value.get("author"), "ts": value.get("ts")}
    return row | ({"tags": value["tags"]} if value.get("tags") else {}) | {"version": value.get("version")}


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
