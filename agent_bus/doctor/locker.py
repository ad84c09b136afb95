"""The other process of the lock test: `python -m agent_bus.doctor.locker FOLDER NAME`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agent_bus.errors import BusError
from agent_bus.store.locks import Locks


def main(words: Sequence[str] | None = None) -> int:
    """0 if the lock could be had at once, 1 if it is taken, 2 if there are no locks there."""
    folder, name = sys.argv[1:] if words is None else words
    try:
        with Locks(folder).hold(name, wait_s=0.0):
            return 0
    except BusError as error:
        return 1 if error.code == "busy" else 2


if __name__ == "__main__":
    sys.exit(main())
