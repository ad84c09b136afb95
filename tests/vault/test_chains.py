"""A chain of tasks is a canvas: cards and arrows of ours, and what a person made of it stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_bus.jobs.mirror import MirrorJob
from tests.notes.vault_check import check_canvas
from tests.vault.conftest import Vault

OPTIONS = json.dumps({"next_tasks": [{"target": "reviewer", "instruction": "Review"}]})


def finish(vault: Vault, name: str) -> str:
    got = vault.worker(name).receive_task()
    task_id = str(got["task"]["task_id"])
    vault.worker(name).submit_report(task_id, summary="done", lease_id=got["lease_id"])
    vault.boss.acknowledge_report(task_id)
    return task_id


def canvas(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    assert check_canvas(text) == []
    value: dict[str, Any] = json.loads(text)
    return value


def card(value: dict[str, Any], task_id: str) -> dict[str, Any]:
    [found] = [one for one in value["nodes"] if task_id in str(one.get("file", one.get("text", "")))]
    return dict(found)


@pytest.mark.req("vault:17")
def test_what_a_person_made_of_a_canvas_stays(vault: Vault) -> None:
    first = str(vault.boss.dispatch_task("coder", "Write tests", options=OPTIONS)["task_id"])
    vault.run(4)
    path = vault.root / "chains" / f"{first}.canvas"
    assert not path.exists(), "one task is no chain"
    finish(vault, "coder")
    vault.run(20)
    value = canvas(path)
    [second] = [one["task_id"] for one in vault.boss.list_tasks()["tasks"]]
    assert card(value, first)["file"] == f"09_AgentSync/notes/tasks/{first}.md"
    assert (card(value, first)["color"], card(value, second)["x"]) == ("4", 500)
    [edge] = value["edges"]
    assert (edge["fromNode"], edge["toNode"], edge["label"]) == (
        card(value, first)["id"], card(value, second)["id"], "completed",
    )  # fmt: skip
    assert f"[[{first}.canvas|Write tests]]" in vault.note("Dashboard")
    for one in value["nodes"]:
        if one["id"] == card(value, second)["id"]:
            one.update(x=900, y=40, color="6")
    mine = {"id": "mine", "type": "text", "text": "my card", "x": 0, "y": 400, "width": 200, "height": 60, "odd": 1}
    arrow = {"id": "arrow", "fromNode": "mine", "toNode": card(value, first)["id"]}
    value["nodes"].insert(0, mine)
    value["edges"].append(arrow)
    value["extra"] = {"kept": True}
    path.write_text(json.dumps(value))
    vault.run(30)
    finish(vault, "reviewer")
    before = path.stat().st_mtime_ns
    vault.run(20)
    after = canvas(path)
    assert path.stat().st_mtime_ns == before, "where it lies and which colour it has is the person's: nothing changed"
    assert {key: card(after, second)[key] for key in ("x", "y", "color")} == {"x": 900, "y": 40, "color": "6"}
    after["nodes"] = [one for one in after["nodes"] if one["id"] != card(after, first)["id"]]
    after["edges"] = [arrow]
    after["nodes"][0]["text"] = "my own words"
    path.write_text(json.dumps(after))
    vault.run(30)
    vault.job = MirrorJob()
    vault.boss.dispatch_task("coder", "And more", options=json.dumps({"parent": second}))
    vault.run(30)
    last = canvas(path)
    assert card(last, first)["x"] == 0, "a card of ours comes back with the next change"
    assert last["nodes"][0] == {**mine, "text": "my own words"}
    assert (arrow in last["edges"], len(last["edges"]), last["extra"]) == (True, 3, {"kept": True})
    written = path.read_bytes()
    vault.run(120)
    assert path.read_bytes() == written


def test_a_canvas_that_cannot_be_read_is_left_alone_and_named(vault: Vault) -> None:
    first = str(vault.boss.dispatch_task("coder", "Write tests", options=OPTIONS)["task_id"])
    vault.run(4)
    finish(vault, "coder")
    vault.run(20)
    path = vault.root / "chains" / f"{first}.canvas"
    path.write_text("{half")
    finish(vault, "reviewer")
    vault.run(60)
    assert path.read_text() == "{half"
    assert "is no JSON" in vault.note("notes/Problems")
