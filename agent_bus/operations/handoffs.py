"""Hand-offs as documents: `.bus/handoffs/<inbox>/open/<id>`, after their end `…/closed/<YYYY-MM>/<id>`.

A state is committed by one compare-and-swap where the document lies, then the file is renamed: a kill between the two
leaves an ended hand-off in `open`, which readers take by its state and the next pass of the reaper moves.
`<inbox>/bell/<number>` says in which order hand-offs arrived, for waits; it is written after the hand-off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from agent_bus.bus import Bus
from agent_bus.commands import nearest
from agent_bus.domain import handoff, place
from agent_bus.errors import BusError
from agent_bus.operations import quiet, workspaces
from agent_bus.store.port import Doc, Exists, Stale
from agent_bus.times import parse_stamp

PREFIX = ".bus/handoffs"
DEDUPE = timedelta(hours=24)
QUIET = timedelta(seconds=60)
"""An open hand-off without a bell that is older than this lost its sender before it rang."""
_TRIES = 20


def inboxes(bus: Bus, workspace: str) -> list[str]:
    """The inboxes that a workspace, a project or `user-global` reads; that of new hand-offs first.

    Raises:
        BusError: as `workspaces.resolve`, `not_found` for a project.
    """
    if workspace == handoff.USER_GLOBAL:
        return [workspace]
    if place.is_project_id(workspace):
        workspaces.project(bus, workspace)
        return workspaces.members(bus, workspaces.Workspace(workspace, "", workspace))
    return workspaces.members(bus, workspaces.resolve(bus, workspace, note=False))


def inbox_of(bus: Bus, project: str, force: bool) -> str:
    """The inbox of a receiver.

    Raises:
        BusError: `invalid`, or `not_found` for one that nobody has used, with the nearest names, unless forced.
    """
    if project == handoff.USER_GLOBAL:
        return project
    if place.is_project_id(project):
        if not force:
            workspaces.project(bus, project)
        return project
    if place.is_workspace_id(project):
        found = workspaces.read(bus, project)
        if found is None and not force:
            raise _unknown(bus, project)
        return found.owner if found else project
    if workspaces.read(bus, place.workspace_id(workspaces.normal(project))) is None and not force:
        raise _unknown(bus, project)
    return workspaces.resolve(bus, project, note=True).owner


def send(bus: Bus, inbox: str, fields: dict[str, str], dedupe_key: str) -> Doc:
    """Delivers a hand-off; with a key that this sender has used for this inbox within 24 h it gives the first one."""
    if not dedupe_key:
        return _deliver(bus, inbox, f"ho_{bus.token()[:12]}", fields)
    sender = fields["fromAgent"] or fields["author"]
    name = hashlib.sha256(f"{sender}\n{dedupe_key}".encode()).hexdigest()[:16]
    handoff.create(f"ho_{'0' * 12}", fields, bus.stamp())  # refused before anything is written
    with bus.store.lock(name):
        key = f"{PREFIX}/{inbox}/dedupe/{name}"
        doc = quiet.get(bus, key)
        if doc is None or not _within(doc.value.get("at"), bus.now(), DEDUPE):
            value = {"id": f"ho_{bus.token()[:12]}", "at": bus.stamp()}
            doc = bus.store.create(key, value) if doc is None else bus.store.replace(doc, value)
        # Between the two writes a kill leaves an id without a hand-off, which the repeat delivers under it.
        reserved = str(doc.value["id"])
        return _find_in(bus, inbox, reserved) or _deliver(bus, inbox, reserved, fields)


def find(bus: Bus, workspace: str, name: str) -> Doc:
    """A hand-off of one of the inboxes.

    Raises:
        BusError: `invalid` for no id, `not_found`, `corrupt`.
    """
    handoff.check_id(name)
    for inbox in inboxes(bus, workspace):
        if doc := _find_in(bus, inbox, name):
            return doc
    raise BusError("not_found", f"there is no hand-off {name} in this inbox.", "moa_handoff_inbox shows them.")


def end(bus: Bus, workspace: str, name: str, state: str, actor: str) -> Doc:
    """Takes a hand-off to a state from which it does not return: one winner.

    Raises:
        BusError: as `find`; `conflict` naming both states, `busy`.
    """
    with bus.store.lock(name):
        for _ in range(_TRIES):
            doc = find(bus, workspace, name)
            made = handoff.move(doc.value, state, actor, bus.now())
            with suppress(Stale, Exists):
                return bus.store.move(doc, _closed(doc, made), made)
    raise BusError("busy", f"the hand-off {name} is being taken by others.", "Try again in a moment.")


def listed(bus: Bus, workspace: str, state: str, agent: str) -> list[Doc]:
    """The hand-offs that fit, newest first."""
    found = [
        doc
        for inbox in inboxes(bus, workspace)
        for doc in _all(bus, inbox, state != handoff.PENDING)
        if handoff.is_handoff(doc.value) and handoff.fits(doc.value, state, agent)
    ]
    return sorted(found, key=lambda d: (d.value["updatedAt"], d.name), reverse=True)


def rung(bus: Bus, workspace: str, after: Mapping[str, int], agent: str) -> list[tuple[str, int, Doc]]:
    """Pending hand-offs whose bell rang later, as inbox, number and document, in order of arrival in each inbox.

    Args:
        after: by inbox the last number that the reader knows.
    """
    found: dict[str, tuple[str, int, Doc]] = {}
    for inbox in inboxes(bus, workspace):
        for key in bus.store.keys(f"{PREFIX}/{inbox}/bell"):
            name = key.rpartition("/")[2]
            if not name.isdecimal() or int(name) <= after.get(inbox, 0):
                continue
            bell = quiet.get(bus, key)
            doc = quiet.get(bus, f"{PREFIX}/{inbox}/open/{bell.value.get('id')}") if bell else None
            if doc is not None and handoff.is_handoff(doc.value) and handoff.fits(doc.value, handoff.PENDING, agent):
                found.setdefault(doc.name, (inbox, int(name), doc))
    return list(found.values())


def tidy(bus: Bus) -> None:
    """Rings for hand-offs whose sender died before it could, and moves those that have ended; for the reaper."""
    for inbox in bus.store.folders(PREFIX):
        docs = [d for d in bus.store.list(f"{PREFIX}/{inbox}/open") if handoff.is_handoff(d.value)]
        for doc in [d for d in docs if d.value["state"] != handoff.PENDING]:
            with suppress(Stale, Exists):
                bus.store.move(doc, _closed(doc, doc.value), doc.value)
        late = [d for d in docs if not _within(d.value.get("createdAt"), bus.now(), QUIET)]
        if late:
            rang = {str(d.value.get("id")) for d in bus.store.list(f"{PREFIX}/{inbox}/bell")}
            for doc in late:
                if doc.name not in rang and doc.value["state"] == handoff.PENDING:
                    _ring(bus, inbox, doc.name)


def _deliver(bus: Bus, inbox: str, name: str, fields: dict[str, str]) -> Doc:
    made = handoff.create(name, fields, bus.stamp())
    doc = bus.store.create(f"{PREFIX}/{inbox}/open/{name}", made)
    _ring(bus, inbox, name)
    line = {"at": bus.stamp(), "event": "handoff.sent", "id": name, "inbox": inbox, "agent": fields["author"]}
    bus.journal.write(bus.now(), {**line, "outcome": "ok"})
    return doc


def _ring(bus: Bus, inbox: str, name: str) -> None:
    folder = f"{PREFIX}/{inbox}/bell"
    names = [k.rpartition("/")[2] for k in bus.store.keys(folder)]
    last = max((int(n) for n in names if n.isdecimal()), default=0)
    while True:
        last += 1
        with suppress(Exists):
            bus.store.create(f"{folder}/{last:08d}", {"id": name})
            return


def _find_in(bus: Bus, inbox: str, name: str) -> Doc | None:
    base = f"{PREFIX}/{inbox}"
    folders = [f"{base}/open", *(f"{base}/closed/{month}" for month in bus.store.folders(f"{base}/closed"))]
    for folder in folders:
        doc = quiet.get(bus, f"{folder}/{name}")
        if doc is not None and handoff.is_handoff(doc.value):
            return doc
        if doc is not None or bus.store.exists(f"{folder}/{name}"):
            raise BusError("corrupt", f"the hand-off {name} cannot be read.", "Mend its file, or take it away.")
    return None


def _all(bus: Bus, inbox: str, closed: bool) -> Iterator[Doc]:
    base = f"{PREFIX}/{inbox}"
    yield from bus.store.list(f"{base}/open")
    for month in bus.store.folders(f"{base}/closed") if closed else ():
        yield from bus.store.list(f"{base}/closed/{month}")


def _closed(doc: Doc, value: dict[str, Any]) -> str:
    inbox = doc.key.split("/")[2]
    return f"{PREFIX}/{inbox}/closed/{handoff.closed_folder(value)}/{doc.name}"


def _within(text: Any, now: datetime, span: timedelta) -> bool:
    try:
        return parse_stamp(str(text)) + span > now
    except ValueError:
        return False


def _unknown(bus: Bus, given: str) -> BusError:
    known = {str(d.value.get("cwd", "")): None for d in workspaces.listed(bus)}
    hint = f"{nearest(given, known)} moa_projects_list shows the known ones; force=true sends all the same.".lstrip()
    return BusError("not_found", f"nobody has used the project {given[:80]!a} yet.", hint)
