"""`agent-bus install`, `uninstall` and `snippet`: what they take. What they do is loaded when it is asked for."""

from __future__ import annotations

import click

from agent_bus.clients import PARTS, PROJECT, USER, USUAL_NAME
from agent_bus.faces.cli_session import Session

_scope = click.option("--scope", type=click.Choice([USER, PROJECT]), default=USER, show_default=True)
_project = click.option("--project", metavar="DIR", help="The project; default: the nearest folder above with .git.")
_dry = click.option("--dry-run", is_flag=True, help="Show the change of each file and write nothing.")
_force = click.option("--force", is_flag=True, help="Also replace what somebody edited, or another program left.")
_key = click.option("--name", "key", default=USUAL_NAME, show_default=True, help="The name of the entry.")
_role = click.option("--role", type=click.Choice(["worker", "orchestrator", "reviewer"]), default=None)
_tools = click.option("--tools", default="", metavar="LIST", help="Tool groups of the server; default: its role's.")
_http = click.option("--http", default="", metavar="URL", help="Call a running server at URL, start none.")


@click.command("install")
@click.argument("clients", nargs=-1, metavar="CLIENT…")
@click.option("--list", "listing", is_flag=True, help="Show each client, its files and our entry in them.")
@_scope
@_project
@_role
@_tools
@_key
@_http
@click.option("--with", "parts", default="", metavar="LIST", help=f"Besides the entry: {', '.join(PARTS)}.")
@_dry
@_force
@click.pass_obj
def install(
    session: Session, clients: tuple[str, ...], listing: bool, scope: str, project: str | None, role: str | None,
    tools: str, key: str, http: str, parts: str, dry_run: bool, force: bool,
) -> int:  # fmt: skip
    """Tell clients about the bus: an entry in the file that each really reads."""
    from agent_bus.faces import cli_install_run as run

    if listing:
        return run.show_list(session, project)
    wanted = run.Wanted(role or "", tools, key, http, parts)
    return run.install(session, clients, run.Where(scope, project, dry_run, force), wanted)


@click.command("uninstall")
@click.argument("clients", nargs=-1, metavar="CLIENT…")
@_scope
@_project
@click.option("--all", "everything", is_flag=True, help="Every client, in the user's files and the project's.")
@_dry
@_force
@click.pass_obj
def uninstall(
    session: Session, clients: tuple[str, ...], scope: str, project: str | None, everything: bool, dry_run: bool,
    force: bool,
) -> int:  # fmt: skip
    """Take out what install put in; everything else in the files stays as it is."""
    from agent_bus.faces import cli_install_run as run

    if not clients and not everything:
        raise click.UsageError("Name the clients, or give --all.")
    return run.uninstall(session, clients, run.Where(scope, project, dry_run, force), everything)


@click.command("snippet")
@click.argument("client")
@_scope
@_project
@_role
@_tools
@_key
@_http
@click.pass_obj
def snippet(
    session: Session, client: str, scope: str, project: str | None, role: str | None, tools: str, key: str, http: str
) -> None:
    """Print the entry for a client and where it belongs; nothing is touched."""
    from agent_bus.faces import cli_install_run as run

    run.snippet(session, client, run.Where(scope, project, True, True), run.Wanted(role or "", tools, key, http))
