"""The group of hooks that lets Claude Code ask `agent-bus hook stop` before it ends."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

TIMEOUT_S = 10


def stop_group(command: Sequence[str], windows: bool = False) -> dict[str, Any]:
    """One member of the list `hooks.Stop` of a settings file.

    Args:
        command: argv of `agent-bus hook stop`; Claude Code takes one line for the shell (on Windows: Git Bash's).
        windows: whether the shell is Git Bash, which reads a backslash as an escape.
    """
    words = [word.replace("\\", "/") for word in command] if windows else command
    return {"hooks": [{"type": "command", "command": shlex.join(words), "timeout": TIMEOUT_S}]}
