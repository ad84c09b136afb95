"""What install, uninstall and the list of clients say."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agent_bus.clients import PROJECT, Client, registry
from agent_bus.clients.entries import ADDED, UPDATED
from agent_bus.clients.found import FoundFile, is_here, look, options
from agent_bus.clients.installing import REFUSED, Done, Site
from agent_bus.errors import BusError
from agent_bus.faces.cli_session import Session
from agent_bus.faces.show import clean

_SECRET = re.compile(
    r"""(?i)((?:token|secret|password|passwd|api_?-?key|authorization|credential)[\w-]*["']?\s*[:=]\s*)(["']).*?\2"""
)
_BEARER = re.compile(r"(?i)(bearer\s+)[^\s\"']+")
_ONLY_PROJECT = ("after.approve_project", "note.trusted_project")
_COLOURS = {"added": "green", "updated": "green", "removed": "green", REFUSED: "red"}


@dataclass(frozen=True)
class Line:
    """One file of one client, and what became of it.

    Args:
        done: the outcome; None if the client has no file there.
        entry: whether it is about the entry itself, and not about what goes with it.
        refused: why nothing was tried.
        snippet: what a person may write into a file that cannot be changed.
    """

    client: Client
    scope: str
    done: Done | None = None
    entry: bool = False
    refused: BusError | None = None
    snippet: str = ""

    @property
    def error(self) -> BusError | None:
        """Why nothing was done."""
        if self.done is None and self.refused is None:
            hint = "It has none on this system." if self.scope != PROJECT else "Leave --scope out."
            return BusError("not_found", f"{self.client.title} has no {self.scope} file here.", hint)
        return self.refused or (self.done.error if self.done else None)

    @property
    def what(self) -> str:
        """`added`, `updated`, `unchanged`, `removed`, `kept` or `refused`."""
        return REFUSED if self.error or self.done is None else self.done.what


def say_outcome(session: Session, lines: list[Line], dry: bool) -> int:
    """Prints what became of each file; the exit code is 1 if one was refused."""
    code = 1 if any(line.error for line in lines) else 0
    if session.json:
        session.data({"ok": code == 0, "dry_run": dry, "files": [_as_dict(session, line, dry) for line in lines]})
        return code
    for line in lines:
        _say(session, line, dry)
    if not lines:
        session.say("clients.nothing")
    return code


def say_faults(session: Session) -> None:
    """Says which third parties' clients cannot be used, and why."""
    for name, why in registry.faults().items():
        session.warn(session.texts.say("clients.broken_offer", name=name, why=clean(why)))


def say_list(session: Session, site: Site) -> int:
    """Prints each client: whether it is here, its files, and our entry in them."""
    rows = [(client, is_here(client, site.home), list(look(client, site.home, site.project)))
            for client in registry.known().values()]  # fmt: skip
    if session.json:
        session.data({"clients": [
            {"client": client.name, "found": here, "files": [_file_as_dict(file) for file in files]}
            for client, here, files in rows
        ]})  # fmt: skip
        return 0
    for client, here, files in rows:
        mark = session.texts.say("clients.here" if here else "clients.not_here")
        session.line(f"{click.style(client.name, bold=here)}  {mark}")
        for file in files:
            if file.text is not None or file.problem:
                _say_file(session, file)
    return 0


def diff(path: Path, before: bytes | None, after: bytes | None) -> str:
    """The unified diff of a file, without secrets."""
    old, new = (_lines(data) for data in (before, after))
    text = "\n".join(difflib.unified_diff(old, new, str(path), str(path), n=1, lineterm=""))
    return _BEARER.sub(r"\1…", _SECRET.sub(r"\1\2…\2", text))


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


def _say(session: Session, line: Line, dry: bool) -> None:
    path = str(line.done.path) if line.done else ""
    what = session.texts.say(f"clients.what.{line.what}")
    session.line(f"{line.client.name}  {path}  {click.style(what, fg=_COLOURS.get(line.what))}".replace("    ", "  "))
    if line.error:
        session.line(f"  {clean(str(line.error))}")
        if line.snippet:
            session.line(session.texts.say("clients.by_hand"))
            session.line("\n".join(f"    {row}" for row in line.snippet.rstrip("\n").split("\n")))
        return
    assert line.done is not None
    if dry and line.done.before != line.done.after:
        session.line(diff(line.done.path, line.done.before, line.done.after))
    if line.done.backup:
        session.line(f"  {session.texts.say('clients.backup', path=line.done.backup)}")
    for text in _next(session, line):
        session.line(f"  {text}")


def _next(session: Session, line: Line) -> list[str]:
    """What the user should know or do now."""
    found = [line.done.note] if line.done and line.done.note else []
    if line.entry and line.what in (ADDED, UPDATED):
        keys = [*(f"after.{key}" for key in line.client.after), *(f"note.{key}" for key in line.client.limits.notes)]
        found += [f"clients.{key}" for key in keys if line.scope == PROJECT or key not in _ONLY_PROJECT]
    return [session.texts.say(key) for key in found]


def _as_dict(session: Session, line: Line, dry: bool) -> dict[str, Any]:
    done = line.done
    return {
        "client": line.client.name,
        "scope": line.scope,
        "file": str(done.path) if done else "",
        "what": line.what,
        "backup": str(done.backup) if done and done.backup else "",
        "error": line.error.as_dict() if line.error else None,
        "next": [] if line.error else _next(session, line),
        **({"diff": diff(done.path, done.before, done.after)} if dry and done else {}),
    }


def _say_file(session: Session, file: FoundFile) -> None:
    session.line(f"  {file.path}")
    if file.problem:
        session.line(f"    {click.style(session.texts.say('clients.unreadable', why=file.problem), fg='red')}")
    for entry in _our_entries(file):
        session.line("    " + session.texts.say("clients.entry", **entry))


def _our_entries(file: FoundFile) -> list[dict[str, str]]:
    found = [(entry, options(file.client, entry.value)) for entry in file.entries if entry.whose != "other"]
    return [
        {"name": entry.key, "agent": words.get("agent", ""), "root": words.get("root", ""), "whose": entry.whose}
        for entry, words in found
    ]


def _file_as_dict(file: FoundFile) -> dict[str, Any]:
    return {
        "scope": file.scope,
        "file": str(file.path),
        "exists": file.text is not None,
        "problem": file.problem,
        "entries": _our_entries(file),
    }
