"""Debates as documents: `.bus/debates/<id>/` with `setup`, `references/<start>`, `head` and `turns/<number>`.

Submitting is the exclusive create of `turns/<head.seq>`; after it the head is moved on by `apply`. Whoever finds that
record while the head still names it moves the head on himself, so a kill between the two writes is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent_bus import host, ids
from agent_bus.bus import Bus
from agent_bus.domain import debate, place
from agent_bus.errors import BusError
from agent_bus.store.port import Doc, Exists, Stale, Unreadable

PREFIX = ".bus/debates"
_TRIES = 50


@dataclass(frozen=True)
class Debate:
    """A debate as it stands: its setup, and its head; None before it starts."""

    setup: dict[str, Any]
    doc: Doc | None

    @property
    def id(self) -> str:
        """Its id as it was given."""
        return str(self.setup["task_id"])

    @property
    def folder(self) -> str:
        """Where its documents lie."""
        return f"{PREFIX}/{ids.folder_of(self.id)}"

    @property
    def head(self) -> dict[str, Any] | None:
        """Its head."""
        return self.doc.value if self.doc else None

    @property
    def state(self) -> str:
        """Its state."""
        return str(self.doc.value["state"]) if self.doc else debate.INITIALIZED


def folder(task_id: str) -> str:
    """Where the documents of an id lie.

    Raises:
        BusError: `invalid` for what is no id.
    """
    return f"{PREFIX}/{ids.folder_of(ids.check_key(place.check_short(task_id, 'task_id'), 'task_id'))}"


def exists(bus: Bus, task_id: str) -> bool:
    """Whether somebody has made a debate of this id."""
    return bus.store.exists(f"{folder(task_id)}/setup")


def is_closed(bus: Bus, task_id: str) -> bool:
    """Whether a debate is over and its result is decided."""
    return settled(bus, task_id).state == debate.CLOSED


def open_ids(bus: Bus) -> list[str]:
    """The debates that are not closed, by name."""
    names = [name for name in bus.store.folders(PREFIX) if bus.store.exists(f"{PREFIX}/{name}/setup")]
    found = [_quietly(bus, name) for name in names]
    return [one.id for one in found if one is not None and one.state != debate.CLOSED]


def create(bus: Bus, setup: dict[str, Any]) -> Debate:
    """Takes an id for a debate, once and for ever.

    Raises:
        BusError: `conflict`.
    """
    try:
        made = bus.store.create(f"{folder(setup['task_id'])}/setup", setup)
    except Exists:
        hint = "An id is used once, also after its debate is closed; take another."
        raise BusError("conflict", f"there is a debate {setup['task_id']} already.", hint) from None
    return Debate(made.value, None)


def start(bus: Bus, task_id: str, references: str) -> Debate:
    """Begins a debate; whoever waits is woken.

    Raises:
        BusError: `conflict` naming the state if it has begun.
    """
    found = settled(bus, task_id)
    if found.doc is None:
        name = f"s-{bus.token()[:8]}"
        bus.store.create(f"{found.folder}/references/{name}", {"schema": 1, "text": references, "at": bus.stamp()})
        with suppress(Exists):
            head = debate.begin(found.setup, name, bus.stamp())
            return Debate(found.setup, bus.store.create(f"{found.folder}/head", head))
        found = settled(bus, task_id)
    raise BusError("conflict", f"the debate {task_id} is {found.state}.", "It starts once; go on with moa_wait_turn.")


def settled(bus: Bus, task_id: str) -> Debate:
    """A debate with every record applied that is there, and those made that time asks for.

    Raises:
        BusError: `not_found`, `corrupt`, `busy`.
    """
    at = folder(task_id)
    setup = _read(bus, f"{at}/setup")
    if setup is None:
        raise BusError("not_found", f"there is no debate {task_id}.", "moa_init makes one.")
    while True:
        doc = _read(bus, f"{at}/head")
        if doc is None:
            return Debate(setup.value, None)
        record = _read(bus, _turn(at, doc.value["seq"]))
        if record is None:
            timely = debate.due(setup.value, doc.value, bus.now())
            if timely is None:
                return Debate(setup.value, doc)
            with suppress(Exists):
                bus.store.create(_turn(at, doc.value["seq"]), timely)
            continue
        with suppress(Stale):
            bus.store.replace(doc, debate.apply(setup.value, doc.value, record.value))


def record(bus: Bus, found: Debate, value: dict[str, Any]) -> bool:
    """Puts a record where the head asks for the next one; False if another was quicker."""
    assert found.doc is not None
    try:
        bus.store.create(_turn(found.folder, found.doc.value["seq"]), value)
    except Exists:
        return False
    return True


def renew(bus: Bus, found: Debate, worker: str) -> Debate:
    """A longer lease for the present speaker, if it can be longer."""
    assert found.doc is not None
    longer = debate.renewed(found.setup, found.doc.value, worker, bus.now())
    if longer is not None:
        with suppress(Stale):
            return Debate(found.setup, bus.store.replace(found.doc, longer))
        return settled(bus, found.id)
    return found


def come_back(bus: Bus, task_id: str, agent: str) -> Debate:
    """The debate, with an agent noted as present if it was absent."""
    for _ in range(_TRIES):
        found = settled(bus, task_id)
        active = found.head is not None and found.state in (debate.DEBATING, debate.PAUSED)
        if not active or found.head is None or agent not in found.head["absent"]:
            return found
        record(bus, found, {"schema": 1, "kind": debate.PRESENT, "agent": agent, "at": bus.stamp()})
    raise busy(task_id)


def close(bus: Bus, task_id: str, verdict: dict[str, Any]) -> tuple[Debate, bool]:
    """Closes a debate; the first call decides. Whether it was closed before."""
    for _ in range(_TRIES):
        found = settled(bus, task_id)
        if found.state == debate.CLOSED:
            return found, True
        status = {debate.INITIALIZED: "not_started", debate.COMPLETE: "complete"}.get(found.state, "interrupted")
        value = {"schema": 1, "kind": debate.CLOSE, "at": bus.stamp(), "result": {"status": status, **verdict}}
        if found.doc is None:
            with suppress(Exists):
                head = debate.never_begun(found.setup, value)
                return Debate(found.setup, bus.store.create(f"{found.folder}/head", head)), False
        elif record(bus, found, value):
            return settled(bus, task_id), False
    raise busy(task_id)


def references(bus: Bus, found: Debate) -> str:
    """What the debate was started with."""
    name = found.head["references"] if found.head else ""
    doc = _read(bus, f"{found.folder}/references/{name}") if name else None
    return str(doc.value.get("text", "")) if doc else ""


def records(bus: Bus, found: Debate, since: int = 0) -> Iterator[dict[str, Any]]:
    """The records that count, in order, with their number; turns above `since`, and all that are no turns.

    A record's number is never below that of its turn, so that what lies before it need not be read.
    """
    if found.head is None:
        return
    for number in range(since + 1, int(found.head["seq"])):
        doc = _read(bus, _turn(found.folder, number)) if number not in found.head["void"] else None
        if doc is not None and int(doc.value.get("turn", since + 1)) > since:
            yield {**doc.value, "seq": number}


def turns(bus: Bus, found: Debate, since: int = 0) -> Iterator[dict[str, Any]]:
    """The turns above a number, in order: spoken or missed."""
    return (r for r in records(bus, found, since) if r["kind"] in (debate.SPEECH, debate.MISSED))


def turn(bus: Bus, found: Debate, number: int) -> dict[str, Any] | None:
    """One turn, None if it is not recorded."""
    return next((r for r in turns(bus, found, number - 1) if r["turn"] == number), None)


def by(bus: Bus) -> dict[str, Any]:
    """Who records something."""
    here = host.this_process()
    return {"agent": bus.caller.agent, "host": here.host, "pid": here.pid, "client": bus.caller.client}


def busy(task_id: str) -> BusError:
    """The error for a debate on which too many act at once."""
    return BusError("busy", f"too many act on the debate {task_id} at once.", "Try again in a moment.")


def _turn(at: str, number: int) -> str:
    return f"{at}/turns/{int(number):06d}"


def _read(bus: Bus, key: str) -> Doc | None:
    try:
        return bus.store.get(key)
    except Unreadable as error:
        raise BusError("corrupt", f"{error.key} cannot be read ({error.reason}).", "Mend it from a backup.") from None


def _quietly(bus: Bus, task_id: str) -> Debate | None:
    with suppress(BusError):
        return settled(bus, task_id)
    return None
