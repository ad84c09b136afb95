"""What `agent-bus install`, `uninstall` and `snippet` do."""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import click

from agent_bus.clients import PARTS, PROJECT, TOKEN_VARIABLE, USER, Client, Home, Server
from agent_bus.clients import registry as known_clients
from agent_bus.clients.edits import ElementEdit, EntryEdit, whole_file
from agent_bus.clients.entries import UNCHANGED, is_local
from agent_bus.clients.found import is_here
from agent_bus.clients.installation import checked_program, this_installation
from agent_bus.clients.installing import Site, put, take
from agent_bus.clients.manifest import Manifest
from agent_bus.clients.wanted import Wish, edits, role_files
from agent_bus.errors import BusError
from agent_bus.faces.cli_clients import named, nearest_project
from agent_bus.faces.cli_init import command_line
from agent_bus.faces.cli_install_show import Line, say_faults, say_list, say_outcome
from agent_bus.faces.cli_session import Session, is_terminal
from agent_bus.ids import check_agent

ALL = "all"
PAUSE = time.sleep
_KEY = re.compile(r"^[a-z][a-z0-9-]{1,11}$")
"""Short: server and tool name share 60 characters in Cursor; no underscore, as Gemini CLI splits names there."""


@dataclass(frozen=True)
class Where:
    """Which files, and whether they are written."""

    scope: str
    project: str | None
    dry: bool
    force: bool


@dataclass(frozen=True)
class Wanted:
    """What the entry shall say, and what goes with it, as the options have it."""

    role: str
    tools: str
    key: str
    http: str
    parts: str = ""


def show_list(session: Session, project: str | None) -> int:
    """Prints the clients and what stands in their files."""
    return say_list(session, _site(session, Where(USER, project, True, False), look=True))


def install(session: Session, names: tuple[str, ...], where: Where, wanted: Wanted) -> int:
    """Installs into each client; one that fails keeps none of the others from it."""
    site = _site(session, where)
    chosen = _chosen(session, names, site.home)
    _check_scopes(chosen, where.scope, names)
    _check_key(wanted.key)
    parts = _parts(wanted.parts)
    lines = []
    for client in chosen:
        try:
            server = _server(session, client, wanted, where)
            if server.token:
                _check_private(client)
        except BusError as error:
            lines.append(Line(client, where.scope, refused=error))
            continue
        program = server.command or str(this_installation().program)
        wish = Wish(server, wanted.key, parts, program, wanted.role, session.texts.language, where.force)
        lines += _install(client, where.scope, site, wish)
        _say_missing(session, client, where.scope, site, wish)
    if wanted.http and any(not line.error and line.client.token_reference for line in lines):
        session.warn(session.texts.say("clients.token", variable=TOKEN_VARIABLE, path=_token_file(session)))
    return say_outcome(session, lines, where.dry)


def uninstall(session: Session, names: tuple[str, ...], where: Where, everything: bool) -> int:
    """Takes our things out of each client."""
    site = _site(session, replace(where, scope=USER) if everything else where, look=everything)
    chosen = list(known_clients.known().values()) if everything or ALL in names else named(names)
    scopes = [USER, *([PROJECT] if site.project else [])] if everything else [where.scope]
    if not everything:
        _check_scopes(chosen, where.scope, names)
    lines = [line for client in chosen for scope in scopes for line in _uninstall(client, scope, site)]
    lines = [line for line in lines if line.what != UNCHANGED or (line.entry and line.client.name in names)]
    return say_outcome(session, lines, where.dry)


def snippet(session: Session, name: str, where: Where, wanted: Wanted) -> None:
    """Prints what a person may write into the client's file."""
    client = named([name])[0]
    _check_scopes([client], where.scope, (name,))
    _check_key(wanted.key)
    site = _site(session, where)
    server = _server(session, client, wanted, where)
    path, text = client.path(where.scope, site.home, site.project), whole_file(client, server, wanted.key)
    if session.json:
        session.data({"client": name, "scope": where.scope, "file": str(path) if path else "", "text": text})
        return
    session.say("clients.snippet" if path else "clients.snippet_nowhere", path=path, client=client.title)
    session.line(text.rstrip("\n"))


def _install(client: Client, scope: str, site: Site, wish: Wish) -> list[Line]:
    wanted = edits(client, scope, site.home, site.project, wish)
    if not wanted:
        return [Line(client, scope)]
    hot = client.hot and scope == USER
    lines = []
    for number, edit in enumerate(wanted):
        done = put(edit, f"{client.name}:{scope}", site, hot=hot and number == 0)
        is_broken = done.error is not None and done.error.code == "corrupt"
        text = edit.by_hand() if is_broken and isinstance(edit, EntryEdit | ElementEdit) else ""
        if edit.name or done.what != UNCHANGED:
            lines.append(Line(client, scope, done, entry=number == 0, snippet=text))
    return lines


def _say_missing(session: Session, client: Client, scope: str, site: Site, wish: Wish) -> None:
    """Says which wished parts the client has no place for."""
    for part in [part for part in wish.parts if part != "approve"]:
        if not role_files(client, scope, site.home, site.project, replace(wish, parts=(part,))):
            session.warn(session.texts.say("clients.no_part", client=client.title, part=part, scope=scope))


def _uninstall(client: Client, scope: str, site: Site) -> list[Line]:
    wish = Wish(Server(), parts=PARTS, force=site.force)
    wanted = edits(client, scope, site.home, site.project, wish)
    done = take(wanted, f"{client.name}:{scope}", site)
    return [Line(client, scope, one, entry=number == 0) for number, one in enumerate(done)]


