"""What is killed or stopped at every point, and what must hold afterwards.

    python -m tests.e2e.points

Reads lines `["kill" or "stop", NAME, WORK]` and answers each with one JSON object: how many points there were, how many
different states of the folder they left, and what was wrong. A state is judged once, in fresh processes, in one of the
orders in which the world may go on, in turn: the client repeats its call, the reaper comes, or others just work, with
and without accepting. With AGENT_BUS_THOROUGH=1 it is judged in all of them, and chains are longer.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agent_bus import app
from agent_bus.bus import Bus
from agent_bus.operations import ledger, stop
from agent_bus.store import journal
from agent_bus.store.files import FileStore
from tests.e2e.desk import AGENT, Desk
from tests.tools.audit import audit, reports, tasks
from tests.tools.kill_points import Point, in_child, points

Facts = dict[str, Any]
RISKY = "delete the production database"
STEPS: list[Facts] = [
    {"target": "tester", "instruction": "test it", "next_tasks": [{"target": AGENT, "instruction": "ship it"}]},
    {"target": "writer", "instruction": "write about it", "when": "always"},
    {"target": "doctor", "instruction": "mend it", "when": "failed"},
]
THOROUGH = bool(os.environ.get("AGENT_BUS_THOROUGH"))
CHAIN = STEPS if THOROUGH else STEPS[1:]
"""What is accepted in more than one way has a shorter chain, as each task of it is done in the same steps."""
CHILDREN = len(CHAIN) - 1
ORDERS = ("repeat", "reap", "work", "receive")


@dataclass(frozen=True)
class Scene:
    """One act with its world.

    Args:
        before: makes the world; what it returns is given to the others.
        act: what is killed; a client repeats it.
        after: what is wrong in the end, in words, however the world went on (but not when others have worked).
    """

    before: Callable[[Desk], Facts]
    act: Callable[[Desk, Facts], Any]
    after: Callable[[Desk, Facts], list[str]]


def given(status: str = "", steps: Sequence[Facts] = (), more: int = 0, **options: Any) -> Callable[[Desk], Facts]:
    """A world with one task in a state, and more pending ones behind it."""

    def before(desk: Desk) -> Facts:
        extra = json.dumps(options | ({"next_tasks": steps} if steps else {}))
        risky = status == "pending_approval"
        sent = desk.call(
            "dispatch_task", target=AGENT, instruction=RISKY if risky else "x", from_agent="boss", options=extra
        )
        for n in range(more):
            desk.call("dispatch_task", target=AGENT, instruction=f"later {n}", from_agent="boss")
        facts: Facts = {"task_id": sent["task_id"]}
        if status in ("", "pending_approval"):
            return facts
        mortal = status in ("lost", "dead_letter")
        facts |= (desk if mortal else Desk(desk.bus, process=False)).receive()
        if status in ("completed", "failed", "blocked"):
            desk.report(facts, status)
        elif status == "in_review":
            desk.report(facts, needs_review=True)
        elif status == "lost":
            desk.call("update_status", agent=AGENT, state="working", current_task_id=facts["task_id"])
            desk.bury(facts["task_id"])
        elif status == "dead_letter":
            desk.call("update_status", agent=AGENT, state="working", current_task_id=facts["task_id"])
            desk.bury(facts["task_id"])
            desk.reap()
        return facts

    return before


def is_in(status: str, kept: int = 0, children: int = 0) -> Callable[[Desk, Facts], list[str]]:
    """The task has a status, so many reports are kept, and its chain has dispatched so many tasks."""

    def after(desk: Desk, facts: Facts) -> list[str]:
        task = desk.task(facts["task_id"])
        wrong = [] if task.status == status else [f"it is {task.status}, not {status}"]
        found = [r for r in reports(desk.bus) if r["task_id"] == task.task_id]
        if len(found) != kept:
            wrong.append(f"{len(found)} reports are kept: {found}")
        made = [t.to for places in tasks(desk.bus).values() for _, t in places if t.parent == task.task_id]
        return wrong if len(made) == children else [*wrong, f"the chain dispatched {made}"]

    return after


def submit(status: str = "completed", **given: Any) -> Callable[[Desk, Facts], Any]:
    return lambda desk, facts: desk.report(facts, status, **given)


def verb(name: str, **given: Any) -> Callable[[Desk, Facts], Any]:
    return lambda desk, facts: desk.call(name, task_id=facts["task_id"], **given)


def dispatch(instruction: str = "y", key: str = "k", after: bool = False) -> Callable[[Desk, Facts], Any]:
    def act(desk: Desk, facts: Facts) -> Any:
        needs = [facts["task_id"]] if after else []
        return desk.call(
            "dispatch_task", target=AGENT, instruction=instruction, from_agent="boss", dedupe_key=key, depends_on=needs
        )

    return act


def dispatched(status: str, at_most: int = 1) -> Callable[[Desk, Facts], list[str]]:
    def after(desk: Desk, facts: Facts) -> list[str]:
        made = [t for places in tasks(desk.bus).values() for _, t in places if t.task_id != facts["task_id"]]
        if not 1 <= len(made) <= at_most or any(t.status != status for t in made):
            return [f"dispatched {[(t.task_id, t.status) for t in made]}"]
        return []

    return after


def received_once(desk: Desk, facts: Facts) -> list[str]:
    """The task is held, at the second attempt if the first receiver died with it; that crash does not count."""
    task = desk.task(facts["task_id"])
    fine = task.status == "in_progress" and task.attempt in (1, 2) and task.crashes == 0
    return [] if fine else [f"{task.status}, attempt {task.attempt}, crashes {task.crashes}"]


def revived(desk: Desk, facts: Facts) -> list[str]:
    task = desk.task(facts["task_id"])
    fine = task.status == "in_progress" and task.attempt in (2, 3) and task.crashes == 1
    return [] if fine else [f"{task.status}, attempt {task.attempt}, crashes {task.crashes}"]


def asked_to_stop(desk: Desk, facts: Facts) -> list[str]:
    task = desk.task(facts["task_id"])
    return [] if task.status == "in_progress" and task.cancel else [f"{task.status}, cancel {task.cancel}"]


def working(desk: Desk) -> Facts:
    """Somebody holds a task and somebody waits; both have told their state."""
    facts = given("held", more=1)(desk)
    desk.call("update_status", agent=AGENT, state="working")
    desk.call("update_status", agent="boss", state="waiting_for_review")
    return facts


def stopped(desk: Desk) -> Facts:
    facts = working(desk)
    desk.call("emergency_stop", reason="fire")
    return facts


def states(desk: Desk) -> dict[str, str]:
    return {a["agent"]: a["state"] for a in desk.call("get_all_status")["agents"]}


def stands_still(desk: Desk, facts: Facts) -> list[str]:
    """The stop stands with its words, everybody shows it, and a resume ends it."""
    record = stop.read(desk.bus) or {}
    wrong = [] if record.get("reason") == "fire" and record.get("epoch") else [f"the stop says {record}"]
    if (now := states(desk)) != {AGENT: "stopped", "boss": "stopped"}:
        wrong.append(f"the agents are {now}")
    if not desk.call("resume").get("resumed") or stop.is_stopped(desk.bus):
        wrong.append("it could not be resumed")
    return wrong + goes_on(desk, facts)


def goes_on(desk: Desk, facts: Facts) -> list[str]:
    """Nothing is left of a stop, and the next one has its reserve."""
    wrong = ["it is stopped"] if stop.is_stopped(desk.bus) else []
    if (now := states(desk)) != {AGENT: "working", "boss": "waiting_for_review"}:
        wrong.append(f"the agents are {now}")
    layout = desk.bus.layout
    return wrong if layout and (layout.state / "stop.reserve").exists() else [*wrong, "there is no reserve"]


def reap(desk: Desk, facts: Facts) -> Any:
    return desk.reap().model_dump()


def share_chain(desk: Desk, facts: Facts) -> Any:
    return desk.call(
        "share_context", key=f"task-chain-{facts['task_id']}", data=json.dumps({"next_tasks": CHAIN}), author="boss"
    )


def acknowledged(desk: Desk) -> Facts:
    facts = given("completed")(desk)
    desk.call("acknowledge_report", task_id=facts["task_id"])
    return facts


def needed(desk: Desk) -> Facts:
    """A held task that another one waits for."""
    facts = given("held")(desk)
    facts["waiting"] = desk.call(
        "dispatch_task", target="tester", instruction="z", from_agent="boss", depends_on=[facts["task_id"]]
    )["task_id"]
    return facts


def both(*checks: Callable[[Desk, Facts], list[str]]) -> Callable[[Desk, Facts], list[str]]:
    return lambda desk, facts: [w for check in checks for w in check(desk, facts)]


def dependent_is_ready(desk: Desk, facts: Facts) -> list[str]:
    status = desk.task(facts["waiting"]).status
    return [] if status == "pending" else [f"the task that waited is {status}"]


ACK = verb("acknowledge_report")
REWORK = verb("acknowledge_report", verdict="rework", comment="more tests")
SCENES: dict[str, Scene] = {
    "dispatch": Scene(given(), dispatch(key=""), dispatched("pending", at_most=2)),
    "dispatch with a key": Scene(given(), dispatch(), dispatched("pending")),
    "dispatch of a risky task": Scene(given(), dispatch(RISKY), dispatched("pending_approval")),
    "dispatch behind an open task": Scene(given(), dispatch(after=True), dispatched("waiting")),
    "dispatch behind an ended task": Scene(given("completed"), dispatch(after=True), dispatched("pending")),
    "receive": Scene(given(), lambda desk, _: desk.receive(), received_once),
    "receive after a dead holder": Scene(given("lost"), lambda desk, _: desk.receive(), revived),
    "submit completed": Scene(given("held"), submit(), is_in("completed", 1)),
    "submit what another task needs": Scene(needed, submit(), both(is_in("completed", 1), dependent_is_ready)),
    "submit for review": Scene(given("held"), submit(needs_review=True), is_in("in_review", 1)),
    "submit blocked": Scene(given("held"), submit("blocked"), is_in("blocked", 1)),
    "submit failed": Scene(given("held"), submit("failed"), is_in("failed", 1)),
    "submit failed to run again": Scene(given("held", retry_failed=True), submit("failed"), is_in("scheduled", 1)),
    "accept": Scene(given("completed"), ACK, is_in("completed", 1)),
    "accept with a chain": Scene(given("completed", STEPS), ACK, is_in("completed", 1, 2)),
    "accept after review": Scene(given("in_review", CHAIN), ACK, is_in("completed", 1, CHILDREN)),
    "accept what is blocked": Scene(given("blocked", STEPS), ACK, is_in("failed", 1, 2)),
    "rework": Scene(given("in_review"), REWORK, is_in("pending", 1)),
    "rework of what is blocked": Scene(given("blocked"), REWORK, is_in("pending", 1)),
    "cancel": Scene(given(), verb("cancel_task"), is_in("cancelled", 1)),
    "cancel what runs": Scene(given("held"), verb("cancel_task"), asked_to_stop),
    "approve": Scene(given("pending_approval"), verb("approve"), is_in("pending")),
    "reject": Scene(given("pending_approval"), verb("reject"), is_in("rejected", 1)),
    "release": Scene(given("held"), verb("release_task"), is_in("pending")),
    "release for later": Scene(given("held"), verb("release_task", delay_s=300), is_in("scheduled")),
    "retry of a dead letter": Scene(given("dead_letter", max_attempts=1), verb("retry_task"), is_in("pending", 1)),
    "emergency stop": Scene(working, lambda desk, _: desk.call("emergency_stop", reason="fire"), stands_still),
    "resume": Scene(stopped, lambda desk, _: desk.call("resume"), goes_on),
    "a pass of the reaper": Scene(given("lost", more=1), reap, is_in("pending")),
    "a last pass of the reaper": Scene(given("lost", max_attempts=1), reap, is_in("dead_letter", 1)),
    "a chain written late": Scene(acknowledged, share_chain, is_in("completed", 1, CHILDREN)),
}


@dataclass(frozen=True)
class Duel:
    """Two acts on one world, one of them stopped half-way.

    Args:
        after: what is wrong, from the answers of the stopped one and of its rival.
    """

    before: Callable[[Desk], Facts]
    act: Callable[[Desk, Facts], Any]
    rival: Callable[[Desk, Facts], Any]
    after: Callable[[Desk, Facts, Any, Any], list[str]]


def one_holder(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    got = [a for a in (mine, theirs) if a.get("task_id")]
    task = desk.task(facts["task_id"])
    if len(got) > 1 or not got or task.attempt != 1 or not task.lease or task.lease.id != got[0]["lease_id"]:
        return [f"{mine} and {theirs}; attempt {task.attempt}"]
    return []


def different_tasks(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    """With two tasks both get one, whatever the other one stands still with; but two names may share one of the 256
    lock files, and then the rival is told so.
    """
    got = {a.get("task_id") for a in (mine, theirs)}
    if mine.get("task_id") and theirs.get("code") == "busy":
        return []
    return [] if len(got) == 2 and None not in got else [f"{mine} and {theirs}"]


def report_wins(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    task = desk.task(facts["task_id"])
    if task.status != "completed" or not mine.get("accepted") or len(reports(desk.bus)) != 1:
        return [f"{task.status}; {mine} and {theirs}"]
    return (
        []
        if theirs.get("cancel_requested") or theirs.get("code") in ("conflict", "busy")
        else [f"the cancel got {theirs}"]
    )


def one_verdict(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    task = desk.task(facts["task_id"])
    won = [a["verdict"] for a in (mine, theirs) if "verdict" in a]
    lost = [a["code"] for a in (mine, theirs) if "code" in a]
    fine = won == [("accept" if task.status == "completed" else "rework")] and lost[0] in ("conflict", "busy")
    return [] if fine else [f"{task.status}; {mine} and {theirs}"]


def same_verdict(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    wrong = is_in("completed", 1, CHILDREN)(desk, facts)
    first = [a for a in (mine, theirs) if a.get("already") is False]
    allowed = all(a.get("verdict") == "accept" or a.get("code") == "busy" for a in (mine, theirs))
    return wrong if len(first) <= 1 and allowed and mine.get("verdict") else [*wrong, f"{mine} and {theirs}"]


def one_task(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    wrong = dispatched("pending")(desk, facts)
    ids = {a["task_id"] for a in (mine, theirs) if "task_id" in a}
    fresh = [a for a in (mine, theirs) if a.get("deduplicated") is False]
    told = all("task_id" in a or a.get("code") == "busy" for a in (mine, theirs))
    return wrong if len(ids) == 1 and len(fresh) <= 1 and told else [*wrong, f"{mine} and {theirs}"]


def cancelled_or_held(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    task = desk.task(facts["task_id"])
    if theirs.get("task_id"):
        return [] if task.status == "in_progress" and task.cancel else [f"{task.status}; {mine} and {theirs}"]
    return (
        []
        if task.status == "cancelled" and mine.get("task_state") == "cancelled"
        else [f"{task.status}; {mine} and {theirs}"]
    )


def one_report(desk: Desk, facts: Facts, mine: Any, theirs: Any) -> list[str]:
    wrong = is_in("completed", 1)(desk, facts)
    first = [a for a in (mine, theirs) if a.get("duplicate") is False]
    return wrong if len(first) <= 1 and mine.get("accepted") else [*wrong, f"{mine} and {theirs}"]


DUELS: dict[str, Duel] = {
    "receive and receive": Duel(given(), lambda d, _: d.receive(), lambda d, _: d.receive(), one_holder),
    "receive and receive of two": Duel(
        given(more=1), lambda d, _: d.receive(), lambda d, _: d.receive(), different_tasks
    ),
    "submit and cancel": Duel(given("held"), submit(), verb("cancel_task"), report_wins),
    "submit and the same": Duel(given("held"), submit(), submit(), one_report),
    "cancel and receive": Duel(given(), verb("cancel_task"), lambda d, _: d.receive(), cancelled_or_held),
    "accept and accept": Duel(given("in_review", CHAIN), ACK, ACK, same_verdict),
    "accept and rework": Duel(given("in_review"), ACK, REWORK, one_verdict),
    "rework and accept": Duel(given("in_review"), REWORK, ACK, one_verdict),
    "dispatch and dispatch": Duel(given(), dispatch(), dispatch(), one_task),
    "submit and accept": Duel(
        given("held", CHAIN), submit(), ACK, lambda d, f, m, t: [] if m.get("accepted") else [f"{m} and {t}"]
    ),
}


def signature(root: Path) -> str:
    """The folder's documents without times and random ids; hints, temp files, locks and journal decide nothing."""
    found = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not re.match(r"\.bus/(tmp|hints|locks|journal)/", name):
            text = re.sub(rb"t-\d{8}-\d{6}-", b"t-", name.encode() + b"\n" + path.read_bytes())
            text = re.sub(
                rb'\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{16}|"(wall|boot_s)":[\d.]+|"pid(_started)?": ?"?\d+', b"", text
            )
            found.append(re.sub(rb"\d{8}/t-", b"t-", text))
    return hashlib.sha256(b"\0".join(found)).hexdigest()


