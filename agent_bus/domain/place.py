"""Scopes, workspaces and projects: whose board it is. Pure.

A workspace is the folder of a project on this machine; people may put several of them under one project.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from agent_bus import ids
from agent_bus.errors import BusError, invalid

WORKSPACE = "workspace"
GLOBAL = "global"
SCOPES = "Use workspace, project:p_…, global or task:TASK_ID."
NAME_CHARS = 80
_WORKSPACE_ID = re.compile(r"ws_[0-9a-f]{16}", re.ASCII)
_PROJECT_ID = re.compile(r"p_[0-9a-f]{12}", re.ASCII)


def is_workspace_id(text: str) -> bool:
    """Whether the text is `ws_` and 16 hex characters."""
    return _WORKSPACE_ID.fullmatch(text) is not None


def is_project_id(text: str) -> bool:
    """Whether the text is `p_` and 12 hex characters."""
    return _PROJECT_ID.fullmatch(text) is not None


def workspace_id(path: str) -> str:
    """The id of a folder's path, which must be normalised (absolute, links resolved, folded where case is ignored)."""
    return f"ws_{hashlib.sha256(unicodedata.normalize('NFC', path).encode('utf-8', 'replace')).hexdigest()[:16]}"


def read_scope(scope: str) -> tuple[str, str]:
    """A scope as its kind (`workspace`, `project`, `global`, `task`) and the id in it.

    Raises:
        BusError: `invalid`, listing the scopes.
    """
    kind, colon, name = scope.partition(":")
    if scope in (WORKSPACE, GLOBAL):
        return scope, ""
    if kind == "project" and colon:
        if not is_project_id(name):
            raise invalid("scope", f"names no project id, {name[:40]!a}", "moa_projects_list shows them.")
        return kind, name
    if kind == "task" and colon:
        if not name:
            raise invalid("scope", "names no debate: task: needs an id behind it", SCOPES)
        return kind, ids.check_key(check_short(name, "scope"), "scope")
    raise invalid("scope", f"is unknown, {scope[:40]!a}", SCOPES)


def check_short(text: str, name: str) -> str:
    """The text, of at most 64 characters and without two dots in a row (docs/protocol.md "Names")."""
    if len(text) > ids.AGENT_CHARS:
        raise invalid(name, f"must have at most {ids.AGENT_CHARS} characters, got {len(text)}")
    if ".." in text:
        raise invalid(name, f"must not hold two dots in a row, got {text!a}")
    return text


def check_name(text: str) -> str:
    """The name of a project, without white space around it.

    Raises:
        BusError: `invalid` unless it has 1 to 80 characters.
    """
    name = " ".join(text.split())
    if not 1 <= len(name) <= NAME_CHARS:
        raise invalid("name", f"must have 1 to {NAME_CHARS} characters, got {len(name)}", "For example Web shop.")
    return name


def no_project(project: str) -> BusError:
    """The error for a project that is not there."""
    return BusError("not_found", f"there is no project {project[:40]}.", "moa_projects_list shows them.")
