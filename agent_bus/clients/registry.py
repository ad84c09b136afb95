"""Finding a client by its name: a module of this folder, then an entry point of group `agent_bus.clients`."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from agent_bus import clients
from agent_bus.clients import Client
from agent_bus.errors import BusError

GROUP = "agent_bus.clients"


def load(name: str) -> Client:
    """The client of a name.

    Raises:
        BusError: `invalid` with the nearest known name.
    """
    found = known().get(name)
    if found is None:
        near = difflib.get_close_matches(name, known(), n=1, cutoff=0.5)
        hint = f"Use {near[0]}." if near else f"Known are {', '.join(known())}."
        raise BusError("invalid", f"client {name[:40]!a} is unknown.", hint)
    return found


def known() -> dict[str, Client]:
    """All clients by name, in order; a third party's replaces none of ours."""
    return _load()[0]


def faults() -> dict[str, str]:
    """Third parties' clients that cannot be used: why, by the name of the entry point."""
    return _load()[1]


@cache
def _load() -> tuple[dict[str, Client], dict[str, str]]:
    modules = (importlib.import_module(f"{GROUP}.{one.name}") for one in pkgutil.iter_modules(clients.__path__))
    found = {module.CLIENT.name: module.CLIENT for module in modules if hasattr(module, "CLIENT")}
    wrong: dict[str, str] = {}
    for point in entry_points(group=GROUP):
        try:
            loaded = point.load()
        except Exception as error:  # whatever somebody's module does, the other clients go on
            wrong[point.name] = f"{point.value}: {type(error).__name__}: {error}"
            continue
        offer = getattr(loaded, "CLIENT", loaded)
        if isinstance(offer, Client):
            found.setdefault(offer.name, offer)
        else:
            wrong[point.name] = f"{point.value}: there is no Client in it"
    return dict(sorted(found.items())), wrong