def look_around(desk: Desk) -> list[str]:
    """Every reader answers, and no task is seen twice or not at all."""
    wrong = []
    found = tasks(desk.bus)
    wrong += [f"{name} is in {[key for key, _ in places]}" for name, places in found.items() if len(places) != 1]
    answers = [desk.call(name) for name in ("list_tasks", "get_all_status", "system_health")]
    answers += [desk.call("get_task", task_id=name) for name in found]
    wrong += [f"a reader got {a}" for a in answers if "code" in a]
    shown = [row["task_id"] for row in answers[0].get("tasks", [])]
    if len(set(shown)) != len(shown):
        wrong.append(f"list_tasks shows {shown}")
    return wrong


def go_on(root: Path, scene: Scene, facts: Facts, order: str) -> list[str]:
    """The world after a kill, in a fresh process."""
    desk = Desk(root)
    wrong = look_around(desk)
    if order == "repeat":
        scene.act(desk, facts)
    elif order in ("work", "receive"):
        work(desk, facts, order == "work")
    desk.reap()
    wrong += audit(desk.bus, stop.is_stopped(desk.bus))
    if order == "reap":
        scene.act(desk, facts)
        wrong += audit(desk.bus, stop.is_stopped(desk.bus))
    if order in ("repeat", "reap"):
        wrong += scene.after(desk, facts)
    return wrong + much_later(desk)


