"""Ending and freezing whole trees of real processes, and touching nobody else's."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from agent_bus.launchers import process, table, trees
from agent_bus.launchers.trees import Tree, end_all, freeze_all, roots, thaw_all
from tests.launchers.conftest import Runs, lives, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="scripted with fork and signals")

STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
CHILDREN = """
for n in range(3):
    if os.fork() == 0:
        say(f"child{n}")
        sleep()
say("root")
sleep()
"""
DAEMON = """
def daemon(name, env=None):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            script = f"import os, time\\nopen(r'{here}/{name}.pid', 'w').write(str(os.getpid()) + chr(10))\\n" \\
                     "while True: time.sleep(60)"
            os.execve(sys.executable, [sys.executable, "-c", script], os.environ if env is None else env)
        os._exit(0)
    os.wait()
"""


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that belongs to no run."""
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    yield started
    started.kill()
    started.wait()


def test_a_tree_that_takes_term_is_gone_within_its_grace(runs: Runs) -> None:
    tree = runs.start(CHILDREN)
    pids = [runs.pid(name) for name in ("root", "child0", "child1", "child2")]
    assert {member.pid for member in tree.members()} == set(pids)
    assert tree.end(30.0) == []
    assert not any(map(lives, pids))
    assert tree.poll() == (143, signal.SIGTERM)
    assert not tree.alive()


def test_children_stand_before_their_parents(runs: Runs) -> None:
    tree = runs.start(CHILDREN)
    for name in ("child0", "child1", "child2", "root"):
        runs.pid(name)
    assert [member.pid for member in tree.members()][-1] == tree.pid


def test_a_tree_that_ignores_term_is_killed_after_its_grace(runs: Runs) -> None:
    tree = runs.start(STUBBORN + CHILDREN)
    pids = [runs.pid(name) for name in ("root", "child0", "child1", "child2")]
    assert tree.end(0.3) == []
    assert not any(map(lives, pids))
    assert tree.poll() == (137, signal.SIGKILL)


