"""Dispatch: one new task, once, whatever is called twice or killed between (docs/protocol.md "Order of writes")."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic_core import to_json

from agent_bus.bus import Bus
from agent_bus.domain import approval, dependency
from agent_bus.domain.approval import Hit
from agent_bus.domain.task import PENDING_APPROVAL, Task, place
from agent_bus.errors import BusError, too_large
from agent_bus.ids import folder_of
from agent_bus.operations import agents, find, gate, ledger, stop
from agent_bus.operations.witness import record
from agent_bus.store.port import Doc, Exists, Stale
from agent_bus.times import parse_stamp, stamp

_TRIES = 8
ORDER_BYTES = 3 * 512 * 1024
"""A task must leave room in its document (2 MiB) for leases, history, comment and report."""


@dataclass(frozen=True)
class Order:
    """What is to be dispatched, checked already; times as stored texts."""

    target: str
    instruction: str
    sender: str
    priority: str = "normal"
    context: Any = None
    depends_on: tuple[dict[str, str], ...] = ()
    not_before: str = ""
    dedupe_key: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    chained: bool = False
    """A chain's step: `previous` in its context is a result that the bus put there, not looked at by the gate."""

    def sha256(self) -> str:
        """What makes two requests with one dedupe key the same."""
        parts = [
            self.target,
            self.instruction,
            self.priority,
            self.context,
            list(self.depends_on),
            self.not_before,
            self.extra,
        ]
        return hashlib.sha256(to_json(parts)).hexdigest()


@dataclass(frozen=True)
class Sent:
    """The task that stands for an order, and whether an earlier call made it."""

    task: Task
    deduplicated: bool = False
    hits: tuple[Hit, ...] = ()


def dispatch(bus: Bus, order: Order) -> Sent:
    """Writes the task of an order.

    Raises:
        BusError: `stopped`; `conflict` for a dedupe key with another request.
    """
    stop.refuse_if_stopped(bus)
    _check_size(order)
    if not order.dedupe_key:
        return _write_new(bus, order)
    for _ in range(_TRIES):
        with suppress(Stale):  # others are taking the key at this moment
            sent = write(bus, order, _dedupe(bus, order))
            if sent is not None:
                return sent
    raise BusError("busy", "the dedupe key is being taken by others.", "Try again in a moment.")


def write(bus: Bus, order: Order, task_id: str) -> Sent | None:
    """Writes the task under a reserved id; if it is written already, finds it. None: the id is void, take another.

    Decided under the id's lock: a restart, a second caller and a repair all end with one task.
    """
    with bus.store.lock(task_id):
        known = ledger.state(bus, task_id)
        if known == ledger.VOID:
            return None
        if known != ledger.RESERVED or find.anywhere(bus, task_id):
            found = find.find(bus, task_id)
            if found is None:
                return None
            if known in ("", ledger.RESERVED):  # its dispatcher was killed; without a fingerprint the gate looks again
                ledger.set_live(bus, task_id, found.doc.key, "")
            return Sent(found.task, deduplicated=True)
        _check_size(order)
        task, hits = build(bus, order, task_id)
        bus.store.create(place(task), task.value())
        ledger.set_live(bus, task_id, place(task), "" if hits else gate.fingerprint(task))
    event = "task.approval_needed" if hits else "task.dispatched"
    record(bus, event, task, **{"from": task.sender})
    return Sent(task, hits=hits)


def build(bus: Bus, order: Order, task_id: str) -> tuple[Task, tuple[Hit, ...]]:
    """The new task's document, and what the gate said."""
    now = bus.now()
    target = agents.spelled(bus, order.target)
    hits = gate.look(bus, target, order.instruction, order.context, order.sender, chained=order.chained)
    task = Task.model_validate(
        {
            "task_id": task_id,
            "from": order.sender,
            "to": target,
            "instruction": order.instruction,
            "priority": order.priority,
            "context": order.context,
            "status": PENDING_APPROVAL,
            "created_at": stamp(now),
            "schema": 2,
            "step": 1,
            "max_attempts": bus.settings.max_attempts,
            "depends_on": list(order.depends_on),
            "not_before": order.not_before,
            "dedupe_key": order.dedupe_key,
            **order.extra,
            "history": [{"at": stamp(now), "event": "dispatch", "by": order.sender}],
        }
    )
    if hits:
        return task.model_copy(update={"approval": approval.requested(hits, stamp(now))}), hits
    status, reason = dependency.readiness(task, find.outcomes(bus, task), now)
    return task.model_copy(update={"status": status, "reason": reason}), ()


def _write_new(bus: Bus, order: Order) -> Sent:
    for _ in range(_TRIES):
        sent = write(bus, order, ledger.reserve(bus, bus.now()))
        if sent is not None:
            return sent
    raise BusError("busy", "no id could be taken.", "Try again in a moment.")


def _dedupe(bus: Bus, order: Order) -> str:
    """The id that stands for this request: the one in the dedupe entry, or a fresh one now written there."""
    key = dedupe_key(order)
    entry = bus.store.get(key)
    if entry is not None and not _expired(bus, entry):
        return _same_request(bus, entry, order)
    task_id = ledger.reserve(bus, bus.now())
    until = stamp(bus.now() + timedelta(seconds=bus.settings.dedupe_s))
    value = {"task_id": task_id, "expires_at": until, "sha256": order.sha256()}
    try:
        if entry is None:
            bus.store.create(key, value)
        else:
            bus.store.replace(entry, value)
        return task_id
    except (Exists, Stale):
        ledger.set_void(bus, task_id)
        entry = bus.store.get(key)
        return _same_request(bus, entry, order) if entry else _dedupe(bus, order)


def dedupe_key(order: Order) -> str:
    """The key of a dedupe entry: per sender."""
    name = hashlib.sha256(order.dedupe_key.encode()).hexdigest()[:32]
    return f".bus/dedupe/{folder_of(order.sender) or '_'}/{name}"


def _same_request(bus: Bus, entry: Doc, order: Order) -> str:
    if entry.value.get("sha256") != order.sha256():
        task_id = entry.value.get("task_id", "?")
        raise BusError(
            "conflict",
            f"dedupe_key {order.dedupe_key[:80]!r} was used for another request, task {task_id}.",
            "Use another key, or send the same request again.",
        )
    task_id = str(entry.value["task_id"])
    state = ledger.state(bus, task_id)
    if state != ledger.RESERVED and (state == ledger.VOID or find.find(bus, task_id) is None):
        # Its dispatcher was killed and its id voided, or its file is lost: a fresh id takes the place.
        bus.store.replace(entry, {**entry.value, "task_id": (task_id := ledger.reserve(bus, bus.now()))})
    return task_id


def _check_size(order: Order) -> None:
    parts = [order.instruction, order.context, order.extra, order.depends_on]
    if (size := len(to_json(parts, indent=2))) > ORDER_BYTES:
        raise too_large("the task", size, ORDER_BYTES, "bytes as JSON")


def _expired(bus: Bus, entry: Doc) -> bool:
    try:
        return parse_stamp(str(entry.value.get("expires_at", ""))) <= bus.now()
    except ValueError:
        return False