def work(desk: Desk, facts: Facts, accept: bool) -> None:
    """Others just work: they take what there is, report, and accept if they do."""
    for agent in (AGENT, "tester"):
        if "task_id" in (held := desk.receive(agent)):
            desk.report(held, summary="done by somebody else")
    if accept:
        desk.call("acknowledge_report", task_id=facts["task_id"])


def much_later(desk: Desk) -> list[str]:
    """After a quarter of an hour no id is left that was taken and not used."""
    later = desk.at(900)
    later.reap()
    wrong = audit(later.bus, stop.is_stopped(later.bus))
    for day in later.bus.store.folders(".bus/ledger"):
        docs = later.bus.store.list(f".bus/ledger/{day}")
        wrong += [f"{doc.name} is still reserved" for doc in docs if doc.value["state"] == ledger.RESERVED]
    return wrong


def kill(scene: Scene, work_folder: Path) -> dict[str, Any]:
    """Every point of a scene."""
    template, facts = _template(scene.before, work_folder)
    seen: set[str] = set()
    wrong: list[str] = []
    count = 0
    for point in points(template, work_folder, signal.SIGKILL, lambda root: _ready(root, scene.act, facts)):
        count += 1
        if (sign := signature(point.root)) in seen:
            continue
        seen.add(sign)
        for order in _orders(len(seen)):
            root = point.root.with_name(f"{point.root.name}-{order}")
            shutil.copytree(point.root, root, copy_function=shutil.copy)
            found = _judged(partial(go_on, root, scene, facts, order))
            wrong += [f"{count}, {order}: {w}" for w in found]
    return {"points": count, "states": len(seen), "wrong": wrong}


