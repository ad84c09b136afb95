"""Which names of files in `commands/` stop the bus: STOP and 停止, as people and synchronisers spell them."""

from __future__ import annotations

import re

from agent_bus.domain.human import word

_STOP = re.compile(r"(?:stop|停止)(?:\s*\d+|\s*\(.*|[.~_-](?:sync-)?conflict.*|\s*[-_ ]*競合.*)?")


def is_stop(stem: str) -> bool:
    """Whether a note of this name, without `.md`, stops the bus: `STOP`, `stop 2`, `STOP (Conflicted copy …)`, `停止`;
    not `Stop using tabs`.
    """
    return _STOP.fullmatch(word(stem)) is not None
