"""`agent-bus doctor`: what is wrong, why it matters, and how it is mended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_bus.clients import PROJECT
from agent_bus.faces.cli_session import Session
from agent_bus.faces.show import clean
from agent_bus.texts import Texts

if TYPE_CHECKING:
    from agent_bus.doctor import Finding

_COLOURS = {"ok": "green", "info": "cyan", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@click.option("--client", "names", multiple=True, metavar="CLIENT", help="Look at this client only; may be repeated.")
@click.option("--launch", is_flag=True, help="Also look at the agents that the bus starts; no model is called.")
@click.option("--send", is_flag=True, help="Also send a test notice to each channel.")
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings too.")
@click.pass_obj
def doctor(session: Session, names: tuple[str, ...], launch: bool, send: bool, strict: bool) -> int:
    """Say what is wrong with the bus and its clients, and how it is mended; nothing is changed."""
    from agent_bus.clients import Home, registry
    from agent_bus.doctor.examination import examine, exit_code  # only this verb pays for them
    from agent_bus.doctor.ground import prepare
    from agent_bus.faces.cli_clients import named, nearest_project
    from agent_bus.faces.cli_install_show import say_faults

    home = Home(Path.home(), dict(os.environ))
    chosen = named(names) or list(registry.known().values())
    with prepare(session.settings, home, nearest_project(), chosen, bool(names)) as ground:
        found = examine(ground, launch, send)
    code = exit_code(found, strict)
    say_faults(session)
    if session.json:
        english = Texts("en")
        session.data({"ok": code == 0, "findings": [_as_dict(english, finding) for finding in found]})
    else:
        _show(session, found)
    return code


def words(texts: Texts, finding: Finding) -> tuple[str, str, str]:
    """What a finding says: what, why it matters, the fix; a good one needs neither of the last two."""
    title, why = texts.say(f"doctor.check.{finding.id}").split("\n")
    values = {name: " ".join(clean(str(value)).split()) for name, value in finding.values.items()}
    if not finding.case:
        note = values.get("note", "")
        return f"{title}: {note}" if note else title, "", ""
    key = f"doctor.{finding.case}" if finding.case.startswith("!") else f"doctor.{finding.id}.{finding.case}"
    what, fix = texts.say(key, **({"client": finding.client} | values)).split("\n")
    if values.get("scope") == PROJECT and "--scope" not in fix:
        fix = fix.replace(f"install {finding.client}", f"install {finding.client} --scope {PROJECT}")
    return "\n".join([what, *(f"  | {clean(line)}" for line in finding.lines)]), why, fix


def _as_dict(texts: Texts, finding: Finding) -> dict[str, Any]:
    what, why, fix = words(texts, finding)
    return {"id": finding.id, "level": finding.level, "client": finding.client, "what": what, "why": why, "fix": fix}


def _show(session: Session, found: Sequence[Finding]) -> None:
    """By client: what is not well in full, then what is in one line each."""
    for client, group in groupby(found, key=lambda finding: finding.client):
        session.line(click.style(client or session.texts.say("doctor.bus"), bold=True))
        members = list(group)
        for finding in members:
            if finding.level != "ok":
                _show_bad(session, finding)
        if well := _grouped([finding.id for finding in members if finding.level == "ok"]):
            session.line(f"  {_level(session, 'ok')}  {well}")
    counts = {level: sum(finding.level == level for finding in found) for level in _COLOURS}
    end = "failed" if counts["fail"] else "warned" if counts["warn"] else "well"
    session.line("")
    session.say(f"doctor.end.{end}", **counts)


def _grouped(ids: Sequence[str]) -> str:
    """The ids by their first part: `root: exists, format; disk`."""
    groups: dict[str, dict[str, None]] = {}
    for id in ids:
        first, _, rest = id.partition(".")
        groups.setdefault(first, {})[rest] = None
    return "; ".join(f"{first}: {', '.join(rests)}" if any(rests) else first for first, rests in groups.items())


def _show_bad(session: Session, finding: Finding) -> None:
    what, why, fix = words(session.texts, finding)
    first, *rest = what.split("\n")
    session.line(f"  {_level(session, finding.level)}  {finding.id}  {first}")
    for line in (*rest, session.texts.say("doctor.why", why=why), session.texts.say("doctor.fix", fix=fix)):
        session.line(f"        {line}")


def _level(session: Session, level: str) -> str:
    return click.style(session.texts.say(f"doctor.level.{level}"), fg=_COLOURS[level], bold=level == "fail")
