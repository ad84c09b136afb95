"""The settings file that gives a Claude Code run our Stop hook; the user's own files are not touched."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agent_bus.stop_hook import stop_group


def stop_hook(command: Sequence[str], windows: bool = False) -> str:
    """The text of a file for `--settings`.

    Args:
        command: argv of `agent-bus hook stop`.
        windows: whether Claude Code's shell is Git Bash.
    """
    return json.dumps({"hooks": {"Stop": [stop_group(command, windows)]}}, indent=2, ensure_ascii=False) + "\n"
