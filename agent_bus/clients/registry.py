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


@cache
def known() -> dict[str, Client]:
    """All clients by name, in order; a third party's replaces none of ours."""
    modules = (importlib.import_module(f"{GROUP}.{one.name}") for one in pkgutil.iter_modules(clients.__path__))
    offers = [getattr(module, "CLIENT", None) for module in modules]
    offers += [getattr(found, "CLIENT", found) for found in (point.load() for point in entry_points(group=GROUP))]
    found = {offer.name: offer for offer in reversed(offers) if isinstance(offer, Client)}
    return dict(sorted(found.items()))
