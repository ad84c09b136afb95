"""The text edits for any document: what is put in comes out again, and the rest stays."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_bus.clients import Client, Server, documents, entries, registry
from agent_bus.clients.hunks import Hunk, apply, difference, track, without
from agent_bus.clients.jsonc import BrokenText, parse

SERVER = Server("/opt/a b/agent-bus", ("mcp", "--root", 'v "q" & \\ 日本', "--agent", "x"))
_keys = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=6)
_plain = st.none() | st.booleans() | st.integers(-9, 9999) | st.text(st.characters(codec="utf-8"), max_size=9)
_values = st.recursive(
    _plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3), max_leaves=8
)
_gaps = st.sampled_from(["", " ", "\n", "\n\t", "\r\n   ", "\n\n  "])
_remarks = st.sampled_from(["", "", ' // a "remark", with {signs}\n', "/* one */", "\n/* two\n lines */ "])


@st.composite
def json_texts(draw: st.DrawFn, lenient: bool) -> str:
    """A document whose top is an object, in any layout; with remarks and trailing commas if it may have them."""

    def gap() -> str:
        return draw(_gaps) + (draw(_remarks) + draw(_gaps) if lenient else "")

    def write(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + parts([f"{json.dumps(k)}{gap()}:{gap()}{write(v)}" for k, v in value.items()]) + "}"
        if isinstance(value, list):
            return "[" + parts([write(one) for one in value]) + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def parts(found: list[str]) -> str:
        inner = ",".join(f"{gap()}{one}{gap()}" for one in found)
        return inner + ("," + gap() if lenient and found and draw(st.booleans()) else "") if found else gap()

    top = draw(st.dictionaries(_keys, _values, max_size=3))
    if draw(st.booleans()):
        top["mcpServers"] = {key: {"command": key} for key in draw(st.sets(st.sampled_from("abc")))}
    return draw(st.sampled_from(["", "\ufeff"])) + gap() + write(top) + gap()


def round_trip(client: Client, text: str) -> None:
    planned = entries.plan_entry(client, text, SERVER, "bus", False, False)
    after = apply(text, planned.hunks)
    spans = track([], planned.hunks)
    assert spans is not None, "only insertions"
    assert without(after, spans) == text
    found = documents.parse(after, client.format)
    assert documents.value(found, planned.keys) == client.entry(SERVER, client.place(found))
    assert entries.plan_entry(client, after, SERVER, "bus", False, False).what == "unchanged"
    removal = entries.plan_removal(client, after)
    bare = documents.parse(apply(after, removal.hunks), client.format)
    before = documents.parse(text, client.format)
    if documents.value(bare, client.servers) == {} != documents.value(before, client.servers):
        bare.pop(client.servers[0])
    assert bare == before


@pytest.mark.req("clients:31")
@settings(max_examples=80, deadline=None)
@given(text=json_texts(lenient=True))
def test_any_jsonc_document_keeps_every_character(text: str) -> None:
    round_trip(registry.load("gemini"), text)


@pytest.mark.req("clients:31")
@settings(max_examples=50, deadline=None)
@given(text=json_texts(lenient=False))
def test_any_strict_json_document_keeps_every_character(text: str) -> None:
    round_trip(registry.load("claude-code"), text)


_TABLES = (
    '[mcp_servers.one]\ncommand = "a"\n',
    '[mcp_servers.two] # remark\nargs = [\n  "x", # [not.a.header]\n  [1]\n]\n',
    "[profiles.p]\ntext = '''\n[mcp_servers.bus]\n'''\n",
    '[[hooks]]\nname = "h"\n',
    "# a remark\n[mcp_servers]\n",
    "[mcp_servers.two.tools.t]\na = 1\n",
)


@pytest.mark.req("clients:31")
@settings(max_examples=60, deadline=None)
@given(
    tables=st.lists(st.sampled_from(_TABLES), unique=True, max_size=5),
    gaps=st.lists(st.sampled_from(["", "\n", "# between\n", "\n\n"]), min_size=6, max_size=6),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    end=st.booleans(),
)
def test_any_toml_document_keeps_every_character(
    tables: list[str], gaps: list[str], newline: str, mark: str, end: bool
) -> None:
    text = mark + ("a = 1\n" + "".join(a + b for a, b in zip(gaps, tables, strict=False))).replace("\n", newline)
    text = text if end else text.rstrip("\r\n")
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return
    round_trip(registry.load("codex"), text)


@settings(max_examples=200, deadline=None)
@given(old=st.text("ab\n", max_size=12), new=st.text("ab\n", max_size=12))
def test_a_difference_makes_the_new_text(old: str, new: str) -> None:
    assert apply(old, difference(old, new)) == new


def test_spans_follow_what_is_put_beside_and_into_them() -> None:
    spans = track([], [Hunk(4, 4, "OURS")])
    assert spans == [(4, 4)]
    assert track(spans, [Hunk(0, 0, "xx"), Hunk(6, 7, "abc")]) == [(0, 2), (6, 6)]
    assert track(spans, [Hunk(0, 1, "")]) is None, "text of somebody else was cut"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 01}', 1, 8),
        ('{\n "a": "\n"}', 2, 7),
        ("{'a': 1}", 1, 2),
        ('{"a": 1} x', 1, 10),
        ("[1 2]", 1, 4),
        ("", 1, 1),
    ],
)
def test_a_broken_document_is_named_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(BrokenText) as caught:
        parse(text, False)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_deep_nesting_is_no_crash() -> None:
    with pytest.raises(BrokenText, match="deep"):
        parse("[" * 100_000, True)
