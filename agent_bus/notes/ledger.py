"""What the bus remembers of each note of its own: `.bus/vault/notes/<kind>/<name>`.

    {path, rev, own: [{rev, sha256, human}], intended: {…}, log: [{key, line, text}], fault, delivered, untick}

`own` are our last writes with what a person could set in them; bytes with another hash are somebody else's. `intended`
is one of them, set before the file is renamed, so that after a kill between the two the new bytes are known as ours.
`log` are the outcomes of what people did there; `fault` says why nothing is done as the note stands; `delivered` is the
text under Reply that was taken, `untick` the boxes that were: both are set back by the next write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.domain.human import Human, stored
from agent_bus.errors import BusError
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

FOLDER = ".bus/vault/notes"
OWN, LOG = 20, 50
_TRIES = 20


def digest(data: bytes) -> str:
    """The SHA-256 of a note's bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def key(kind: str, id: str) -> str:
    """The key of a note's document."""
    safe = id if ids.is_task_id(id.removesuffix("-report")) else digest(id.encode())[:16]
    return f"{FOLDER}/{kind}/{safe}"


def read(bus: Bus, kind: str, id: str) -> Doc | None:
    """A note's document; None if there is none. A damaged one is dropped: the note is then read as one that is new."""
    try:
        return bus.store.get(key(kind, id))
    except Unreadable:
        assert bus.layout is not None
        path = bus.layout.state.joinpath(*f"{key(kind, id)}.json".split("/")[1:])
        path.unlink(missing_ok=True)
        return None


def writes(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Our writes, oldest first, with the one that may have been cut short."""
    found = [one for one in value.get("own", []) if isinstance(one, dict)]
    intended = value.get("intended")
    return [*found, intended] if isinstance(intended, dict) and intended else found


def is_own(value: Mapping[str, Any], sha256: str) -> bool:
    """Whether bytes of this hash are ours."""
    return any(one.get("sha256") == sha256 for one in writes(value))


def base(value: Mapping[str, Any], rev: object) -> Human:
    """What we published in a write: the one with this number, else the last."""
    known = writes(value)
    found = next((one for one in reversed(known) if one.get("rev") == rev), known[-1] if known else {})
    return stored(found.get("human"))


def with_base(value: Mapping[str, Any], rev: object, human: Human) -> dict[str, Any]:
    """The document after what a person has set in a note was dealt with: only what differs from it counts from now."""
    own = [dict(one) for one in writes(value)]
    place = next((one for one in reversed(own) if one.get("rev") == rev), own[-1] if own else None)
    if place is not None:
        place["human"] = human.value()
    return {**value, "own": own[-OWN:], "intended": {}}


def change(bus: Bus, kind: str, id: str, step: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes a note's document, which is made if it is missing.

    Raises:
        BusError: it cannot be written.
    """
    for _ in range(_TRIES):
        doc = read(bus, kind, id)
        before = dict(doc.value) if doc else {}
        after = step(dict(before))
        if after == before:
            return
        try:
            if doc is None:
                bus.store.create(key(kind, id), after, durable=False)
            else:
                bus.store.replace(doc, after, durable=False)
            return
        except (Exists, Stale):
            continue
    raise BusError("busy", f"the document of the note {id} is being changed by others.", "Try again in a moment.")