def test_term_is_given_once(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
count = 0
def took(*_):
    global count
    count += 1
    open(os.path.join(here, "count"), "w").write(str(count))
signal.signal(signal.SIGTERM, took)
say("root")
sleep()
"""
    tree = runs.start(program)
    runs.pid("root")
    count, killpg = runs.folder / "count", os.killpg

    def and_wait(group: int, number: int) -> None:
        """Two signals that wait would be taken as one."""
        killpg(group, number)
        if number == signal.SIGTERM:
            wait_until(lambda: count.exists() and count.read_text())

    monkeypatch.setattr(os, "killpg", and_wait)
    assert tree.end(0.5) == []
    assert count.read_text() == "1"


def test_a_grandchild_that_holds_the_output_blocks_nobody_and_is_ended(runs: Runs) -> None:
    tree = runs.start("if os.fork() == 0:\n    say('grandchild')\n    sleep()\nsys.exit(4)\n")
    grandchild = runs.pid("grandchild")
    wait_until(lambda: tree.poll() == (4, 0))
    assert not tree.root_alive()
    assert tree.alive()
    assert tree.end(5.0) == []
    assert not lives(grandchild)


def test_a_process_that_left_its_session_is_found_by_its_marker(runs: Runs) -> None:
    tree = runs.start(DAEMON + "daemon('away')\nsys.exit(0)\n")
    away = runs.pid("away")
    wait_until(lambda: not tree.root_alive())
    assert os.getsid(away) != tree.pid
    assert Tree(tree.run_id).end(5.0) == []
    assert not lives(away)


def test_a_process_seen_as_a_member_once_stays_one_without_marker_and_parent(runs: Runs) -> None:
    program = """
if os.fork() == 0:
    os.setsid()
    script = f"import os, time\\nopen(r'{here}/bare.pid', 'w').write(str(os.getpid()) + chr(10))\\n"
    script += "while True: time.sleep(60)"
    os.execve(sys.executable, [sys.executable, "-c", script], {})
while not os.path.exists(os.path.join(here, "go")):
    time.sleep(0.01)
"""
    tree = runs.start(program)
    bare = runs.pid("bare")
    tree.cpu_s()
    (runs.folder / "go").touch()
    wait_until(lambda: not tree.root_alive())
    assert Tree(tree.run_id, tree.pid, tree.pid_started).members() == []
    assert tree.end(5.0) == []
    assert not lives(bare)


def test_a_child_born_during_the_end_is_ended_too(runs: Runs) -> None:
    program = (
        DAEMON
        + """
def late(*_):
    daemon("late")
    sys.exit(0)
signal.signal(signal.SIGTERM, late)
say("root")
sleep()
"""
    )
    tree = runs.start(program)
    runs.pid("root")
    assert tree.end(20.0) == []
    assert not lives(runs.pid("late"))
    assert tree.members() == []


def test_a_process_that_forks_without_end_is_ended(runs: Runs) -> None:
    program = (
        STUBBORN
        + """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
say("root")
for _ in range(3000):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
    time.sleep(0.005)
"""
    )
    tree = runs.start(program)
    runs.pid("root")
    assert tree.end(0.1) == []
    assert tree.members() == []


def test_several_trees_are_ended_side_by_side(runs: Runs) -> None:
    some = [runs.start(STUBBORN + f"say('root{n}')\nsleep()\n") for n in range(3)]
    pids = [runs.pid(f"root{n}") for n in range(3)]
    assert end_all(some, 0.2) == {tree.run_id: [] for tree in some}
    assert not any(map(lives, pids))


def test_one_tree_is_ended_and_its_neighbour_is_not_touched(runs: Runs, stranger: subprocess.Popen[bytes]) -> None:
    one, other = (runs.start(f"say('{name}')\nsleep()\n") for name in ("one", "other"))
    runs.pid("one"), runs.pid("other")
    assert one.end(5.0) == []
    assert other.root_alive()
    assert stranger.poll() is None


@pytest.mark.parametrize("started", ["2001-01-01T00:00:00.000Z", "", "nonsense"])
def test_a_pid_that_was_given_anew_is_never_signalled(stranger: subprocess.Popen[bytes], started: str) -> None:
    tree = Tree("r-t-never-1", stranger.pid, started)
    assert tree.root() is None
    assert not tree.root_alive()
    assert tree.members() == []
    assert end_all([tree], 0.0) == {"r-t-never-1": []}
    assert freeze_all([tree], 0.0) == {"r-t-never-1": []}
    thaw_all([tree])
    assert stranger.poll() is None
    assert psutil.Process(stranger.pid).status() != psutil.STATUS_STOPPED


def test_a_group_that_got_the_roots_number_anew_is_never_signalled(
    runs: Runs, stranger: subprocess.Popen[bytes]
) -> None:
    tree = runs.start("say('root')\nsleep()\n")
    runs.pid("root")
    forged = Tree(tree.run_id, stranger.pid, tree.pid_started.replace("20", "19", 1))
    assert {member.pid for member in forged.members()} == {tree.pid}
    assert forged.end(5.0) == []
    assert stranger.poll() is None


def test_a_root_whose_start_time_is_not_known_is_proved_by_its_marker(runs: Runs) -> None:
    tree = runs.start("say('root')\nsleep()\n")
    runs.pid("root")
    assert Tree(tree.run_id, tree.pid, "").root_alive()
    assert not Tree("r-t-other-1", tree.pid, "").root_alive()


def test_an_unknown_root_takes_no_group_of_others(stranger: subprocess.Popen[bytes]) -> None:
    assert Tree("r-t-nobody-1").members() == []
    assert not Tree("r-t-nobody-1").root_alive()
    assert stranger.poll() is None


@pytest.mark.parametrize("pid", [0, -1, 1])
def test_a_damaged_root_number_signals_no_group(runs: Runs, monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    tree = runs.start("say('root')\nsleep()\n")
    runs.pid("root")
    groups: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda group, _: groups.append(group))
        patch.setattr(os, "getpgid", lambda of: pid if of == tree.pid else 4_000_000)
        assert Tree(tree.run_id, pid).end(5.0) == []
    assert groups == []
    assert not lives(tree.pid)


def test_the_caller_is_never_among_those_it_ends(runs: Runs) -> None:
    program = f"""
sys.path[:0] = {sys.path!r}
from agent_bus.launchers.trees import Tree
if os.fork() == 0:
    say("child")
    sleep()
while not os.path.exists(os.path.join(here, "child.pid")):
    time.sleep(0.01)
told = Tree(os.environ["AGENT_BUS_RUN_ID"], os.getpid(), "").end(5.0)
print("told", told)
"""
    tree = runs.start(program)
    wait_until(lambda: tree.poll() is not None)
    assert tree.poll() == (0, 0), runs.log.read_text()
    assert runs.log.read_text() == "told []\n"
    assert not lives(runs.pid("child"))


def test_roots_are_the_marked_processes_whose_parents_are_not(runs: Runs) -> None:
    tree = runs.start(CHILDREN)
    for name in ("child0", "child1", "child2", "root"):
        runs.pid(name)
    assert roots(tree.run_id) == [process.Child(tree.pid, tree.pid_started)]
    assert roots("r-t-nobody-1") == []


def test_a_frozen_tree_stands_still_until_it_is_thawed(runs: Runs) -> None:
    program = DAEMON + "daemon('away')\n" + CHILDREN
    tree = runs.start(program)
    pids = [runs.pid(name) for name in ("root", "child0", "child1", "child2", "away")]
    assert freeze_all([tree], 0.0) == {tree.run_id: []}
    assert {psutil.Process(pid).status() for pid in pids} == {psutil.STATUS_STOPPED}
    assert tree.root_alive()
    thaw_all([Tree(tree.run_id, tree.pid, tree.pid_started)])
    wait_until(lambda: all(psutil.Process(pid).status() != psutil.STATUS_STOPPED for pid in pids))


def test_what_was_born_between_the_passes_of_a_freeze_is_frozen_too(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = runs.start("say('root')\nsleep()\n")
    runs.pid("root")

    def born(_: float) -> None:
        monkeypatch.undo()
        runs.start("say('late')\nsleep()\n", run_id=tree.run_id)
        runs.pid("late")

    monkeypatch.setattr(time, "sleep", born)
    assert freeze_all([tree]) == {tree.run_id: []}
    assert psutil.Process(runs.pid("late")).status() == psutil.STATUS_STOPPED


def test_a_frozen_tree_can_be_ended_and_still_takes_term(runs: Runs) -> None:
    program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nsay('root')\nsleep()\n"
    tree = runs.start(program)
    runs.pid("root")
    freeze_all([tree], 0.0)
    assert tree.end(20.0) == []
    assert tree.poll() == (9, 0)


def test_what_cannot_be_ended_is_named_with_the_reason(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = runs.start("say('root')\nsleep()\n")
    root = runs.pid("root")

    def denied(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", denied)
        patch.setattr(psutil.Process, "send_signal", denied)
        patch.setattr(trees, "KILL_S", 0.1)
        (left,) = tree.end(0.0)
    assert left.pid == root
    assert "may not be signalled" in left.why


def test_processor_time_of_the_whole_tree_counts(runs: Runs) -> None:
    program = """
if os.fork() == 0:
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    say("busy")
    sleep()
sleep()
"""
    tree = runs.start(program)
    runs.pid("busy")
    assert tree.cpu_s() >= 0.2


def test_zombies_are_gone(runs: Runs) -> None:
    tree = runs.start("if os.fork() == 0:\n    say('zombie')\n    os._exit(0)\nsay('root')\nsleep()\n")
    zombie = runs.pid("zombie")
    runs.pid("root")
    wait_until(lambda: psutil.Process(zombie).status() == psutil.STATUS_ZOMBIE)
    assert zombie not in table.look()
    assert {member.pid for member in tree.members()} == {tree.pid}
