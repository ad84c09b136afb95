"""The validator of notes: names, properties, regions, as docs/vault-notes.md has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

ALLOWED = {"tags", "aliases", "cssclasses", "publish"}
LISTS = {"tags", "aliases", "cssclasses"}
DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))}
MARKER = re.compile(r"^%% agent-bus:(begin|end) ([a-z][a-z0-9-]*)(?: rev=(\d+))? %%$")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")


def check_name(name: str) -> list[str]:
    """What is wrong with a file name, for every desktop, phone and sync service."""
    found = []
    if re.search(r'[\\/:*?"<>|#^\[\]\x00-\x1f]|%%', name):
        found.append(f"{name!r}: forbidden character")
    if name != unicodedata.normalize("NFC", name):
        found.append(f"{name!r}: not NFC")
    if name[-1] in ". " or name.split(".")[0].casefold() in DEVICES:
        found.append(f"{name!r}: not on Windows")
    if len(name.rsplit(".", 1)[0].encode()) > 120:
        found.append(f"{name!r}: stem longer than 120 bytes")
    return found


def split_note(text: str) -> tuple[dict[str, Any], str]:
    """Properties and body. ValueError says why they cannot be read."""
    if text.startswith("\ufeff") or not text.startswith("---\n"):
        raise ValueError("no properties on line 1")
    end = text.find("\n---\n", 3)
    if end < 0:
        raise ValueError("properties are not closed")
    try:
        data = YAML(typ="safe", pure=True).load(text[4 : end + 1])
    except YAMLError as error:
        raise ValueError(f"properties: {error}") from error
    if not isinstance(data, dict):
        raise ValueError("properties are no mapping")
    return data, text[end + 5 :]


def outside_fences(body: str) -> Iterator[str]:
    """The lines that are in no fenced block."""
    fence = ""
    for line in body.split("\n"):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        else:
            yield line


def check_note(text: str) -> list[str]:
    """What is wrong with a note."""
    if "\r" in text or "\0" in text:
        return ["CR or NUL in the file"]
    try:
        data, body = split_note(text)
    except ValueError as error:
        return [str(error)]
    return [*_check_properties(data), *_check_regions(body)]


def _check_properties(data: dict[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if not key.startswith("ab_") and key not in ALLOWED:
            yield f"property {key}: not one of ours"
        if key in LISTS and not isinstance(value, list):
            yield f"property {key}: must be a list"
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict | list):
                yield f"property {key}: nested"
            elif isinstance(item, str) and "\n" in item:
                yield f"property {key}: more than one line"


def _check_regions(body: str) -> Iterator[str]:
    opened, seen = "", set()
    for line in outside_fences(body):
        mark = MARKER.match(line)
        if mark is None:
            if "agent-bus:begin" in line or "agent-bus:end" in line:
                yield f"marker not understood: {line!r}"
            continue
        kind, name, rev = mark.groups()
        if kind == "begin":
            if opened or name in seen or rev is None:
                yield f"region {name} begins wrongly"
            opened = name
            seen.add(name)
        else:
            if name != opened:
                yield f"end of {name} without its begin"
            opened = ""
    if opened:
        yield f"region {opened} is not closed"
