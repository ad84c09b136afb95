"""A mirror that is killed -9 anywhere while it takes decisions and orders: each of them is done once."""

from __future__ import annotations

import os
import re
import signal
import sys
from multiprocessing import Process
from pathlib import Path

import pytest

from tests.vault.conftest import Vault
from tests.vault.test_deciding import answer, blocked, front, name_of, tick
from tests.vault.test_orders import order, put

SEEN = re.compile(r"vault|notes|commands|inbox|waiting|approvals|archive|ledger|\.bus.tmp")


def die_at(root: str, call: int) -> None:
    """Runs a mirror for a minute and is killed at the so manieth call that touches a file."""
    found = Vault(Path(root), authority="all")
    left = [call]

    def trap(event: str, args: tuple[object, ...]) -> None:
        changes = event in ("os.rename", "os.link", "os.remove") or (event == "open" and args[1] not in ("r", "rb"))
        if changes and SEEN.search(str(args)):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(trap)
    found.run(90)


@pytest.mark.req("vault:51")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("step", [7, 11])
def test_a_mirror_killed_anywhere_takes_each_decision_and_order_once(tmp_path: Path, step: int) -> None:
    root = tmp_path / "My Vault" / "09_AgentSync"
    root.mkdir(parents=True)
    vault = Vault(root, authority="all")
    risky = str(vault.boss.dispatch_task("coder", "Delete all old files in drafts/")["task_id"])
    asked = blocked(vault)
    vault.run(20)
    tick(vault, risky, "approve")
    answer(vault, asked, "SQLite")
    tick(vault, asked, "send")
    put(vault, "Order", order(text="From a note", made="2026-12-01 18:00:00"))
    put(vault, "Inbox", "@coder From a line\n@coder From a line\n")
    codes: list[int | None] = []
    while 0 not in codes and len(codes) < 60:
        one = Process(target=die_at, args=(str(root), (len(codes) + 1) * step))
        one.start()
        one.join(60)
        codes.append(one.exitcode)
    assert codes[-1] == 0
    assert codes.count(-signal.SIGKILL) >= 3
    vault.run(60)
    events = [one["event"] for one in vault.boss.task(risky)["history"]]
    assert events.count("approve") == 1
    assert [one["event"] for one in vault.boss.task(asked)["history"]].count("retry") == 1
    tasks = [vault.boss.task(one["task_id"])["instruction"] for one in vault.boss.list_tasks()["tasks"]]
    assert sorted(tasks).count("From a note") == 1
    assert tasks.count("From a line") == 2
    text = vault.note(name_of(asked))
    assert text.count("SQLite") == 2, "in the task and in the log"
    assert (front(vault, risky)["ab_status"], front(vault, asked)["ab_status"]) == ("pending", "pending")
    assert (root / "commands" / "Inbox.md").read_text().count("- [x] @coder From a line → [[t-") == 2
    vault.bus.close()
