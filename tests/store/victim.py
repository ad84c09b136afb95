"""A process that is killed or stopped at its n-th system call; see test_kill.py.

    python victim.py TEMPLATE WORK HOW LINKS OPERATION

For n = 1, 2, … the template folder is copied to WORK/<n>, and a child runs the operation there until its n-th counted
call, before which it is killed (HOW = kill) or stopped (HOW = stop). While it is stopped, this process tries the same
operation and another document, then lets the child go on. The last n is the first that the operation does not reach.
Prints one JSON list with an object for each n.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from agent_bus.errors import BusError
from agent_bus.store import exclusive
from agent_bus.store.files import FileStore
from agent_bus.store.port import Doc, Exists, Stale, Store

COUNTED = (
    "open",
    "write",
    "utime",
    "fsync",
    "fstat",
    "link",
    "rename",
    "replace",
    "unlink",
    "mkdir",
    "stat",
    "lstat",
    "close",
)
NAME = "t-1"
OLD, NEW = f"inbox/coder/{NAME}", f"archive/2026-03/{NAME}"
BEFORE, AFTER, OTHER = {"n": 1, "mine": "kept"}, {"n": 2, "mine": "kept"}, {"n": 3, "mine": "kept"}
_MANY = 200


def operate(store: Store, operation: str, doc: Doc | None, value: dict[str, Any]) -> str:
    """One operation on the one document, as it was read; how it ended."""
    try:
        if operation == "create":
            store.create(OLD, value)
        elif doc is None:
            return "gone"
        elif operation == "replace":
            store.replace(doc, value)
        elif operation == "move":
            store.move(doc, NEW, value)
        else:
            store.delete(doc)
    except (Stale, Exists) as error:
        return type(error).__name__
    except BusError as error:
        return error.code
    return "done"


class Fuse:
    """Counts calls and does something before the n-th."""

    def __init__(self, number: int, signum: int) -> None:
        self.left = number
        self.signum = signum

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.signum)

    def arm(self) -> None:
        # Counted, but not done: a kill loses nothing that was written, and the disk may be slow.
        setattr(os, "fsync", lambda _: None)  # noqa: B010
        for name in COUNTED:
            real = getattr(os, name)
            setattr(os, name, self.around(real))
            if real in os.supports_fd:
                os.supports_fd.add(getattr(os, name))
        exclusive.rename = self.around(exclusive.rename)

    def around(self, call: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count()
            return call(*args, **kwargs)

        return counted


def child(root: Path, operation: str, number: int, signum: int, report: int) -> None:
    """The victim itself: never returns."""
    store, tell = FileStore(root), os.write
    doc = store.get(OLD)
    fuse = Fuse(number, signum)
    fuse.arm()
    outcome = operate(store, operation, doc, AFTER)
    os._exit(0 if tell(report, f"{outcome} {fuse.left}".encode()) else 1)


def without_links() -> None:
    """A file system that knows neither links nor exclusive renames."""

    def link(*_: Any, **__: Any) -> None:
        raise OSError(1, "Operation not permitted")

    os.link = link
    exclusive.rename = lambda *_: False


def run(template: Path, work: Path, how: str, operation: str) -> list[dict[str, Any]]:
    """All points of one operation."""
    points: list[dict[str, Any]] = []
    for number in range(1, _MANY):
        root = work / str(number)
        shutil.copytree(template, root, copy_function=shutil.copy2)
        point = run_one(root, operation, number, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        points.append(point)
        if point["left"] > 0:
            return points
    raise AssertionError("the operation has no end")


def run_one(root: Path, operation: str, number: int, signum: int) -> dict[str, Any]:
    """One point."""
    reading, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(root, operation, number, signum, report)
    os.close(report)
    point: dict[str, Any] = {"root": str(root), "same": "", "another": "", "left": 0}
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        point.update(interfere(root, operation))
        os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, 0)
    text = os.read(reading, 1000).decode()
    os.close(reading)
    outcome, left = text.split() if text else ("killed", "0")
    point.update(outcome=outcome, left=int(left), signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    return point


def interfere(root: Path, operation: str) -> dict[str, str]:
    """What others can do meanwhile, with little patience."""
    store = Impatient(root)
    same = operate(store, operation, store.get(OLD), OTHER)
    try:
        store.delete(store.replace(store.create("inbox/coder/another", {}), {"n": 1}))
        another = "done"
    except BusError as error:
        another = error.code
    store.close()
    return {"same": same, "another": another}


class Impatient(FileStore):
    """A store that waits for locks only a moment."""

    def lock(self, name: str, pool: str = "doc", wait_s: float = 0.03) -> Any:
        return super().lock(name, pool, min(wait_s, 0.03))


def main(words: list[str]) -> None:
    """See the top."""
    template, work, how, links, operation = words
    if links == "no-links":
        without_links()
    json.dump(run(Path(template), Path(work), how, operation), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