def _orders(number: int) -> tuple[str, ...]:
    """One of the orders for each state, in turn; all of them for a long run by hand (AGENT_BUS_THOROUGH=1)."""
    return ORDERS if THOROUGH else (ORDERS[number % len(ORDERS)],)


def duel(pair: Duel, work_folder: Path) -> dict[str, Any]:
    """Every point of the first one."""
    template, facts = _template(pair.before, work_folder)
    wrong: list[str] = []
    count = 0
    for point in points(
        template, work_folder, signal.SIGSTOP, lambda r: _ready(r, pair.act, facts), lambda r: _rival(r, pair, facts)
    ):
        count += 1
        if point.reached:
            wrong += [f"{count}: {w}" for w in _judged(partial(_aftermath, point, pair, facts))]
    return {"points": count, "states": count, "wrong": wrong}


def _aftermath(point: Point, pair: Duel, facts: Facts) -> list[str]:
    desk = Desk(point.root)
    wrong = look_around(desk)
    wrong += (
        pair.after(desk, facts, point.outcome, point.during) if point.outcome is not None else ["the stopped one died"]
    )
    later = desk.at(1)
    later.reap()
    return wrong + audit(later.bus)


def _rival(root: Path, pair: Duel, facts: Facts) -> Any:
    """The rival's answer; it waits for locks only a moment."""
    patient = FileStore.lock
    FileStore.lock = lambda self, name, pool="doc", wait_s=0.05: patient(self, name, pool, min(wait_s, 0.05))  # type: ignore[method-assign]
    journal._LOCK_WAIT_S = 0.05
    return pair.rival(Desk(root), facts)


