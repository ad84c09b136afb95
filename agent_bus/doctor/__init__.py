"""What is wrong, where, and how it is mended: one file a group of checks. Nothing is changed, no process stays.

A check gives findings; their words are in locale/doctor.py, and what each id looks at is in catalog.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OK, INFO, WARN, FAIL = "ok", "info", "warn", "fail"
LEVELS = (OK, INFO, WARN, FAIL)
"""From good to bad."""


@dataclass(frozen=True)
class Finding:
    """What one check saw.

    Args:
        id: the check, as in the catalog.
        level: one of LEVELS.
        case: which of the check's bad cases, the last part of its message's key; "" = all is well.
        client: whose entry it is about, "" for none.
        values: what fills the message's placeholders; `note` stands behind the title of a good one.
        lines: what a program said, shown as it is.
    """

    id: str
    level: str
    case: str = ""
    client: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    lines: Sequence[str] = ()


def good(id: str, note: object = "", client: str = "", /) -> Finding:
    """A check that found nothing wrong."""
    return Finding(id, OK, client=client, values={"note": note})


def info(id: str, case: str, client: str = "", /, **values: object) -> Finding:
    """Something that a person may want to know."""
    return Finding(id, INFO, case, client, values)


def warn(id: str, case: str, client: str = "", /, **values: object) -> Finding:
    """Something that works, but not as well as it could."""
    return Finding(id, WARN, case, client, values)


def fail(id: str, case: str, client: str = "", /, **values: object) -> Finding:
    """Something that does not work."""
    return Finding(id, FAIL, case, client, values)