def _site(session: Session, where: Where, look: bool = False) -> Site:
    """The files that may be changed. A project is the named one; without a name it is looked for if it matters."""
    say_faults(session)
    folder = Path(os.path.abspath(Path(where.project).expanduser())) if where.project else None
    if folder is None and (look or where.scope == PROJECT):
        folder = nearest_project()
    if where.scope == PROJECT and (folder is None or not folder.is_dir()):
        raise click.UsageError("There is no project here: no folder above this one has .git. Say which: --project DIR")
    layout = session.layout if session.settings.root else None
    return Site(Home(Path.home(), dict(os.environ)), folder, Manifest(layout), where.force, where.dry, PAUSE)


def _chosen(session: Session, names: tuple[str, ...], home: Home) -> list[Client]:
    """The clients that were named; `all` those found; none: a person is asked."""
    here = [client for client in known_clients.known().values() if is_here(client, home)]
    if not names:
        listed = ", ".join(client.name for client in here) or "none"
        if session.json or not is_terminal(sys.stdin) or not is_terminal(sys.stdout):
            raise click.UsageError(f"Name the clients, or say all. Found here: {listed}.")
        session.say("clients.found_here", clients=listed)
        if not here or not click.confirm(session.texts.say("clients.ask")):
            raise click.Abort
        return here
    if ALL in names:
        if not here:
            known = ", ".join(known_clients.known())
            raise BusError("not_found", "no client was found on this machine.", f"Name one: {known}.")
        return here
    return named(names)


def _check_scopes(chosen: list[Client], scope: str, names: tuple[str, ...]) -> None:
    for client in chosen:
        if scope not in client.scopes() and ALL not in names:
            raise click.UsageError(f"{client.title} has no {scope} scope. Leave --scope out: its file is the user's.")


def _check_key(key: str) -> None:
    if not _KEY.match(key):
        raise click.UsageError("--name must be 2 to 12 small letters, digits and dashes, a letter first: bus")


def _parts(text: str) -> tuple[str, ...]:
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    for part in wanted:
        if part not in PARTS:
            raise click.UsageError(f"--with takes {', '.join(PARTS)}; not {part}.")
    return tuple(wanted)


def _server(session: Session, client: Client, wanted: Wanted, where: Where) -> Server:
    """What this client's entry starts or calls.

    Raises:
        BusError: why there can be none.
    """
    if wanted.http:
        return _address(session, client, wanted.http, where)
    _check_bus(session)
    program = checked_program(this_installation(), where.force)
    return Server(str(program), _words(session, client.name, wanted.role, wanted.tools))


def _check_bus(session: Session) -> None:
    if not session.settings.root:
        raise BusError("invalid", "the bus folder is not known.", "Say where it is: --root FOLDER")
    if not session.layout.root.is_dir():
        fix = f"Run: {command_line(['agent-bus', 'init', str(session.layout.root)])}"
        raise BusError("not_found", f"the bus folder {session.layout.root} does not exist.", fix)
    if session.agent:
        check_agent(session.agent, "--agent")


def _words(session: Session, client: str, role: str, tools: str) -> tuple[str, ...]:
    words = ["mcp", "--root", str(session.layout.root), "--agent", session.agent or client]
    words += ["--role", role] if role not in ("", "worker") else []
    if tools:
        from agent_bus.app import load_features
        from agent_bus.faces.toolbox import offered  # the SDK's import costs more than all the rest

        load_features()
        offered(tools, role or "worker")
        words += ["--tools", tools]
    config = session.config or os.environ.get("AGENT_BUS_CONFIG", "")
    return (*words, *(["--config", os.path.abspath(config)] if config else []))


def _address(session: Session, client: Client, url: str, where: Where) -> Server:
    """The server at an address; its token only where the client cannot read a variable, and never in a project."""
    if not client.url_key:
        raise BusError("refused", f"{client.title} takes programs only.", "Leave --http out.")
    _check_address(url)
    if client.token_reference:
        return Server(url=url)
    if where.scope == PROJECT:
        fix = "Install it for the user, or without --http."
        raise BusError("refused", f"{client.title} would need the token in a project file.", fix)
    if not is_local(url):
        why = f"{client.title} cannot read a variable, and this bus's token is for this machine alone."
        raise BusError("refused", why, "Give an address such as http://127.0.0.1:8200/mcp.")
    return Server(url=url, token="…" if where.dry else _token_file(session).read_text(encoding="ascii").strip())


def _check_address(url: str) -> None:
    good = "Such as http://127.0.0.1:8200/mcp"
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or not parts.path or parts.port == 0
    except ValueError:
        wrong = True
    if wrong or parts.username is not None or re.search(r"\s", url):
        raise BusError("invalid", "--http must be an address with a path, and without a name or password.", good)


def _check_private(client: Client) -> None:
    """A token goes only into a file that its user alone can read (Windows' home is the user's own)."""
    path = client.user_path(Home(Path.home(), dict(os.environ)))
    if path is not None and sys.platform != "win32" and path.exists() and path.stat().st_mode & 0o077:
        fix = f"Run: chmod 600 {command_line([str(path)])}"
        raise BusError("refused", f"{path} would hold the token, and others can read it.", fix)


def _token_file(session: Session) -> Path:
    from agent_bus.faces.listen import bus_id, token_of

    return token_of(bus_id(session.settings) or "no-bus")[1]
