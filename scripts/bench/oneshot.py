"""The command line: a process a call."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.boxes import AGENT, Box, fill
from bench.measure import Row, Scale, Side, interleave, median

CLI = [sys.executable, "-c", "import sys; from agent_bus.faces.cli import main; sys.exit(main())"]
"""What the installed command does, in the interpreter of the benchmarks."""


def receive(folder: Path, scale: Scale) -> Iterator[Row]:
    """What each queued task adds to a receive that starts with nothing in memory."""
    sizes = {"small": 0, "large": scale.deep}
    sides: dict[str, Side] = {}
    for name, count in sizes.items():
        box = Box(folder / name, durable=False)
        fill(box, count)
        sides[name] = partial(_receive_once, box)
    found = {name: median(times) for name, times in interleave(sides, scale.rounds).items()}
    added = (found["large"] - found["small"]) / scale.deep * 1e6
    yield Row(f"receive by CLI, each of {scale.deep:,} queued adds", added, "µs", None, "", "<=", 15.0)
    yield Row("receive by CLI, empty inbox", found["small"] * 1e3, "ms")


def status(folder: Path, scale: Scale) -> Iterator[Row]:
    """`agent-bus status` against a Python that imports pydantic and ends."""
    box = Box(folder / "bus")
    box.dispatch()
    sides: dict[str, Side] = {
        "ours": partial(timed, [*CLI, "status", "--root", str(box.root)]),
        "version": partial(timed, [*CLI, "--version"]),
        "pydantic": partial(timed, [sys.executable, "-c", "import pydantic"]),
    }
    found = interleave(sides, 2 * scale.rounds)  # one start varies much
    limit = min(found["pydantic"]) * 1e3
    ours = median(found["ours"]) * 1e3
    yield Row("agent-bus status", ours, "ms", limit, 'python -c "import pydantic"', "<=", 2.5)
    yield Row("agent-bus --version", median(found["version"]) * 1e3, "ms", limit, 'python -c "import pydantic"')
    box.close()


def timed(command: list[str]) -> float:
    """Seconds that a process takes; it must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    return time.perf_counter() - start


def _receive_once(box: Box) -> float:
    """One receive by a process of its own, as a worker that has nothing yet; what it took stays with it."""
    box.dispatch()
    label = f"{AGENT}-{time.time_ns()}"
    return timed([*CLI, "receive", AGENT, "--worker", label, "--root", str(box.root), "--json"])
