"""A program of the user's own: started for each notice, which it reads as one JSON object on stdin. No shell."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from agent_bus.domain.notice import Notice
from agent_bus.errors import BusError
from agent_bus.notifiers import Later, Outcome, Sent
from agent_bus.settings_notify import ChannelSettings

TIMEOUT_S = 10


class Program:
    """One program.

    Args:
        argv: its path and its arguments.
    """

    per_minute = 0

    def __init__(self, argv: list[str]) -> None:
        self._argv = argv
        self._shown = Path(argv[0]).name  # its arguments may be secrets

    async def send(self, notice: Notice) -> Outcome:
        return self._run(json.dumps(notice.value(), ensure_ascii=False))  # on the sender's own thread

    def _run(self, text: str) -> Outcome:
        quiet = subprocess.DEVNULL
        try:
            done = subprocess.run(
                self._argv, input=text.encode(), stdout=quiet, stderr=quiet, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Later(0.0, f"{self._shown} did not end in {TIMEOUT_S} s")
        except OSError as error:
            return Later(0.0, f"{self._shown} cannot be started ({error.strerror})")
        return Sent() if done.returncode == 0 else Later(0.0, f"{self._shown} ended with {done.returncode}")


def create(settings: ChannelSettings) -> Program:
    """The program that the settings name.

    Raises:
        BusError: `invalid` without `argv`.
    """
    if not settings.argv:
        raise BusError("invalid", "argv names no program.", 'Write argv = ["/path/to/program"].')
    return Program(settings.argv)
