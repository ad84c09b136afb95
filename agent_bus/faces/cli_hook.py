"""`agent-bus hook stop`: Claude Code asks it whether a run may end; without a report it is held once.

A hook must answer in a moment and must never be in a worker's way, so this module imports nothing but the standard
library, reads the files themselves, and says nothing wherever anything is not as it should be.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_TASK = re.compile(r"t-\d{8}-\d{6}-\d{3,9}", re.ASCII)
_RUN = re.compile(r"r-(t-\d{8}-\d{6}-\d{3,9})-(\d{1,6})(?:-[0-9a-f]{1,16})?", re.ASCII)
_BACKGROUND = ("background_tasks", "backgroundTasks", "background_work")
INPUT_BYTES = 1024 * 1024


def stop_answer(text: str, environ: Mapping[str, str]) -> str:
    """What the Stop hook prints: a JSON object that holds the run, or "" so that it may end.

    Args:
        text: the hook's input, one JSON object.
        environ: the run's environment.
    """
    try:
        said = json.loads(text)
        if not isinstance(said, dict) or said.get("stop_hook_active") or any(said.get(k) for k in _BACKGROUND):
            return ""
        task_id = environ.get("AGENT_BUS_TASK_ID", "")
        if not _owes_report(task_id, environ) or not _hold(environ):
            return ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    call = "call submit_report with completed, failed or blocked (and your question), then end."
    reason = f"{task_id} has no report yet: {call}"
    return json.dumps({"decision": "block", "reason": reason})


def _owes_report(task_id: str, environ: Mapping[str, str]) -> bool:
    """Whether the task is still held by this run's lease, and neither cancelled nor stopped."""
    root, lease_id = Path(environ["AGENT_BUS_ROOT"]), environ["AGENT_BUS_LEASE_ID"]
    if not _TASK.fullmatch(task_id) or not lease_id:
        return False
    if os.path.lexists(_state(environ) / "stop.json") or (root / "commands" / "STOP.md").exists():
        return False
    found = next(root.glob(f"inbox/*/{task_id}.json"), None)
    task: dict[str, Any] = json.loads(found.read_text(encoding="utf-8-sig")) if found else {}
    held = task.get("lease") or {}
    return task.get("status") == "in_progress" and held.get("id") == lease_id and not task.get("cancel")


def _hold(environ: Mapping[str, str]) -> bool:
    """Notes that this run is held; True once a run, however many hooks ask at once."""
    match = _RUN.fullmatch(environ["AGENT_BUS_RUN_ID"])
    if match is None:
        return False
    mark = _state(environ) / "runs" / match[1] / f"{match[2]}.held"
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # FileExistsError is an OSError: not again
    return True


def _state(environ: Mapping[str, str]) -> Path:
    moved = environ.get("AGENT_BUS_STATE_DIR", "")
    return Path(moved) if moved else Path(environ["AGENT_BUS_ROOT"]) / ".bus"


def main(words: list[str]) -> int:
    """Answers on standard output; always 0, as another code would be shown to the worker as a failure."""
    with suppress(OSError, ValueError):
        text = sys.stdin.buffer.read(INPUT_BYTES).decode("utf-8", "replace")
        answer = stop_answer(text, os.environ) if words == ["stop"] else ""
        if answer:
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
