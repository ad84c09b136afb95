"""The nonces of what people are asked in notes: a decision counts only for the asking it was made for.

`.bus/vault/requests/<task_id>` holds {req, kind, n, mark, sha256, opened_at}: `mark` tells one asking from every other,
`n` counts the approvals that this note was asked for.
"""

from __future__ import annotations

import secrets
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain import wishes
from agent_bus.domain.task import Task
from agent_bus.domain.wishes import APPROVAL, Asked
from agent_bus.operations import gate, quarantine
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_TRIES = 20


def of_task(bus: Bus, task: Task) -> Asked | None:
    """What a task asks at present, with its nonce, which is made when it is first looked for; None if it asks nothing.

    Raises:
        BusError: the document cannot be written.
    """
    found = wishes.mark(task, gate.fingerprint(task))
    return _open(bus, task.task_id, *found, gate.fingerprint(task)) if found else None


def of_stop(bus: Bus, epoch: str) -> Asked:
    """The nonce for the end of a stop.

    Raises:
        BusError: the document cannot be written.
    """
    return _open(bus, "stop", "stop", f"stop {epoch}", "")


def _open(bus: Bus, name: str, kind: str, mark: str, sha256: str) -> Asked:
    key = f".bus/vault/requests/{name}"
    for _ in range(_TRIES):
        doc = _get(bus, key)
        value = doc.value if doc else {}
        if doc is not None and value.get("mark") == mark:
            return Asked(str(value.get("req", "")), kind, int(value.get("n", 1)), sha256)
        n = int(value.get("n", 0)) + (kind == APPROVAL)
        fresh = {"req": _nonce(), "kind": kind, "n": n, "mark": mark, "sha256": sha256, "opened_at": bus.stamp()}
        try:
            _put(bus, key, doc, fresh)
        except (Exists, Stale):
            continue
        return Asked(str(fresh["req"]), kind, n, sha256)
    raise AssertionError("a document that is made is there at the next look")


def _get(bus: Bus, key: str) -> Doc | None:
    try:
        return bus.store.get(key)
    except Unreadable as error:
        quarantine.put_aside(bus, key, error.reason)  # what is asked gets a fresh nonce
        return None


def _put(bus: Bus, key: str, doc: Doc | None, value: dict[str, Any]) -> None:
    if doc is None:
        bus.store.create(key, value)
    else:
        bus.store.replace(doc, value)


def _nonce() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(8))
