"""Killed and stopped between any two system calls: the document is before or after, never between, and work goes on."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bus.store.files import FileStore
from tests.contract.engines import make_folder
from tests.store.victim import AFTER, BEFORE, NEW, OLD, OTHER

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the victim needs fork and signals")
VICTIM = Path(__file__).with_name("victim.py")
CASES = (
    *((operation, "links") for operation in ("create", "replace", "move", "delete")),
    *((operation, "no-links") for operation in ("create", "move")),
)
Found = dict[str, dict[str, Any]]


def run_victim(tmp_path: Path, how: str, links: str, operation: str) -> list[dict[str, Any]]:
    """Every point of one operation; the last one is that of a run to its end."""
    template, work = make_folder(tmp_path / "template"), tmp_path / "work"
    work.mkdir()
    store = FileStore(template, durable=False)
    if operation != "create":
        store.create(OLD, BEFORE)
    (template / "archive").mkdir()
    store.close()
    for path in (template / ".bus" / "hints").iterdir():
        path.unlink()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(VICTIM), str(template), str(work), how, links, operation]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=env)
    assert done.returncode == 0, done.stderr
    points: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(points) > 8
    assert points[-1]["outcome"] == "done"
    return points


def documents(root: Path) -> Found:
    """Every file that is a document, read without the store."""
    paths: Iterator[Path] = (p for p in root.rglob("*.json") if ".bus" not in p.relative_to(root).parts)
    return {p.relative_to(root).as_posix()[: -len(".json")]: json.loads(p.read_bytes()) for p in paths}


ALLOWED: dict[str, list[Found]] = {
    "create": [{}, {OLD: AFTER}],
    "replace": [{OLD: BEFORE}, {OLD: AFTER}],
    "move": [
        {OLD: BEFORE},
        {OLD: AFTER},
        {NEW: AFTER},
    ],  # the second is an unfinished move: its content says where it belongs
    "delete": [{OLD: BEFORE}, {}],
}


def go_on(root: Path) -> None:
    """The next writer finds no lock and can do everything; what was left over can be swept."""
    store = FileStore(root, durable=False)
    with store.lock("t-1", wait_s=0.5):
        pass
    doc = store.get(OLD) or store.get(NEW) or store.create(OLD, {"n": 0})
    doc = store.replace(doc, {**doc.value, "n": 10})
    doc = store.move(doc, "waiting/t-1", {**doc.value, "n": 11})
    store.sweep(time.time() + 10)
    assert documents(root) == {"waiting/t-1": doc.value}
    assert list((root / ".bus" / "tmp").iterdir()) == []
    store.close()


@pytest.mark.req("core:39:store")
@pytest.mark.parametrize(("operation", "links"), CASES)
def test_after_a_kill_at_any_call_the_document_is_before_or_after(tmp_path: Path, operation: str, links: str) -> None:
    points = run_victim(tmp_path, "kill", links, operation)
    seen = []
    for point in points:
        found = documents(Path(point["root"]))
        assert found in ALLOWED[operation], point
        seen.append(ALLOWED[operation].index(found))
        go_on(Path(point["root"]))
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(ALLOWED[operation])))
    assert all(point["signal"] for point in points[:-1])


@pytest.mark.parametrize(("operation", "links"), CASES)
def test_while_one_is_stopped_at_any_call_others_work_or_are_told_busy_and_nothing_is_corrupted(
    tmp_path: Path, operation: str, links: str
) -> None:
    points = run_victim(tmp_path, "stop", links, operation)
    for point in points[:-1]:
        root = Path(point["root"])
        assert point["another"] == "done", point
        assert point["same"] in ("done", "busy", "Exists", "Stale", "gone"), point
        assert point["outcome"] in ("done", "Exists", "Stale", "gone"), point
        assert "done" in (point["same"], point["outcome"]), point
        assert documents(root) == after_both(operation, point), point
        go_on(root)
    assert {"done"} < {point["outcome"] for point in points}
    assert "busy" in {point["same"] for point in points} or (operation, links) == ("create", "links")


def after_both(operation: str, point: dict[str, Any]) -> Found:
    """What must stand there: who was stopped either came first or was told that it came too late."""
    other_won = point["same"] == "done"
    value = OTHER if other_won else AFTER
    if operation == "delete":
        return {}
    return {NEW if operation == "move" else OLD: value}
