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


for _command in vault.commands.values():
    _command.params += global_options(["json"] if any(p.name == "json" for p in _command.params) else [])
