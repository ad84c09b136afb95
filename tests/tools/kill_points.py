"""Runs something in a process that is killed or stopped before its n-th write-like system call, for every n.

`tests/e2e/points.py` says what is run. Processes are forks of one that has everything imported, so that a point costs
milliseconds; they share nothing with one another but the folder.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_bus.store import exclusive

COUNTED = ("write", "utime", "fsync", "link", "rename", "replace", "unlink", "mkdir", "rmdir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MANY = 400
_real_write = os.write

Act = Callable[[Path], Any]
Prepared = Callable[[Path], Callable[[], Any]]


@dataclass(frozen=True)
class Point:
    """What happened at one point.

    Args:
        number: before which counted call.
        root: the folder that the process worked in.
        reached: False once the act ends before that many calls.
        outcome: what the process answered; None if it was killed.
        during: what was done while it was stopped.
    """

    number: int
    root: Path
    reached: bool
    outcome: Any
    during: Any


class Fuse:
    """Counts write-like calls and sends this process a signal before the n-th."""

    def __init__(self, number: int, signum: int) -> None:
        self.left = number
        self._signum = signum

    def arm(self) -> None:
        """From now on every call counts."""
        followed_by_handle = os.utime in os.supports_fd
        for name in COUNTED:
            setattr(os, name, self._around(getattr(os, name), lambda *_, **__: True))
        if followed_by_handle:
            os.supports_fd.add(os.utime)
        os.open = self._around(os.open, lambda _, flags, *__, **___: flags & _WRITING)
        builtins.open = io.open = self._around(io.open, lambda _, mode="r", *__, **___: set(mode) & set("wax+"))
        exclusive.rename = self._around(exclusive.rename, lambda *_: True)

    def _around(self, call: Any, counts: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if counts(*args, **kwargs):
                self.left -= 1
                if self.left == 0:
                    os.kill(os.getpid(), self._signum)
            return call(*args, **kwargs)

        return counted


def points(template: Path, work: Path, signum: int, prepare: Prepared, meanwhile: Act | None = None) -> Iterator[Point]:
    """Every point of an act; the last one is that of a run to its end.

    Args:
        template: the folder before the act; each point gets a copy.
        work: where the copies are made.
        signum: SIGKILL, or SIGSTOP: then `meanwhile` runs in a process of its own while the act stands still.
        prepare: opens the folder and gives the act itself; what it does is not counted.
        meanwhile: see signum.
    """
    for number in range(1, _MANY):
        root = work / f"{number:03d}"
        shutil.copytree(template, root, copy_function=shutil.copy)
        point = _one(root, number, signum, prepare, meanwhile)
        yield point
        if not point.reached:
            return
    raise AssertionError("the act has no end")


def in_child(act: Callable[[], Any]) -> Any:
    """What a function answers in a process of its own.

    Raises:
        RuntimeError: it raised; with its traceback.
    """
    with child(act) as value:
        return value


@contextmanager
def child(act: Callable[[], Any]) -> Iterator[Any]:
    """As `in_child`, but the process lives on until the block is left."""
    waiting, leave = os.pipe()

    def stay() -> None:
        os.close(leave)
        os.read(waiting, 1)

    pid, reading = _fork(act, None, stay)
    os.close(waiting)
    try:
        answer = _answer(reading)
        if answer is None or "error" in answer:
            raise RuntimeError(answer["error"] if answer else "the process died")
        yield answer["value"]
    finally:
        os.close(leave)
        os.waitpid(pid, 0)


def _one(root: Path, number: int, signum: int, prepare: Prepared, meanwhile: Act | None) -> Point:
    pid, reading = _fork(lambda: prepare(root), Fuse(number, signum))
    during = answer = None
    _, status = os.waitpid(pid, os.WUNTRACED)
    reached = os.WIFSTOPPED(status) or os.WIFSIGNALED(status)
    if os.WIFSTOPPED(status):
        assert meanwhile
        try:
            with child(lambda: meanwhile(root)) as during:
                os.kill(pid, signal.SIGCONT)
                answer = _answer(reading)
        finally:
            os.kill(pid, signal.SIGCONT)
            os.waitpid(pid, 0)
    else:
        answer = _answer(reading)
    if answer and "error" in answer:
        raise RuntimeError(f"point {number}: {answer['error']}")
    return Point(number, root, reached, answer["value"] if answer else None, during)


def _fork(act: Callable[[], Any], fuse: Fuse | None, last: Callable[[], Any] = lambda: None) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        if fuse is None:
            answer = {"value": act()}
        else:
            ready = act()
            fuse.arm()
            answer = {"value": ready()}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    data = memoryview(json.dumps(answer).encode())
    while data:
        data = data[_real_write(writing, data) :]
    os.close(writing)
    last()
    os._exit(0)


def _answer(reading: int) -> Any:
    with io.FileIO(reading) as pipe:
        data = pipe.readall()
    return json.loads(data) if data else None
