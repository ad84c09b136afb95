"""What `agent-bus vault doctor`, `status` and `takeover` do."""

from __future__ import annotations

from typing import Any

import click

from agent_bus.app import load_features
from agent_bus.commands import find
from agent_bus.doctor.seen import ERROR, Seen
from agent_bus.doctor.vault import Examined, examine, is_installed
from agent_bus.errors import BusError
from agent_bus.faces.answers import as_object
from agent_bus.faces.cli_session import Session, check_person, need_person, run_verb
from agent_bus.faces.show import clean
from agent_bus.notes.dashboard import language_of
from agent_bus.operations import health, vault_channel
from agent_bus.store.format import epoch_of, label
from agent_bus.store.layout import Layout
from agent_bus.texts import Texts

_COLOURS = {"error": "red", "warn": "yellow", "advice": "cyan"}
MIRROR = "mirror"
"""The job that writes the notes."""


def doctor(session: Session) -> int:
    """Prints what was seen; the exit code is 1 if there are errors. The texts are in the language of the notes."""
    layout = _layout(session)
    texts = Texts(session.language or language_of(layout.root) or session.texts.language)
    found = examine(layout, session.settings.vault.authority)
    code = 1 if any(one.level == ERROR for one in found.seen) else 0
    if session.json:
        head = {"host_id": found.host_id, "owner": found.owner, "epoch": found.epoch, "services": found.services}
        session.data({**head, "findings": [_as_dict(texts, one) for one in found.seen]})
    else:
        _show(session, texts, found)
    return code


def status(session: Session) -> None:
    """Prints how the notes are kept."""
    layout = _layout(session)
    with session.bus() as bus:
        jobs = {job["job"]: job for job in health.jobs_alive(bus.layout)}
        paused = vault_channel.why(bus)
        format = layout.read_format()
        data: dict[str, Any] = {
            "owner": label(format.get("owner", {})),
            "epoch": epoch_of(format),
            "notes": str(layout.root) if is_installed(layout) else "",
            "mirror": jobs.get(MIRROR),
            "paused": paused,
        }
    if session.json:
        session.data(data)
        return
    session.say("vault.owner", owner=data["owner"] or "–", epoch=data["epoch"])
    session.say("vault.notes" if data["notes"] else "vault.no_notes", root=data["notes"])
    mirror = data["mirror"] or {}
    session.say(
        "vault.mirror" if mirror else "vault.no_mirror", tick=mirror.get("last_tick"), error=mirror.get("error")
    )
    if paused:
        session.say("vault.paused", why=clean(paused))


def unpause(session: Session) -> None:
    """Takes decisions from the vault again, and says so.

    Raises:
        BusError: `refused` without a person.
    """
    need_person("vault unpause", "agent-bus vault unpause")
    with session.bus() as bus:
        bus.check_writable()
        opened = vault_channel.open_again(bus)
    if session.json:
        session.data({"opened": opened})
    else:
        session.say("vault.opened" if opened else "vault.was_open")


def takeover(session: Session, yes: bool) -> None:
    """Makes this host the owner, after a question.

    Raises:
        BusError: `refused` without a person, as the verb's own.
    """
    load_features()
    command = find("takeover")
    check_person(command)
    layout = _layout(session)
    with session.bus() as bus:
        if not (yes or layout.is_ours()):
            last = next(iter(bus.journal.read("", 1)), {})
            owner = label(_format(layout).get("owner", {})) or "?"
            session.warn(session.texts.say("vault.takeover.ask", owner=clean(owner), at=last.get("at", "?")))
            if not click.confirm(session.texts.say("vault.takeover.sure"), err=True):
                session.warn(session.texts.say("ask.left"))
                return
        session.show(as_object(run_verb(bus, command, {})), bus)


def _layout(session: Session) -> Layout:
    if not session.settings.root:
        raise click.UsageError("Name the bus: --root FOLDER, or set AGENT_BUS_ROOT.")
    if not session.layout.root.is_dir():
        hint = "Put the notes into a vault first: agent-bus vault install PATH"
        raise BusError("not_found", f"there is no folder {session.layout.root}.", hint)
    return session.layout


def _format(layout: Layout) -> dict[str, Any]:
    try:
        return layout.read_format()
    except BusError:
        return {}


def _as_dict(texts: Texts, one: Seen) -> dict[str, str]:
    key = f"vault.seen.{one.id}" + (f".{one.case}" if one.case else "")
    values = {name: " ".join(clean(str(value)).split()) for name, value in one.values.items()}
    what, fix = texts.say(key, **values).split("\n")
    return {"id": one.id, "level": one.level, "path": one.path, "what": what, "fix": fix}


def _show(session: Session, texts: Texts, found: Examined) -> None:
    session.line(texts.say("vault.owner", owner=clean(found.owner) or "–", epoch=found.epoch))
    session.line(texts.say("vault.services", names=", ".join(found.services) or texts.say("vault.no_services")))
    for one in found.seen:
        said = _as_dict(texts, one)
        level = click.style(texts.say(f"vault.level.{one.level}"), fg=_COLOURS[one.level], bold=one.level == ERROR)
        session.line(f"  {level}  {one.id}  {clean(one.path)}")
        session.line(f"        {said['what']}")
        session.line(texts.say("vault.fix", fix=said["fix"]))
    if not found.seen:
        session.line(texts.say("vault.well"))
