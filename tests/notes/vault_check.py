"""Whether Obsidian takes what lies in a vault: notes, bases, canvases, settings, names and links.

Each check gives a list of what is wrong; nothing is written.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

CORE_VIEWS = {"table", "cards", "list"}
BASE_KEYS = {"filters", "formulas", "properties", "summaries", "views"}
NODE_NEEDS = {"text": "text", "file": "file", "link": "url", "group": None}
SIDES = {"top", "right", "bottom", "left"}
ALLOWED_PROPERTIES = {"tags", "aliases", "cssclasses", "publish"}
LISTS = {"tags", "aliases", "cssclasses"}
DEVICE_NAMES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))}
OBSIDIAN_TYPES = {"text", "multitext", "number", "checkbox", "date", "datetime", "tags", "aliases"}
MARKER = re.compile(r"^%% agent-bus:(begin|end) ([a-z][a-z0-9-]*)(?: rev=(\d+))? %%$")
BLOCK_ID = re.compile(r" \^([A-Za-z0-9-]+)$")
LINK = re.compile(r"(!?)\[\[([^\[\]|#]*)(?:#([^\[\]|]*))?(?:\|[^\[\]]*)?\]\]")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
FORBIDDEN_IN_TEMPLATE = re.compile(
    r"(^|/)(workspace(-mobile)?|graph|hotkeys|community-plugins)\.json$|(^|/)(plugins|themes)/|(^|/)\.trash/"
    r"|\.DS_Store$|\.(tmp|lock)$|sync-conflict|onflicted copy"
)


# --- names -----------------------------------------------------------------------------------


def check_name(name: str) -> list[str]:
    """A file or folder name that every desktop, phone and sync service accepts."""
    found = []
    if re.search(r'[\\/:*?"<>|#^\[\]\x00-\x1f]|%%', name):
        found.append(f"name {name!r}: forbidden character")
    if name != unicodedata.normalize("NFC", name):
        found.append(f"name {name!r}: not NFC")
    if name[-1] in ". ":
        found.append(f"name {name!r}: ends in a dot or space")
    if name.split(".")[0].casefold() in DEVICE_NAMES:
        found.append(f"name {name!r}: device name on Windows")
    if len(name.rsplit(".", 1)[0].encode()) > 120:
        found.append(f"name {name!r}: stem longer than 120 bytes")
    return found


# --- frontmatter and notes -------------------------------------------------------------------


def load_yaml(text: str) -> Any:
    """YAML 1.2; duplicate keys are an error."""
    return YAML(typ="safe", pure=True).load(text)


def split_note(text: str) -> tuple[dict[str, Any], str]:
    """(properties, body). ValueError says why the block cannot be read."""
    if text.startswith("\ufeff"):
        raise ValueError("byte order mark")
    if not text.startswith("---\n"):
        if re.match(r"\s+---\s", text):
            raise ValueError("frontmatter does not start on line 1")
        return {}, text
    end = text.find("\n---\n", 3)
    if end < 0:
        raise ValueError("frontmatter is not closed")
    try:
        data = load_yaml(text[4 : end + 1])
    except YAMLError as error:
        raise ValueError(f"frontmatter: {str(error).splitlines()[0]}") from error
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ValueError("frontmatter is not a mapping")
    return data, text[end + 5 :]


def outside_fences(body: str) -> Iterator[str]:
    """Lines of the body that are not in a fenced code block."""
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


def check_properties(data: dict[str, Any]) -> list[str]:
    found = []
    for key, value in data.items():
        if not isinstance(key, str):
            found.append(f"property {key!r}: not text")
            continue
        if not key.startswith("ab_") and key not in ALLOWED_PROPERTIES:
            found.append(f"property {key}: outside ab_*")
        items = value if isinstance(value, list) else [value]
        if key in LISTS and not isinstance(value, list):
            found.append(f"property {key}: must be a list")
        for item in items:
            if isinstance(item, (dict, list)):
                found.append(f"property {key}: nested (an unquoted link?)")
            elif isinstance(item, str) and "\n" in item:
                found.append(f"property {key}: more than one line")
    return found


def check_regions(body: str) -> list[str]:
    """Markers are whole lines, paired, not nested, each name once."""
    found, open_name, seen = [], "", set()
    for line in outside_fences(body):
        mark = MARKER.match(line)
        if not mark:
            if "agent-bus:begin" in line or "agent-bus:end" in line:
                found.append(f"marker not understood: {line!r}")
            continue
        kind, name, rev = mark.groups()
        if kind == "begin":
            if open_name:
                found.append(f"region {name} opens inside {open_name}")
            if name in seen:
                found.append(f"region {name} twice")
            if rev is None:
                found.append(f"region {name}: no rev")
            open_name = name
            seen.add(name)
        else:
            if name != open_name:
                found.append(f"end of {name} without its begin")
            open_name = ""
    if open_name:
        found.append(f"region {open_name} is not closed")
    return found


def check_note(text: str) -> list[str]:
    if "\r" in text or "\0" in text:
        return ["CR or NUL in the file"]
    try:
        data, body = split_note(text)
    except ValueError as error:
        return [str(error)]
    found = check_properties(data) + check_regions(body)
    ids = [m[1] for line in outside_fences(body) if (m := BLOCK_ID.search(line))]
    found += [f"block id ^{i} twice" for i in sorted({i for i in ids if ids.count(i) > 1})]
    if re.search(r"^(<{7}|>{7}) ", text, re.M):
        found.append("merge conflict markers")
    return found


# --- .base -----------------------------------------------------------------------------------


def check_filter(node: Any, where: str) -> list[str]:
    if isinstance(node, str):
        return [] if node.strip() else [f"{where}: empty filter"]
    if not isinstance(node, dict):
        return [f"{where}: must be text or an object"]
    if len(node) != 1 or not set(node) <= {"and", "or", "not"}:
        return [f"{where}: exactly one of and, or, not"]
    key, value = next(iter(node.items()))
    if not isinstance(value, list):
        return [f"{where}.{key}: must be a list"]
    return [m for i, item in enumerate(value) for m in check_filter(item, f"{where}.{key}[{i}]")]


def check_view(view: Any, index: int, formulas: dict[str, Any]) -> list[str]:
    if not isinstance(view, dict):
        return [f"view {index}: not an object"]
    name, found = view.get("name"), []
    where = f"view {name!r}"
    if not isinstance(name, str) or not name:
        found.append(f"view {index}: needs a name")
    elif re.search(r"[#^|\[\]]", name):
        found.append(f"{where}: character that breaks embeds")
    if view.get("type") not in CORE_VIEWS:
        found.append(f"{where}: type {view.get('type')!r} is not a core view")
    if "filters" in view:
        found += check_filter(view["filters"], where)
    order = view.get("order", [])
    if not isinstance(order, list):
        found.append(f"{where}: order must be a list")
        order = []
    sort, group = view.get("sort", []), view.get("groupBy")
    parts = [*(sort if isinstance(sort, list) else [sort]), *([group] if group else [])]
    if not all(isinstance(p, dict) for p in parts):
        return [*found, f"{where}: sort and groupBy hold objects with property and direction"]
    for item in [*order, *(p.get("property") for p in parts)]:
        if not isinstance(item, str):
            found.append(f"{where}: order and sort hold property names")
        elif item.startswith("formula.") and item[8:] not in formulas:
            found.append(f"{where}: {item} is not defined")
        elif item in ("file.ctime", "file.backlinks", "file.properties"):
            found.append(f"{where}: {item} is not to be used")
    for part in parts:
        if part.get("direction") not in ("ASC", "DESC"):
            found.append(f"{where}: direction must be ASC or DESC")
    if group and group.get("property") in order:
        found.append(f"{where}: grouped property is also in order")
    if "limit" in view and type(view["limit"]) is not int:
        found.append(f"{where}: limit must be an integer")
    return found


def check_base(text: str) -> list[str]:
    try:
        data = load_yaml(text)
    except YAMLError as error:
        return [str(error).splitlines()[0]]
    if not isinstance(data, dict):
        return ["not a mapping"]
    found = [f"unknown key {k}" for k in data if k not in BASE_KEYS]
    formulas = data.get("formulas") or {}
    found += [f"formula {k}: must be text" for k, v in formulas.items() if not isinstance(v, str)]
    found += [
        f"property {k}: needs note., file. or formula. in front"
        for k in data.get("properties") or {}
        if not re.match(r"(note|file|formula)\.", k)
    ]
    if "filters" in data:
        found += check_filter(data["filters"], "filters")
    views = data.get("views")
    if not isinstance(views, list) or not views:
        return [*found, "views must be a list with at least one view"]
    names = [v.get("name") for v in views if isinstance(v, dict)]
    found += [f"view {n!r} twice" for n in {n for n in names if names.count(n) > 1}]
    return found + [m for i, v in enumerate(views) for m in check_view(v, i, formulas)]


# --- .canvas ---------------------------------------------------------------------------------


def check_canvas(text: str) -> list[str]:
    try:
        data = json.loads(text)
    except ValueError as error:
        return [str(error)]
    if not isinstance(data, dict):
        return ["not an object"]
    cards, arrows = data.get("nodes", []), data.get("edges", [])
    if not all(isinstance(part, list) and all(isinstance(x, dict) for x in part) for part in (cards, arrows)):
        return ["nodes and edges must be lists of objects"]
    found, ids, nodes = [], set(), set()
    for node in cards:
        name = node.get("id")
        if not isinstance(name, str) or name in ids:
            found.append(f"node id {name!r}: missing or twice")
        ids.add(name)
        nodes.add(name)
        found += [
            f"node {name}: {k} must be an integer"
            for k in ("x", "y", "width", "height")
            if type(node.get(k)) is not int
        ]
        if node.get("type") not in NODE_NEEDS:
            found.append(f"node {name}: unknown type")
        elif (need := NODE_NEEDS[node["type"]]) and not isinstance(node.get(need), str):
            found.append(f"node {name}: needs {need}")
        if "color" in node and not re.fullmatch(r"[1-6]|#[0-9A-Fa-f]{6}", str(node["color"])):
            found.append(f"node {name}: color")
    for edge in arrows:
        name = edge.get("id")
        if not isinstance(name, str) or name in ids:
            found.append(f"edge id {name!r}: missing or twice")
        ids.add(name)
        found += [f"edge {name}: {k} leads nowhere" for k in ("fromNode", "toNode") if edge.get(k) not in nodes]
        found += [f"edge {name}: {k}" for k in ("fromSide", "toSide") if k in edge and edge[k] not in SIDES]
    return found


# --- settings, links, the tree ---------------------------------------------------------------


def check_types(text: str) -> list[str]:
    types = json.loads(text).get("types", {})
    found = [f"type of {k}: {v!r} is unknown" for k, v in types.items() if v not in OBSIDIAN_TYPES]
    return found + [f"type of {k}: not ours" for k in types if not k.startswith("ab_") and k not in LISTS]


def check_links(root: Path, files: list[Path]) -> list[str]:
    """Every wikilink, embed, view name and canvas file exists, and a bare name means one file only."""
    by_name: dict[str, list[Path]] = {}
    for path in files:
        by_name.setdefault(path.name.casefold(), []).append(path)
        if path.suffix == ".md":
            by_name.setdefault(path.stem.casefold(), []).append(path)
    found = []
    for path in files:
        where = path.relative_to(root)
        text = path.read_text("utf-8")
        if path.suffix == ".canvas":
            found += [
                f"{where}: no file {n['file']}"
                for n in json.loads(text).get("nodes", [])
                if n.get("type") == "file" and not (root / n["file"]).is_file()
            ]
        if path.suffix != ".md":
            continue
        for _, target, part in LINK.findall(re.sub(r"`[^`\n]*`", "", "\n".join(outside_fences(text)))):
            if not target or "{{" in target:
                continue
            hits = by_name.get(target.casefold().rsplit("/", 1)[-1], [])
            if len(hits) != 1:
                found.append(f"{where}: [[{target}]] means {len(hits)} files")
            elif part and hits[0].suffix == ".base":
                views = [v.get("name") for v in load_yaml(hits[0].read_text("utf-8"))["views"]]
                if part not in views:
                    found.append(f"{where}: {target} has no view {part!r}")
    return found


CHECKS = {".md": check_note, ".base": check_base, ".canvas": check_canvas}


def check_tree(root: Path, template: bool = False) -> list[str]:
    found: list[str] = []
    files = [
        p
        for p in sorted(root.rglob("*"))
        if p.is_file() and p.suffix not in (".py", ".pyc") and ".bus" not in p.relative_to(root).parts
    ]
    seen: dict[str, str] = {}
    for path in files:
        where = str(path.relative_to(root))
        found += [f"{where}: {m}" for part in path.relative_to(root).parts for m in check_name(part)]
        key = unicodedata.normalize("NFKC", where).casefold()
        if key in seen:
            found.append(f"{where}: differs from {seen[key]} only in case or form")
        seen[key] = where
        if len(where) > 200:
            found.append(f"{where}: path longer than 200 characters")
        if template and FORBIDDEN_IN_TEMPLATE.search(where):
            found.append(f"{where}: must not be in a template")
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            found.append(f"{where}: not UTF-8")
            continue
        if check := CHECKS.get(path.suffix):
            found += [f"{where}: {m}" for m in check(text)]
        elif path.suffix == ".json":
            try:
                json.loads(text)
            except ValueError as error:
                found.append(f"{where}: {error}")
                continue
            if path.name == "types.json":
                found += [f"{where}: {m}" for m in check_types(text)]
    return found or check_links(root, files)


# --- proof that bad files are refused ---------------------------------------------------------

BAD = [
    (check_name, "a:b.md"),
    (check_name, "x [1].md"),
    (check_name, "con.md"),
    (check_name, "end. "),
    (check_name, "あ" * 41 + ".md"),
    (check_name, unicodedata.normalize("NFD", "ガ.md")),
    (check_note, "\ufeff---\nab_kind: task\n---\n"),
    (check_note, "\n---\nab_kind: task\n---\n"),
    (check_note, "---\nab_kind: task\n"),
    (check_note, "---\nab_a: 1\nab_a: 2\n---\n"),
    (check_note, "---\nab_next: [[x]]\n---\n"),
    (check_note, "---\nstatus: x\n---\n"),
    (check_note, "---\ntags: x\n---\n"),
    (check_note, "%% agent-bus:begin a rev=1 %%\n"),
    (check_note, "%% agent-bus:end a %%\n"),
    (check_note, "%% agent-bus:begin a rev=1 %%\n%% agent-bus:begin b rev=1 %%\n%% agent-bus:end b %%\n"),
    (check_note, "- [ ] x ^go\n- [ ] y ^go\n"),
    (check_note, "<<<<<<< HEAD\n"),
    (check_note, "a\r\n"),
    (check_base, "views: {}\n"),
    (check_base, "views:\n  - {type: kanban, name: x}\n"),
    (check_base, "views:\n  - {type: table, name: x}\n  - {type: list, name: x}\n"),
    (check_base, "filters: {and: [], or: []}\nviews:\n  - {type: table, name: x}\n"),
    (check_base, "filters: {and: a}\nviews:\n  - {type: table, name: x}\n"),
    (check_base, "properties: {ab_to: {displayName: x}}\nviews:\n  - {type: table, name: x}\n"),
    (check_base, "views:\n  - {type: table, name: x, order: [formula.gone]}\n"),
    (check_base, "views:\n  - {type: table, name: x, order: [file.ctime]}\n"),
    (check_base, "views:\n  - {type: table, name: x, groupBy: {property: note.a, direction: UP}}\n"),
    (check_canvas, '{"nodes":[{"id":"a","type":"text","text":"x","x":0.5,"y":0,"width":1,"height":1}]}'),
    (check_canvas, '{"nodes":[{"id":"a","type":"file","x":0,"y":0,"width":1,"height":1}]}'),
    (check_canvas, '{"nodes":[],"edges":[{"id":"e","fromNode":"a","toNode":"b"}]}'),
    (check_canvas, "{"),
    (check_canvas, '{"nodes":[1]}'),
    (check_base, "views:\n  - {type: table, name: x, sort: note.a}\n"),
]
GOOD = [
    (
        check_note,
        "---\nab_a: no\nab_b: 0123\nab_c: 10:30\n---\n````text\n```\n- [x] y ^go\n%% agent-bus:begin q %%\n````\n"
        "- [ ] z ^go\n",
    ),
    (check_name, "t-20261201-093000-001.md"),
    (check_name, "ナナ.md"),
]


def self_test() -> list[str]:
    return [f"accepted: {check.__name__} {sample!r}" for check, sample in BAD if not check(sample)] + [
        f"refused: {check.__name__} {sample!r}: {check(sample)}" for check, sample in GOOD if check(sample)
    ]
