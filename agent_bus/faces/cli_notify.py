"""`agent-bus notify`: try a channel, let it try again, or give up what waits for it."""

from __future__ import annotations

import click

from agent_bus.errors import BusError
from agent_bus.faces.cli_session import Session
from agent_bus.faces.cli_verbs import global_options


@click.group("notify")
def notify() -> None:
    """Channels that tell people what happens: the tables [notify.NAME] of the settings."""


@notify.command("test")
@click.argument("channel", required=False)
@click.pass_obj
def test(session: Session, channel: str | None) -> int:
    """Send a test notice now, from here; past the outbox and the filters."""
    from agent_bus import notifiers
    from agent_bus.operations import outbox

    failed = 0
    with session.bus() as bus:
        for name in _named(session, channel):
            try:
                create = notifiers.load(name)
                outcome = notifiers.deliver(create(bus.settings.notify[name]), outbox.test_notice(bus, name))
                reason = getattr(outcome, "reason", "")
            except BusError as error:
                reason = str(error)
            failed += bool(reason)
            session.say("notify.failed" if reason else "notify.sent", channel=name, reason=reason)
    return 1 if failed else 0


@notify.command("retry")
@click.argument("channel", required=False)
@click.pass_obj
def retry(session: Session, channel: str | None) -> None:
    """Let a channel that waits or is off try again at once."""
    from agent_bus.operations import outbox

    with session.bus() as bus:
        bus.check_writable()
        for name in _named(session, channel):
            outbox.retry(bus, name)
            session.say("notify.retry", channel=name)


@notify.command("drop")
@click.argument("channel", required=False)
@click.pass_obj
def drop(session: Session, channel: str | None) -> None:
    """Throw away the notices that wait for a channel."""
    from agent_bus.operations import outbox

    with session.bus() as bus:
        bus.check_writable()
        for name in _named(session, channel):
            session.say("notify.dropped", channel=name, count=outbox.drop(bus, name))


def _named(session: Session, channel: str | None) -> list[str]:
    """The channel, or all that are on.

    Raises:
        BusError: `not_found` for one that the settings do not have, or if they have none.
    """
    known = session.settings.notify
    names = [channel] if channel else [name for name, settings in known.items() if settings.enabled]
    if not names or names[0] not in known:
        what = f"there is no channel {channel[:60]!a}" if channel else "no channel is set up"
        hint = f"The settings have: {', '.join(known)}." if known else "Write a table such as [notify.discord] there."
        raise BusError("not_found", f"{what}.", hint)
    return names


for _command in notify.commands.values():
    _command.params += global_options()