def _judged(judge: Callable[[], list[str]]) -> list[str]:
    try:
        found: list[str] = in_child(judge)
    except RuntimeError as error:
        return [str(error)[-1500:]]
    return found


def _ready(root: Path, act: Callable[[Desk, Facts], Any], facts: Facts) -> Callable[[], Any]:
    return partial(act, Desk(root), facts)


def _template(before: Callable[[Desk], Facts], work_folder: Path) -> tuple[Path, Facts]:
    template = work_folder / "template"
    template.mkdir()

    def make() -> Facts:
        desk = Desk(template)
        desk.reap()
        return before(desk)

    return template, in_child(make)


def warm(folder: Path) -> None:
    """Does everything once, so that the forks find caches filled and modules loaded."""
    desk = Desk(folder)
    given("in_review")(desk)
    look_around(desk)
    much_later(desk)
    app.load_features = lambda: None
    words = desk.bus.memo["words"]
    vars(app)["Bus"] = partial(Bus, memo={"words": words})
    gc.freeze()


def main() -> None:
    """See the top."""
    with tempfile.TemporaryDirectory() as folder:
        warm(Path(folder))
    for line in sys.stdin:
        how, name, work_folder = json.loads(line)
        folder_ = Path(work_folder)
        found = kill(SCENES[name], folder_) if how == "kill" else duel(DUELS[name], folder_)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
