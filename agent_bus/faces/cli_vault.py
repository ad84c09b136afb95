"""`agent-bus vault`: the notes that people see in Obsidian; what they do is loaded when it is asked for."""

from __future__ import annotations

import click

from agent_bus.faces.cli_session import Session
from agent_bus.faces.cli_verbs import global_options
from agent_bus.notes.place import USUAL_NAME


@click.group("vault")
def vault() -> None:
    """The bus in an Obsidian vault: put the notes there, look at them, take the bus over from another computer."""


@vault.command("install")
@click.argument("path", metavar="PATH")
@click.option("--name", default=USUAL_NAME, show_default=True, help="What the bus folder in the vault is called.")
@click.option("--lang", type=click.Choice(["en", "ja"]), default=None, help="Of the notes; default: as now, or yours.")
@click.option("--own", is_flag=True, help="Also make PATH a vault of its own, with settings for it.")
@click.option("--obsidian-settings", is_flag=True, help="Also add our property types and bookmarks to the vault's.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and write nothing.")
@click.pass_obj
def install(
    session: Session, path: str, name: str, lang: str | None, own: bool, obsidian_settings: bool, dry_run: bool
) -> None:
    """Put the bus folder and its notes into the vault at PATH; nothing that you have changed is replaced."""
    from agent_bus.faces import cli_vault_install as run

    run.install(session, path, run.Wanted(name, lang or "", own, obsidian_settings, dry_run))


@vault.command("doctor")
@click.pass_obj
def doctor(session: Session) -> int:
    """Say what is wrong with the notes and with how the vault is carried; nothing is changed."""
    from agent_bus.faces import cli_vault_look as run

    return run.doctor(session)


@vault.command("status")
@click.pass_obj
def status(session: Session) -> None:
    """Show the owner, the notes, the job that writes them, and whether what people write there is taken."""
    from agent_bus.faces import cli_vault_look as run

    run.status(session)


@vault.command("takeover")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def takeover(session: Session, yes: bool) -> None:
    """Make this computer the one that writes to the bus, for when the former owner is gone."""
    from agent_bus.faces import cli_vault_look as run

    run.takeover(session, yes)


@vault.command("unpause")
@click.pass_obj
def unpause(session: Session) -> None:
    """Take decisions from the vault again, after too many came at once and nothing more was taken."""
    from agent_bus.faces import cli_vault_look as run

    run.unpause(session)


for _command in vault.commands.values():
    _command.params += global_options(["json"] if any(p.name == "json" for p in _command.params) else [])
