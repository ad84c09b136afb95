"""What `vault doctor` says: one thing that was seen in a vault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ERROR, WARN, ADVICE = "error", "warn", "advice"
LEVELS = (ERROR, WARN, ADVICE)


@dataclass(frozen=True)
class Seen:
    """One thing that was seen; its words are `vault.seen.<id>` or `vault.seen.<id>.<case>` in locale/vault.py.

    Args:
        id: which check.
        level: ERROR, WARN or ADVICE.
        path: the file or folder that it is about.
        case: which of the check's cases.
        values: what fills the words' placeholders.
    """

    id: str
    level: str
    path: str
    case: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
