"""Whether a list of tools is one that all clients take: a single bad schema makes some refuse every tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_bus.commands import commands

NAME = re.compile(r"^[a-z][a-zA-Z0-9_]{2,39}$")
TEXT_CHARS = 1000
MOST_TOOLS = 40
CORE_BYTES, GROUP_BYTES, ALL_BYTES = 10_000, 12_000, 60_000
_TYPES = {"string", "integer", "number", "boolean", "array"}
_KEYWORDS = {"type", "description", "enum", "default", "minimum", "maximum", "items"}
_OUTER = {"type", "properties", "required", "description"}


def faults(tools: Sequence[Any], groups: str) -> list[str]:
    """What is wrong with a server's tools, in words; [] if nothing is.

    Args:
        tools: of `tools/list`.
        groups: what the server was told with `--tools`, "" = its role's own, which hold the core.
    """
    listed = {str(tool.get("name")): tool for tool in tools if isinstance(tool, dict)}
    wanted = {name.strip() for name in (groups or "core").split(",")}
    own = [c.name for c in commands().values() if not c.people and ("all" in wanted or c.group in wanted)]
    found = [f"{name} is missing" for name in own if name not in listed]
    found += [f"{name}: {fault}" for name, tool in listed.items() for fault in _tool_faults(name, tool)]
    return [*found, *_size_faults(tools, wanted)]


def _size_faults(tools: Sequence[Any], wanted: set[str]) -> Iterator[str]:
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
    most = ALL_BYTES if "all" in wanted else CORE_BYTES + GROUP_BYTES * max(1, len(wanted - {"core"}))
    if size > most:
        yield f"the list has {size} bytes, more than {most}"
    if len(tools) > MOST_TOOLS and "all" not in wanted:
        yield f"there are {len(tools)} tools, more than {MOST_TOOLS}"


def _tool_faults(name: str, tool: Mapping[str, Any]) -> Iterator[str]:
    if not NAME.match(name):
        yield "some clients do not take this name"
    if not 0 < len(str(tool.get("description", ""))) <= TEXT_CHARS:
        yield f"its description must have 1 to {TEXT_CHARS} characters"
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield "its schema is no object"
        return
    if extra := sorted(schema.keys() - _OUTER):
        yield f"its schema has {', '.join(extra)}"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield "its parameters are no object"
        return
    for parameter, one in properties.items():
        yield from (f"{parameter} {fault}" for fault in _parameter_faults(one if isinstance(one, dict) else {}))


def _parameter_faults(one: Mapping[str, Any]) -> Iterator[str]:
    kind, items, enum = one.get("type"), one.get("items"), one.get("enum", ["a", "b"])
    if not isinstance(kind, str) or kind not in _TYPES:
        yield "has a type that some clients do not know"
        return
    if extra := sorted(one.keys() - _KEYWORDS):
        yield f"has {', '.join(extra)}"
    if kind == "array" and not (isinstance(items, dict) and items.get("type") == "string"):
        yield "is an array of something else than texts"
    if not isinstance(enum, list) or len(enum) < 2 or not all(isinstance(word, str) and word for word in enum):
        yield "has an enum with an empty or a single word"
