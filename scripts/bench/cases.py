"""All benchmarks by name, and the run over them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bench import crew, inbox, oneshot, serving, waking
from bench.measure import Row, Scale

CASES: dict[str, Callable[[Path, Scale], Iterator[Row]]] = {
    "dispatch": inbox.dispatch,
    "dispatch-growth": inbox.dispatch_growth,
    "receive": inbox.receive,
    "receive-cli": oneshot.receive,
    "submit": inbox.submit,
    "jobs": inbox.whole_job,
    "jobs-many": crew.many,
    "exactly-once": crew.exactly_once,
    "exactly-once-killed": crew.exactly_once_killed,
    "wake": waking.wake,
    "idle": waking.idle,
    "burst": waking.burst,
    "mcp": serving.calls,
    "http": serving.over_http,
    "start": serving.start,
    "memory": serving.memory,
    "list-size": serving.list_size,
    "status": oneshot.status,
}


def run(names: Iterable[str], scale: Scale, place: Path | None) -> list[Row]:
    """Runs benchmarks one after the other, each in a folder of its own that is gone afterwards.

    Args:
        names: keys of CASES.
        scale: how much.
        place: a folder whose file system is measured; None = the system's temporary folder.
    """
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="agent-bus-bench-", dir=place, ignore_cleanup_errors=True) as top:
        os.environ["AGENT_BUS_STATE_HOME"] = str(Path(top) / "state")
        for name in names:
            start = time.monotonic()
            home = Path(top) / name
            home.mkdir()
            rows += CASES[name](home, scale)
            shutil.rmtree(home, ignore_errors=True)
            print(f"-- {name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return rows
