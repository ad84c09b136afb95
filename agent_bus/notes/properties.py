"""Reading the properties of a note: YAML 1.2, so that `no`, `0123` and `10:30` stay what was typed."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent


def read(front: str) -> dict[str, Any] | None:
    """The properties; None if they cannot be read, or a name stands there twice."""
    try:
        found = YAML(typ="safe", pure=True).load(front)
    except (YAMLError, ValueError, TypeError, RecursionError):
        return None
    if found is None:
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else None


def is_plain(front: str) -> bool:
    """Whether the properties have no anchors, aliases or tags: nothing in them stands for something else."""
    try:
        for event in YAML(typ="safe", pure=True).parse(front):
            if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
                return False
            if getattr(event, "tag", None) and not getattr(event, "implicit", True):
                return False
    except (YAMLError, ValueError, TypeError, RecursionError):
        return False
    return True
