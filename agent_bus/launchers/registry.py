"""Finding a launcher by its name: a module of this folder, then an entry point of group `agent_bus.launchers`."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from agent_bus import launchers
from agent_bus.errors import BusError
from agent_bus.launchers import Launcher

GROUP = "agent_bus.launchers"


@cache
def load(name: str) -> Launcher:
    """The launcher of a name.

    Raises:
        BusError: `invalid` with the nearest known name.
    """
    found = _built_in().get(name) or _offered(name)
    if found is None:
        near = difflib.get_close_matches(name, names(), n=1, cutoff=0.5)
        hint = f"Use {near[0]}." if near else f"Known are {', '.join(names())}."
        raise BusError("invalid", f"launcher {name[:40]!a} is unknown.", hint)
    return found


def names() -> list[str]:
    """All names that `load` knows, in order."""
    return sorted({*_built_in(), *(point.name for point in entry_points(group=GROUP))})


@cache
def _built_in() -> dict[str, Launcher]:
    """The modules beside this one that offer a LAUNCHER, by their name."""
    modules = (importlib.import_module(f"{GROUP}.{one.name}") for one in pkgutil.iter_modules(launchers.__path__))
    offers = (getattr(module, "LAUNCHER", None) for module in modules)
    return {offer.name: offer for offer in offers if offer is not None}


def _offered(name: str) -> Launcher | None:
    """A third party's launcher: the entry point names a module with LAUNCHER, or the launcher itself."""
    for point in entry_points(group=GROUP, name=name):
        loaded = point.load()
        offer: Launcher = getattr(loaded, "LAUNCHER", loaded)
        return offer
    return None
