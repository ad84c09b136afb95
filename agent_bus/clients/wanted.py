"""Which edits a client needs for what a user wants of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agent_bus.clients import PROJECT, USER, USUAL_NAME, Client, Home, Server, roles
from agent_bus.clients.edits import DeadEntryEdit, Edit, ElementEdit, EntryEdit
from agent_bus.clients.role_edits import BlockEdit, FileEdit


@dataclass(frozen=True)
class Wish:
    """What shall be installed.

    Args:
        server: what the client shall start or call.
        key: the name of the entry.
        parts: which of `agent_bus.clients.PARTS` besides the entry.
        program: what the Stop hook starts.
        role: which role texts, "" for all.
        language: of the role files.
        force: replace what a user or an earlier program left there.
    """

    server: Server
    key: str = USUAL_NAME
    parts: Collection[str] = ()
    program: str = ""
    role: str = ""
    language: str = "en"
    force: bool = False


def edits(client: Client, scope: str, home: Home, project: Path | None, wish: Wish) -> list[Edit]:
    """The edits of one client in one scope, the entry first; none if the client has no file there."""
    path = client.path(scope, home, project)
    if path is None:
        return []
    approve = "approve" in wish.parts
    found: list[Edit] = [EntryEdit(path, client, wish.server, wish.key, scope == USER, approve, wish.force)]
    if approve:
        found += [_rule(*rule, scope) for rule in client.allowing(scope, home, project, wish.key)]
    found += [_role_edit(file, scope, wish) for file in role_files(client, scope, home, project, wish)]
    if wish.force:
        found += [DeadEntryEdit(path, client, keys) for path, keys in client.dead_places(home, project)]
    return found


def role_files(client: Client, scope: str, home: Home, project: Path | None, wish: Wish) -> list[roles.RoleFile]:
    """The role files of one client in one scope; none for a part that it has no place for.

    A client whose servers are the user's alone gets those of the project too, if one was named.
    """
    both = scope == USER and project is not None and PROJECT not in client.scopes()
    scopes = (USER, PROJECT) if both else (scope,)
    return [
        file
        for one in scopes
        for file in roles.wanted(client.name, one, home, project, wish.parts, wish.role, wish.language)
    ]


def _role_edit(file: roles.RoleFile, scope: str, wish: Wish) -> Edit:
    private = scope == USER
    if file.kind == roles.BLOCK:
        return BlockEdit(file.path, file.text, private, wish.force)
    if file.kind == roles.FILE:
        return FileEdit(file.path, file.text, f"file-{file.path.stem}", private, wish.force)
    element = roles.hook_entry(wish.program)
    return ElementEdit(file.path, "hook", ("hooks", "Stop"), element, roles.is_our_hook, private)


def _rule(path: Path, keys: tuple[str, ...], word: str, scope: str) -> Edit:
    return ElementEdit(
        path, f"rule-{keys[-1]}", keys, word, lambda element: element == word, scope == USER, signed=False
    )
