"""Many processes at once, and processes killed before every write-like call, on boards, tips and hand-offs.

    python -m tests.board.forks

Reads lines `[NAME, WORK]` and answers each with what that act found, as JSON. All processes are forks of this one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agent_bus import app
from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.jobs import reaper
from agent_bus.settings import Settings
from tests.tools.desk import Desk
from tests.tools.kill_points import in_child, points

PROCESSES = 8
Found = dict[str, Any]


def open_desk(root: Path) -> Desk:
    """The bus of a folder, opened anew."""
    return Desk(app.open_bus(Settings(root=str(root), durability="none")))


def race(work: Path, before: Callable[[Desk], Any], act: Callable[[Desk, Any, int], Any]) -> tuple[Desk, list[Any]]:
    """Eight processes do one thing at once; the bus afterwards, and what each of them answered."""
    root, begin = work / "bus", work / "begin"
    root.mkdir()
    facts = in_child(lambda: before(open_desk(root)))
    pids = [_fork(work / f"answer-{n}", partial(_when, begin, root, act, facts, n)) for n in range(PROCESSES)]
    begin.touch()
    for pid in pids:
        os.waitpid(pid, 0)
    return open_desk(root), [json.loads((work / f"answer-{n}").read_text()) for n in range(PROCESSES)]


def _when(begin: Path, root: Path, act: Callable[[Desk, Any, int], Any], facts: Any, me: int) -> Any:
    desk = open_desk(root)
    while not begin.exists():
        pass
    return act(desk, facts, me)


def _fork(answer: Path, act: Callable[[], Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        answer.write_text(json.dumps(act()))
    except BaseException:
        answer.write_text(json.dumps(traceback.format_exc()))
    os._exit(0)


def killed(
    work: Path, before: Callable[[Desk], Any], act: Callable[[Desk, Any], Any], after: Callable[[Desk, Any], list[str]]
) -> Found:
    """One thing is killed before each of its writes, then done again; what was wrong afterwards."""
    template = work / "template"
    template.mkdir()
    facts = in_child(lambda: before(open_desk(template)))
    wrong: list[str] = []
    count = 0

    def prepare(root: Path) -> Callable[[], Any]:
        desk = open_desk(root)
        return lambda: act(desk, facts)

    for point in points(template, work, signal.SIGKILL, prepare):
        count += 1
        wrong += [f"{count}: {w}" for w in in_child(partial(_aftermath, point.root, act, after, facts))]
    return {"points": count, "wrong": wrong}


def _aftermath(
    root: Path, act: Callable[[Desk, Any], Any], after: Callable[[Desk, Any], list[str]], facts: Any
) -> list[str]:
    desk = open_desk(root)
    try:
        act(desk, facts)
    except BusError as error:
        if error.code not in ("conflict", "not_your_turn"):  # it was done before the kill
            raise
    return after(desk, facts)


# --- the board


def versions(bus: Bus, folder: str) -> dict[str, list[Any]]:
    """By the name of an entry the values of all its versions, oldest first; None where one is missing or torn."""
    found = {}
    for doc in bus.store.list(f"{folder}/entries"):
        kept = {d.value["version"]: d.value["value"] for d in bus.store.list(f"{folder}/history/{doc.name}")}
        kept[doc.value["version"]] = doc.value["value"]
        found[doc.name] = [kept.get(n) for n in range(1, doc.value["version"] + 1)]
    return found


def write_race(work: Path) -> Found:
    """Each of eight processes writes one key twelve times."""

    def act(desk: Desk, _: Any, me: int) -> list[int]:
        return [desk.moa_board_write("k", f"{me}-{n}", scope="global")["version"] for n in range(12)]

    desk, numbers = race(work, lambda _: None, act)
    (values,) = versions(desk.bus, ".bus/board/global").values()
    return {"values": sorted(map(str, values)), "versions": sorted(n for ns in numbers for n in ns)}


def write_killed(work: Path) -> Found:
    """A third version."""

    def before(desk: Desk) -> None:
        for n in "ab":
            desk.moa_board_write("k", n, scope="global")

    def after(desk: Desk, _: Any) -> list[str]:
        (values,) = versions(desk.bus, ".bus/board/global").values()
        return [] if values in (["a", "b", "c"], ["a", "b", "c", "c"]) else [f"versions {values}"]

    return killed(work, before, lambda desk, _: desk.moa_board_write("k", "c", scope="global"), after)


def migrate_killed(work: Path) -> Found:
    """A workspace with two entries goes to a project that has one of them in another, older text."""
    place = str(work / "shop")

    def before(desk: Desk) -> str:
        project: str = desk.project_create("Web")["projectId"]
        desk.moa_board_write("k", "theirs", scope=f"project:{project}")
        for key, value in (("k", "a"), ("k", "b"), ("only", "x")):
            desk.moa_board_write(key, value, workspace=place)
        return project

    def after(desk: Desk, project: str) -> list[str]:
        again = desk.project_migrate(place, project)["moved"]
        shown = {e["key"]: e["value"] for e in desk.moa_board_read(workspace=place)["entries"]}
        kept = sorted(versions(desk.bus, f".bus/board/{project}").values())
        want = [["theirs", "a", "b"], ["x"]]
        good = shown == {"k": "b", "only": "x"} and kept == want and again == 0
        return [] if good else [f"{shown} {kept} {again}"]

    return killed(work, before, lambda desk, project: desk.project_migrate(place, project), after)


# --- tips


def tip_race(work: Path) -> Found:
    """Each of eight processes changes a field of its own of one tip ten times."""
    place = str(work / "shop")
    names = ("title", "summary", "context", "module", "nextAction", "sourceSessionId", "tags", "sourceRefs")

    def act(desk: Desk, card: str, me: int) -> None:
        for n in range(10):
            value = f"{me}-{n}"
            given = {names[me]: [value] if me > 5 else value}
            desk.moa_tip_update(card, workspace=place, **given)

    def before(desk: Desk) -> str:
        card: str = desk.moa_tip_create("T", "S", workspace=place)["id"]
        return card

    desk, _ = race(work, before, act)
    (row,) = desk.moa_tip_list(workspace=place)["tips"]
    found = desk.moa_tip_read(row["id"], workspace=place)
    return {f"field-{n}": found[name][0] if n > 5 else found[name] for n, name in enumerate(names)}


# --- hand-offs

INBOX = {"workspace": "user-global"}


def _send(desk: Desk, title: str, **given: Any) -> str:
    sent = desk.moa_handoff_send("user-global", title, "S", **INBOX, **given)
    return str(sent["id"])


def consume_race(work: Path) -> Found:
    """Eight processes take each of thirty hand-offs."""

    def act(desk: Desk, sent: list[str], _: int) -> list[str]:
        taken = []
        for name in sent:
            try:
                desk.moa_handoff_consume(name, **INBOX)
                taken.append(name)
            except BusError as error:
                if error.code != "conflict":
                    raise
        return taken

    sent = [f"T{n}" for n in range(30)]
    desk, taken = race(work, lambda desk: [_send(desk, title) for title in sent], act)
    closed = desk.moa_handoff_inbox(state="consumed", limit=1000, **INBOX)["handoffs"]
    pending = len(desk.moa_handoff_inbox(**INBOX)["handoffs"])
    names = sorted(n for ns in taken for n in ns)
    assert {row["id"] for row in closed} <= set(names)
    ids = sorted(key.rpartition("/")[2] for key in _closed_keys(desk.bus))
    return {"sent": ids, "taken": names, "pending": pending}


def _closed_keys(bus: Bus) -> list[str]:
    base = ".bus/handoffs/user-global/closed"
    return [key for month in bus.store.folders(base) for key in bus.store.keys(f"{base}/{month}")]


def send_killed(work: Path) -> Found:
    """A hand-off with a key, so that the repeat is known as one."""

    def after(desk: Desk, _: Any) -> list[str]:
        rows = desk.moa_handoff_inbox(**INBOX)["handoffs"]
        return [] if [row["title"] for row in rows] == ["T"] else [f"inbox {rows}"]

    return killed(work, lambda _: None, lambda desk, _: _send(desk, "T", dedupe_key="k"), after)


def consume_killed(work: Path) -> Found:
    """A hand-off is taken; after a kill either the repeat gets it, or it was taken before."""

    def after(desk: Desk, sent: str) -> list[str]:
        reaper.sweep(desk.bus, desk.bus.now())
        keys = [*desk.bus.store.keys(".bus/handoffs/user-global/open"), *_closed_keys(desk.bus)]
        state = desk.moa_handoff_read(sent, **INBOX)["state"]
        good = state == "consumed" and len(keys) == 1 and "/closed/" in keys[0]
        return [] if good else [f"{state} {keys}"]

    return killed(
        work, lambda desk: _send(desk, "T"), lambda desk, sent: desk.moa_handoff_consume(sent, **INBOX), after
    )


# --- debates


def _debate(desk: Desk) -> None:
    desk.moa_init("t1", agents=["a", "b"], rounds=2)
    desk.moa_start_debate("t1", "references")


def _turns(bus: Bus) -> list[str]:
    return [str(d.value.get("content", d.value["kind"])) for d in bus.store.list(".bus/debates/t1/turns")]


def submit_race(work: Path) -> Found:
    """Eight processes speak for one agent at once, each with a text of its own."""

    def act(desk: Desk, _: Any, me: int) -> str:
        try:
            desk.moa_submit_turn("t1", "a", f"text {me}", turn=1)
        except BusError as error:
            return error.code
        return "accepted"

    desk, found = race(work, _debate, act)
    return {"said": sorted(found), "turns": len(_turns(desk.bus))}


def submit_killed(work: Path) -> Found:
    """A turn is submitted; after a kill it is submitted again."""

    def after(desk: Desk, _: Any) -> list[str]:
        told = desk.moa_wait_turn("t1", "b", timeout_s=0)
        good = _turns(desk.bus) == ["x"] and (told["status"], told["turn"]) == ("your_turn", 2)
        return [] if good else [f"{_turns(desk.bus)} {told}"]

    return killed(work, _debate, lambda desk, _: desk.moa_submit_turn("t1", "a", "x", turn=1), after)


def complete_killed(work: Path) -> Found:
    """A debate with a note and two turns is closed; after a kill it is closed again."""

    def before(desk: Desk) -> None:
        _debate(desk)
        desk.moa_board_write("n", "note", scope="task:t1")
        for agent in "ab":
            desk.moa_submit_turn("t1", agent, "x")

    def after(desk: Desk, _: Any) -> list[str]:
        folder = Path(desk.bus.settings.root) / "archive" / "debates" / "t1"
        lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
        kinds = [json.loads(line)["type"] for line in lines]
        verdict = json.loads((folder / "result.json").read_text(encoding="utf-8"))["verdict"]
        good = verdict == "SAFE" and kinds.count("task_closed") == 1 and len(list(folder.iterdir())) == 4
        return [] if good else [f"{verdict} {kinds}"]

    return killed(work, before, lambda desk, _: desk.moa_complete("t1", verdict="SAFE"), after)


ACTS: dict[str, Callable[[Path], Any]] = {
    "write_race": write_race,
    "write_killed": write_killed,
    "migrate_killed": migrate_killed,
    "tip_race": tip_race,
    "consume_race": consume_race,
    "send_killed": send_killed,
    "consume_killed": consume_killed,
    "submit_race": submit_race,
    "submit_killed": submit_killed,
    "complete_killed": complete_killed,
}


def main() -> None:
    """See the top."""
    with tempfile.TemporaryDirectory() as folder:
        desk = open_desk(Path(folder))
        _debate(desk)  # so that the forks find everything loaded
        desk.moa_wait_turn("t1", "a", timeout_s=0)
        reaper.sweep(desk.bus, desk.bus.now())
    for line in sys.stdin:
        name, work = json.loads(line)
        print(json.dumps(ACTS[name](Path(work))), flush=True)


if __name__ == "__main__":
    main()
