"""What all checks look at: the settings, the bus as far as it can be opened without making anything, the clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent_bus.app import load_features, open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.clients import USER, Client, Home
from agent_bus.clients.found import Entry, FoundFile, look, options
from agent_bus.clients.installation import Installation, this_installation
from agent_bus.doctor.running import PROBE_S, WITHIN_S, Deadline
from agent_bus.errors import BusError
from agent_bus.settings import Settings
from agent_bus.store.layout import FOLDERS, STATE_FOLDERS, Layout


@dataclass(frozen=True)
class Ground:
    """One examination's ground.

    Args:
        layout: where the bus lies, None if none is named.
        bus: the open bus; None if it is not whole.
        clients: those that are looked at.
        named: whether a person named them.
        files: what stands in their files.
        patience_s: how long a server's answer is waited for.
        temp: the temp folder, None = this system's.
    """

    settings: Settings
    layout: Layout | None
    bus: Bus | None
    home: Home
    project: Path | None
    clients: Sequence[Client]
    named: bool
    files: Sequence[FoundFile]
    installation: Installation
    deadline: Deadline = field(default_factory=lambda: Deadline.within(WITHIN_S))
    patience_s: float = PROBE_S
    temp: Path | None = None

    def ours(self) -> Iterator[tuple[FoundFile, Entry]]:
        """Each entry that starts or calls a bus server, with its file."""
        return ((file, entry) for file in self.files for entry in file.entries if entry.whose == "ours")


@contextmanager
def prepare(
    settings: Settings, home: Home, project: Path | None, clients: Sequence[Client], named: bool
) -> Iterator[Ground]:
    """Reads the clients' files and opens the bus if it is whole; nothing is made or mended.

    Without a root in the settings it is the bus that the user's clients have, if all have the same.
    """
    load_features()
    files = [file for client in clients for file in look(client, home, project)]
    settings = settings if settings.root else settings.model_copy(update={"root": root_of(files)})
    root = Path(settings.root).expanduser() if settings.root else None
    layout = Layout.of(root, settings.state_dir, settings.archive_dir) if root else None
    bus = _open(settings, layout)
    try:
        yield Ground(settings, layout, bus, home, project, clients, named, files, this_installation(home.environ))
    finally:
        if bus is not None:
            bus.close()


def root_of(files: Sequence[FoundFile]) -> str:
    """The one bus folder that the user's entries name, "" for none or several."""
    ours = ((f, e) for f in files if f.scope == USER for e in f.entries if e.whose == "ours")
    roots = {options(file.client, entry.value).get("root", "") for file, entry in ours} - {""}
    return roots.pop() if len(roots) == 1 else ""


def missing(layout: Layout) -> list[str]:
    """The folders that a whole bus has and this one has not."""
    places = {name: layout.root.joinpath(*name.split("/")) for name in FOLDERS}
    places |= {f"{layout.state.name}/{name}": layout.state / name for name in STATE_FOLDERS}
    return [name for name, path in places.items() if not path.is_dir()]


def _open(settings: Settings, layout: Layout | None) -> Bus | None:
    if layout is None or not layout.format_file.exists() or missing(layout):
        return None
    try:
        layout.read_format()
        return open_bus(settings, Caller(role="orchestrator", channel="cli"))
    except (BusError, OSError):
        return None
