"""A client's configuration file as a document: read, one member set, one taken out, in its own format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_bus.clients import JSON, JSONC, TOML, json_edit, jsonc, toml_edit
from agent_bus.clients.hunks import BOM, Hunk, apply, line_and_column
from agent_bus.clients.jsonc import BrokenText, Node


def parse(text: str, form: str) -> Any:
    """The content; {} for a text without any.

    Raises:
        BrokenText: with line and column.
    """
    if not text.removeprefix(BOM).strip():
        return {}
    return toml_edit.parse(text) if form == TOML else _root(text, form).value


def value(document: Any, keys: Sequence[str]) -> Any:
    """What stands below the keys; None if nothing does."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def set_members(text: str, form: str, keys: Sequence[str], members: Mapping[str, Any]) -> list[Hunk]:
    """Sets members of the object below the keys, which is made if it is missing.

    Raises:
        BrokenText: the document is broken, or something else than an object stands on the way.
    """
    if form == TOML:
        return toml_edit.put_table(text, keys, members)
    if not text.removeprefix(BOM).strip():
        return json_edit.new_document(keys, members, text)
    return json_edit.put_members(text, _root(text, form), keys, members)


def replace_members(text: str, form: str, keys: Sequence[str], members: Mapping[str, Any]) -> list[Hunk]:
    """Makes the object below the keys hold these members and no others.

    Raises:
        BrokenText: as `set_members`.
    """
    if form == TOML:
        old = value(parse(text, form), keys)
        return toml_edit.put_table(text, keys, members, old.keys() - members.keys() if isinstance(old, dict) else ())
    return set_members(text, form, keys[:-1], {keys[-1]: members})


def check_single(text: str, form: str, keys: Sequence[str]) -> None:
    """Whether each name stands once in the object below the keys (TOML cannot even say it twice).

    Raises:
        BrokenText: one stands there twice.
    """
    if form == TOML or not text.removeprefix(BOM).strip():
        return
    if (node := json_edit.find(text, _root(text, form), keys)) is not None:
        for part in node.parts:
            json_edit.only(text, node, part.key or "")


def add_element(text: str, form: str, keys: Sequence[str], element: Any) -> list[Hunk]:
    """Adds an element to the array below the keys, unless it is there (JSON only).

    Raises:
        BrokenText: as `set_members`.
    """
    if not text.removeprefix(BOM).strip():
        return json_edit.new_document(keys[:-1], {keys[-1]: [element]}, text)
    return json_edit.put_element(text, _root(text, form), keys, element)


def remove(text: str, form: str, keys: Sequence[str]) -> list[Hunk]:
    """Takes out the member that the keys name; nothing if it is not there.

    Raises:
        BrokenText: as `set_members`.
    """
    if value(parse(text, form), keys) is None:
        return []
    if form == TOML:
        return toml_edit.take_table(text, keys)
    parent = json_edit.find(text, _root(text, form), keys[:-1])
    part = json_edit.only(text, parent, keys[-1]) if parent else None
    return json_edit.take(text, parent, part) if parent and part else []


def remove_element(text: str, form: str, keys: Sequence[str], ours: Callable[[Any], bool]) -> list[Hunk]:
    """Takes the first element that is ours out of the array below the keys (JSON only); nothing if there is none."""
    if not isinstance(value(parse(text, form), keys), list):
        return []
    parent = json_edit.find(text, _root(text, form), keys[:-1])
    part = json_edit.only(text, parent, keys[-1]) if parent else None
    array = part.node if part else None
    found = next((one for one in array.parts if ours(one.node.value)), None) if array else None
    return json_edit.take(text, array, found) if array and found else []


def line_of(text: str, form: str, keys: Sequence[str]) -> int:
    """The line of what the keys name, from 1; that of the nearest key above it if it is not there."""
    if form == TOML:
        return toml_edit.line_of(text, keys)
    if not text.removeprefix(BOM).strip():
        return 1
    node, at = _root(text, form), 0
    for key in keys:
        found = node.named(key)
        if not found:
            break
        node, at = found[0].node, found[0].start
    return line_and_column(text, at)[0]


def is_empty(text: str, form: str) -> bool:
    """Whether nothing is left but empty objects and arrays."""
    return _bare(parse(text, form))


def prove(text: str, form: str, keys: Sequence[str], hunks: Sequence[Hunk], wanted: Any) -> None:
    """The last look before a write: the changed text is whole, has what is wanted below the keys (None: nothing), and
    differs nowhere else.

    Raises:
        BrokenText: if not; nothing may be written then.
    """
    before, after = parse(text, form), parse(apply(text, hunks), form)
    if value(after, keys) != wanted or _trimmed(before, keys) != _trimmed(after, keys):
        raise BrokenText("it cannot be changed without touching what is not ours", line_of(text, form, keys), 1)


def _root(text: str, form: str) -> Node:
    assert form in (JSON, JSONC)
    return jsonc.parse(text, form == JSONC)


def _trimmed(document: Any, keys: Sequence[str]) -> Any:
    """A copy without what the keys name, and without the objects that this leaves empty; the rest is shared."""
    if not isinstance(document, dict) or not keys or keys[0] not in document:
        return document
    rest = {name: one for name, one in document.items() if name != keys[0]}
    below = document[keys[0]]
    if len(keys) == 1:
        return rest
    inner = _trimmed(below, keys[1:])
    return rest if inner == {} else {**rest, keys[0]: inner}


def _bare(found: Any) -> bool:
    if isinstance(found, dict):
        return all(_bare(one) for one in found.values())
    return isinstance(found, list) and not found
