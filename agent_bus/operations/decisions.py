"""What people decide in the vault, each taken once (docs/vault-notes.md "Once").

`.bus/vault/decisions/<key>` is made before the act and gets the result after it. A decision without a result was cut
short: it is carried out again, and every act is of a kind that a second time changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.operations import quiet
from agent_bus.store.port import Doc, Exists, Stale

FOLDER = ".bus/vault/decisions"
CHANNEL = "vault:unverified"
TAKEN, DONE, REFUSED = "taken", "done", "refused"
_LATER = ("busy", "unavailable", "stopped")
"""Errors that pass: the decision stays taken and is carried out at a later look."""


@dataclass(frozen=True)
class Decision:
    """Something a person wants done.

    Args:
        parts: what makes two decisions the same one.
        verb, fields: what is done, and with what; enough to do it after a crash.
        task_id, path, req: the task, the note and the nonce it was read from, for the record.
    """

    parts: tuple[str, ...]
    verb: str
    fields: Mapping[str, Any]
    task_id: str = ""
    path: str = ""
    req: str = ""

    @property
    def key(self) -> str:
        """The name of its document."""
        return hashlib.sha256("\x00".join(self.parts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """What became of a decision.

    Args:
        key: its name.
        verb, task_id, path: as they were taken.
        state: taken (to be carried out later), done or refused.
        result: what the act gave.
        at: when it was taken.
        fresh: it was carried out just now.
    """

    key: str
    verb: str
    task_id: str
    path: str
    state: str
    result: Mapping[str, Any]
    at: str
    fresh: bool = False


Act = Callable[[Mapping[str, Any], str], Mapping[str, Any]]
"""The document's value and key → the result. Raises BusError."""


def consume(bus: Bus, decision: Decision, act: Act) -> Outcome:
    """Takes a decision and carries it out, unless that has been done before.

    Raises:
        BusError: the document cannot be written; nothing was done.
    """
    doc = quiet.get(bus, f"{FOLDER}/{decision.key}")
    if doc is None:
        value = {
            "verb": decision.verb,
            "task_id": decision.task_id,
            "path": decision.path,
            "req": decision.req,
            "fields": dict(decision.fields),
            "at": bus.stamp(),
            "channel": CHANNEL,
            "state": TAKEN,
            "result": {},
        }
        try:
            doc = bus.store.create(f"{FOLDER}/{decision.key}", value)
        except Exists:
            doc = quiet.get(bus, f"{FOLDER}/{decision.key}")
    if doc is None:
        raise BusError("unavailable", f"the decision {decision.key} cannot be read.", "Look at .bus/quarantine.")
    return _outcome(doc) if doc.value.get("state") != TAKEN else finish(bus, doc, act)


def finish(bus: Bus, doc: Doc, act: Act) -> Outcome:
    """Carries a taken decision out; one that others carry out at this moment is theirs.

    Raises:
        BusError: the document cannot be written.
    """
    with bus.store.lock(f"decision-{doc.name}"):
        now = quiet.get(bus, f"{FOLDER}/{doc.name}")
        if now is None or now.value.get("state") != TAKEN:
            return _outcome(now or doc)
        try:
            result, state = dict(act(now.value, now.name)), DONE
        except BusError as error:
            if error.code in _LATER:
                return _outcome(now)
            result, state = {"code": error.code, "message": error.message}, REFUSED
    try:
        done = bus.store.replace(now, {**now.value, "state": state, "result": result})
    except Stale:
        return _outcome(quiet.get(bus, f"{FOLDER}/{doc.name}") or now)
    return _outcome(done, fresh=True)


def unfinished(bus: Bus) -> Iterator[Doc]:
    """The decisions that were taken and not carried out."""
    for doc in bus.store.list(FOLDER):
        if doc.value.get("state") == TAKEN:
            yield doc


def _outcome(doc: Doc, fresh: bool = False) -> Outcome:
    value = doc.value
    result = value.get("result")
    return Outcome(
        doc.name, str(value.get("verb", "")), str(value.get("task_id", "")), str(value.get("path", "")),
        str(value.get("state", "")), result if isinstance(result, dict) else {}, str(value.get("at", "")), fresh,
    )  # fmt: skip
