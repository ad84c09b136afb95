"""`agent-bus init`: the bus folder, and what comes next."""

from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import UTC, datetime

import click

from agent_bus.errors import BusError
from agent_bus.faces.cli_session import Session
from agent_bus.store.layout import Layout


@click.command("init")
@click.argument("folder", required=False)
@click.option("-p", "--parents", is_flag=True, help="Make missing parent folders too.")
@click.pass_obj
def init(session: Session, folder: str | None, parents: bool) -> None:
    """Make the bus folder, or add what is missing in one; nothing that is there is changed."""
    session.root = folder or session.root
    if not session.settings.root:
        raise click.UsageError("Say where: agent-bus init FOLDER")
    layout = session.layout
    new = not layout.root.is_dir()
    made = make(layout, parents)
    words = (["install", "all"], ["doctor"])
    following = [command_line(["agent-bus", *one, "--root", str(layout.root)]) for one in words]
    if session.json:
        session.data({"root": str(layout.root), "made": made, "next": following})
        return
    session.say("init.made" if new else "init.completed" if made else "init.nothing", root=layout.root)
    for part in made:
        session.say("init.part", part=part)
    session.say("init.next")
    for line in following:
        session.line(f"  {line}")
    session.say("init.watch", command=command_line(["agent-bus", "status", "--root", str(layout.root)]))


def make(layout: Layout, parents: bool) -> list[str]:
    """Makes the folder and gives its new parts, as paths inside it.

    Raises:
        BusError: `not_found` without its parent folder, `conflict` if it is a file, `refused` on a host that does not
            own it, `unavailable` if it cannot be written.
    """
    if layout.root.exists() and not layout.root.is_dir():
        raise BusError("conflict", f"{layout.root} is a file.", "Name a folder.")
    if layout.format_file.exists():
        layout.check_owner()
    if not parents and not layout.root.parent.is_dir():
        fix = "Give -p to make it too."
        raise BusError("not_found", f"the folder {layout.root.parent} does not exist.", fix)
    try:
        layout.root.mkdir(parents=True, exist_ok=True)
        before = _parts(layout)
        layout.make(datetime.now(UTC))
    except OSError as error:
        hint = "Choose a folder that you may write to."
        raise BusError("unavailable", f"{layout.root} cannot be written ({error.strerror}).", hint) from None
    return sorted(_parts(layout) - before)


def _parts(layout: Layout) -> set[str]:
    """The folders and files of the first two levels, which is as deep as `init` goes."""
    found = [*layout.root.glob("*"), *layout.root.glob("*/*")]
    return {path.relative_to(layout.root).as_posix() + ("/" if path.is_dir() else "") for path in found}


def command_line(words: list[str]) -> str:
    """The words as a person types them in this system's shell."""
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
