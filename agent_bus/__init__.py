"""agent-bus: one mailbox for all your coding agents.

The public API: `open_bus(load_settings(...))` gives a `Bus`, `bind(bus)` its verbs as methods, `command`
registers a verb of your own, `prompt` and `resource` what goes with it, `BusError` is what they raise. Everything
else may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_bus.app import memory_bus, open_bus
    from agent_bus.bus import Bus, Caller
    from agent_bus.commands import bind, command
    from agent_bus.errors import BusError
    from agent_bus.offers import prompt, resource
    from agent_bus.parameters import Param
    from agent_bus.settings import Settings, load_settings

__version__ = "0.1.0"

_PLACES = {
    "open_bus": "app",
    "memory_bus": "app",
    "Bus": "bus",
    "Caller": "bus",
    "bind": "commands",
    "command": "commands",
    "prompt": "offers",
    "resource": "offers",
    "BusError": "errors",
    "Param": "parameters",
    "Settings": "settings",
    "load_settings": "settings",
}

__all__ = [
    "Bus",
    "BusError",
    "Caller",
    "Param",
    "Settings",
    "__version__",
    "bind",
    "command",
    "load_settings",
    "memory_bus",
    "open_bus",
    "prompt",
    "resource",
]


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for: `import agent_bus` alone costs nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'agent_bus' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"agent_bus.{_PLACES[name]}"), name)
