"""`agent-bus quarantine`: files that must not run, for people to look at, bring back or throw away."""

from __future__ import annotations

import click

from agent_bus.faces.cli_session import Session, need_person
from agent_bus.faces.cli_verbs import global_options
from agent_bus.faces.show import clean


@click.group("quarantine")
def quarantine() -> None:
    """Files that were put aside because they must not run: broken ones, copies, tasks that have ended."""


@quarantine.command("list")
@click.pass_obj
def show_all(session: Session) -> None:
    """Show each file in quarantine, where it was and why it is here."""
    from agent_bus.operations import rescue

    with session.bus() as bus:
        found = rescue.kept(bus)
    if session.json:
        session.data({"files": [{"id": k.id, "from": k.key, "reason": k.reason, "at": k.at} for k in found]})
        return
    for one in found:
        session.line(f"{one.id}  {clean(one.key)}.json  {clean(one.reason)}")
    if not found:
        session.say("result.nothing")


@quarantine.command("show")
@click.argument("id")
@click.pass_obj
def show(session: Session, id: str) -> None:
    """Show the content of a file in quarantine."""
    from agent_bus.operations import rescue

    with session.bus() as bus:
        one = rescue.need(bus, id)
    text = one.path.read_bytes().decode("utf-8", "replace")
    if session.json:
        session.data({"id": one.id, "from": one.key, "reason": one.reason, "at": one.at, "text": text})
    else:
        session.line(f"{clean(one.key)}.json: {clean(one.reason)}\n{clean(text)}")


@quarantine.command("restore")
@click.argument("id")
@click.pass_obj
def restore(session: Session, id: str) -> None:
    """Put a task back where it was; refused if its id is there already or has ended."""
    _act(session, "restore", id)


@quarantine.command("drop")
@click.argument("id")
@click.pass_obj
def drop(session: Session, id: str) -> None:
    """Throw a file in quarantine away."""
    _act(session, "drop", id)


def _act(session: Session, verb: str, id: str) -> None:
    from agent_bus.operations import rescue

    need_person(f"quarantine {verb}", f"agent-bus quarantine {verb} {id}")
    with session.bus() as bus:
        bus.check_writable()
        one = rescue.need(bus, id)
        act = rescue.restore if verb == "restore" else rescue.drop
        act(bus, one)
    if session.json:
        session.data({"id": one.id, "from": one.key, "done": verb})
    else:
        session.say(f"quarantine.{verb}", key=clean(one.key))


for _command in quarantine.commands.values():
    _command.params += global_options()
