"""What `agent-bus vault install` does: looks, plans, writes, and says what became of each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_bus.errors import BusError
from agent_bus.faces.cli_init import command_line, make
from agent_bus.faces.cli_session import Session
from agent_bus.notes import obsidian, place, plan, template
from agent_bus.notes.dashboard import language_of
from agent_bus.notes.install import read_record, write, write_settings
from agent_bus.store.layout import Layout

_FIELDS = {
    plan.CREATE: "created",
    plan.UPDATE: "updated",
    plan.OFFER: "conflicts",
    plan.HELD: "conflicts",
    plan.KEEP: "unchanged",
}


@dataclass(frozen=True)
class Wanted:
    """What the command line said."""

    name: str
    lang: str
    own: bool
    settings: bool
    dry_run: bool


@dataclass(frozen=True)
class Work:
    """Everything that will be written, in its order, and the properties whose other type stays."""

    vault: Path
    steps: Sequence[plan.Step]
    settings: Sequence[obsidian.Edit]
    kept_types: Sequence[str]


def install(session: Session, path: str, wanted: Wanted) -> None:
    """Puts the template into a vault.

    Raises:
        BusError: `not_found`, `invalid`, `refused` or `busy` with nothing written; `conflict` if somebody writes there
            at this moment; `unavailable`.
    """
    vault = Path(path).expanduser().absolute()
    root = place.bus_folder(vault, wanted.name)
    session.root = str(root)
    layout, now = session.layout, datetime.now(UTC)
    new = not layout.format_file.exists()
    if not new:
        layout.check_owner()
    work = _work(session, layout, vault, wanted)
    if not wanted.dry_run:
        _write(layout, work, now)
    _show(session, root, work, new, wanted.dry_run)


def _work(session: Session, layout: Layout, vault: Path, wanted: Wanted) -> Work:
    ours = template.shipped()
    language = wanted.lang or language_of(layout.root) or session.texts.language
    steps = plan.plan(ours, layout.root, language, read_record(_record(layout)))
    place.check_links(layout.root, [step.target for step in steps])
    edits, kept = _settings(ours.settings(layout.root.name), vault, wanted)
    return Work(vault, steps, edits, kept)


def _settings(ours: dict[str, bytes], vault: Path, wanted: Wanted) -> tuple[list[obsidian.Edit], list[str]]:
    """The edits of Obsidian's settings: all files of a new vault, or our types and bookmarks in one that is there."""
    if wanted.own:
        if (vault / place.SETTINGS).exists():
            fix = "Leave out --own; --obsidian-settings adds what the notes need."
            raise BusError("refused", f"{vault} is a vault already.", fix)
        return [obsidian.Edit(path, None, data) for path, data in ours.items()], []
    if not wanted.settings:
        return [], []
    if (vault / place.SETTINGS).is_symlink():
        raise BusError("refused", f"{vault / place.SETTINGS} is a link.", "Leave out --obsidian-settings.")
    edits, kept = obsidian.edits(vault, ours)
    if edits and not wanted.dry_run and obsidian.runs():
        raise BusError("busy", "Obsidian runs and would write over its settings.", "Close it, then run this again.")
    return edits, kept


def _write(layout: Layout, work: Work, now: datetime) -> None:
    make(layout, parents=False)
    write(layout.root, layout.temp, work.steps, _record(layout))
    write_settings(work.vault, layout.temp, work.settings, now)


def _record(layout: Layout) -> Path:
    return layout.state / "vault" / "template.json"


def _show(session: Session, root: Path, work: Work, new: bool, dry_run: bool) -> None:
    named: dict[str, list[str]] = {"created": [], "unchanged": [], "updated": [], "conflicts": []}
    for step in work.steps:
        named[_FIELDS[step.act]].append(f"{root.name}/{step.target}")
    for edit in work.settings:
        named["created" if edit.was is None else "updated"].append(edit.path)
    named["conflicts"] += [f"{obsidian.TYPES}: {name}" for name in work.kept_types]
    words = (["up"], ["install", "all"], ["vault", "doctor"]) if new else (["vault", "doctor"],)
    following = [command_line(["agent-bus", *one, "--root", str(root)]) for one in words]
    if session.json:
        session.data({**named, "next": following})
        return
    for field, key in (("created", "+"), ("updated", "~")):
        for path in named[field]:
            session.line(f"  {key} {path}")
    for step in work.steps:
        if step.act in (plan.OFFER, plan.HELD):
            session.say("vault.install.offered", path=step.path, beside=plan.beside(step.path))
    for name in work.kept_types:
        session.say("vault.install.type", name=name)
    counts = {field: len(paths) for field, paths in named.items()}
    session.say("vault.install.dry" if dry_run else "vault.install.done", root=root, **counts)
    if not dry_run:
        session.say("vault.install.next")
        for line in following:
            session.line(f"  {line}")
