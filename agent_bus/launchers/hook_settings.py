"""The settings file that gives a Claude Code run our Stop hook; the user's own files are not touched."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

TIMEOUT_S = 10


def stop_hook(command: Sequence[str], windows: bool = False) -> str:
    """The text of a file for `--settings`.

    Args:
        command: argv of `agent-bus hook stop`; Claude Code takes one line for the shell (on Windows: Git Bash's).
    """
    words = [word.replace("\\", "/") for word in command] if windows else command
    hook = {"type": "command", "command": shlex.join(words), "timeout": TIMEOUT_S}
    return json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}, indent=2, ensure_ascii=False) + "\n"
