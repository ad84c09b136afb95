"""Old files of runs: logs, prompts and orders go after `log_days`; the run documents stay."""

from __future__ import annotations

import os
from contextlib import suppress

from agent_bus.bus import Bus
from agent_bus.ids import is_task_id

_EVERY_S = 3600.0
_KEPT = ".json"


def sweep(bus: Bus) -> None:
    """Deletes what is older than the setting; looks once an hour."""
    assert bus.layout is not None
    if bus.clock.boot_s() - bus.memo.get("launch logs swept", float("-inf")) < _EVERY_S:
        return
    bus.memo["launch logs swept"] = bus.clock.boot_s()
    before = bus.now().timestamp() - bus.settings.launcher.log_days * 86_400
    with suppress(OSError), os.scandir(bus.layout.state / "runs") as folders:
        for folder in folders:
            if is_task_id(folder.name):
                _sweep(folder.path, before)


def _sweep(folder: str, before: float) -> None:
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            is_document = file.name.endswith(_KEPT) and file.name[: -len(_KEPT)].isdigit()
            if not is_document and file.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(file.path)
