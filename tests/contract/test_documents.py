"""What every engine does with documents."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from agent_bus.errors import BusError
from agent_bus.store.codec import DOCUMENT_BYTES, parse
from agent_bus.store.port import Doc, Exists, Stale, Store

KEY = "inbox/coder/t-20260307-101500-001"
ARCHIVED = "archive/2026-03/t-20260307-101500-001"
BAD_KEYS = (
    "", "/", "x/", "/x", "../x", "a/../x", "a/..", ".", "..", "a//b", "a/./b", ".bus", ".bus/../x", ".bus/.x", ".x",
    "a/.x/b", "x\0", "a\0/b", "C:/x", "C:x", "a\\b", "..\\x", "/etc/passwd", "\\\\host\\share", "a.", "a./b", "a ",
    " a", "a /b", "a\nb", "a\x1fb", "a*", "a?", 'a"b', "a<b", "a>b", "a|b", "a:b", "n" * 241, "ナ" * 81,
    f"{'n' * 241}/x", "/".join(["n" * 100] * 11), "\ud800", "a/\udfff/b",
)  # fmt: skip


def test_get_of_nothing_is_none(store: Store) -> None:
    assert store.get(KEY) is None
    assert not store.exists(KEY)


def test_a_created_document_is_read_back_with_its_revision(store: Store, peer: Store) -> None:
    value = {"z": 1, "a": ["ナナ", None, True, 1.5, {"deep": {}}], "": ""}
    doc = store.create(KEY, value)
    assert peer.get(KEY) == doc == Doc(KEY, value, doc.rev)
    assert peer.exists(KEY)


def test_keys_keep_their_order_in_a_document(store: Store) -> None:
    store.create(KEY, {"z": 1, "a": 2, "m": 3})
    doc = store.get(KEY)
    assert doc is not None
    assert list(doc.value) == ["z", "a", "m"]


def test_create_of_a_taken_key_raises_exists_and_changes_nothing(store: Store, peer: Store) -> None:
    doc = store.create(KEY, {"n": 1})
    with pytest.raises(Exists):
        peer.create(KEY, {"n": 2})
    assert store.get(KEY) == doc


def test_replace_gives_the_next_value_and_a_new_revision(store: Store, peer: Store) -> None:
    doc = store.create(KEY, {"n": 1, "unknown": [1]})
    new = peer.replace(doc, {**doc.value, "n": 2})
    assert new.rev != doc.rev
    assert store.get(KEY) == Doc(KEY, {"n": 2, "unknown": [1]}, new.rev)


def test_a_stale_document_is_neither_replaced_nor_deleted_nor_moved(store: Store, peer: Store) -> None:
    old = store.create(KEY, {"n": 1})
    new = peer.replace(old, {"n": 2})
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.replace(old, {"n": 3}),
        lambda: store.delete(old),
        lambda: store.move(old, ARCHIVED, {"n": 3}),
    )
    for act in acts:
        with pytest.raises(Stale):
            act()
    assert store.get(KEY) == new
    assert not store.exists(ARCHIVED)


def test_a_deleted_document_is_gone_and_stale_for_everybody(store: Store, peer: Store) -> None:
    doc = store.create(KEY, {"n": 1})
    peer.delete(doc)
    assert store.get(KEY) is None
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.replace(doc, {}),
        lambda: store.delete(doc),
        lambda: store.move(doc, ARCHIVED, {}),
    )
    for act in acts:
        with pytest.raises(Stale):
            act()


def test_a_move_leaves_one_document_under_the_new_key(store: Store, peer: Store) -> None:
    doc = store.create(KEY, {"status": "pending"})
    moved = store.move(doc, ARCHIVED, {"status": "completed"})
    assert peer.get(KEY) is None
    assert peer.get(ARCHIVED) == moved == Doc(ARCHIVED, {"status": "completed"}, moved.rev)
    assert moved.rev != doc.rev


def test_a_move_onto_a_taken_key_raises_exists_and_changes_neither(store: Store) -> None:
    doc, taken = store.create(KEY, {"n": 1}), store.create(ARCHIVED, {"n": 2})
    with pytest.raises(Exists):
        store.move(doc, ARCHIVED, {"n": 3})
    assert (store.get(KEY), store.get(ARCHIVED)) == (doc, taken)


def test_the_slower_of_two_movers_is_stale_not_told_that_the_target_exists(store: Store, peer: Store) -> None:
    doc = store.create(KEY, {"n": 1})
    peer.move(doc, ARCHIVED, {"n": 2})
    with pytest.raises(Stale):
        store.move(doc, ARCHIVED, {"n": 2})


def test_a_move_to_its_own_key_is_a_replace(store: Store) -> None:
    doc = store.create(KEY, {"n": 1})
    new = store.move(doc, KEY, {"n": 2})
    assert new.rev != doc.rev
    assert store.get(KEY) == new


def test_a_move_keeps_the_name(store: Store) -> None:
    doc = store.create(KEY, {"n": 1})
    with pytest.raises(BusError) as error:
        store.move(doc, "archive/2026-03/other", {"n": 1})
    assert error.value.code == "invalid"
    assert store.get(KEY) == doc


def test_a_move_writes_a_value_that_was_changed_in_the_document_that_was_read(store: Store) -> None:
    doc = store.create(KEY, {"status": "pending"})
    doc.value["status"] = "completed"
    store.move(doc, ARCHIVED, doc.value)
    found = store.get(ARCHIVED)
    assert found is not None
    assert found.value == {"status": "completed"}


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False)])
def test_a_move_writes_values_that_only_python_calls_equal(store: Store, one: object, other: object) -> None:
    doc = store.create(KEY, {"n": one})
    store.move(doc, ARCHIVED, {"n": other})
    found = store.get(ARCHIVED)
    assert found is not None
    assert type(found.value["n"]) is type(other)


def test_no_revision_comes_back(store: Store) -> None:
    seen = set()
    for _ in range(20):
        doc = store.create(KEY, {"n": "a"})
        seen.add(doc.rev)
        doc = store.replace(doc, {"n": "b"})
        seen.add(doc.rev)
        doc = store.replace(doc, {"n": "a"})
        seen.add(doc.rev)
        doc = store.replace(doc, {"n": "a"})
        seen.add(doc.rev)
        doc = store.move(doc, ARCHIVED, {"n": "a"})
        seen.add(doc.rev)
        doc = store.move(doc, KEY, {"n": "a"})
        seen.add(doc.rev)
        store.delete(doc)
    assert len(seen) == 120


def test_a_value_is_not_shared_with_the_store(store: Store) -> None:
    value: dict[str, Any] = {"list": [1]}
    store.create(KEY, value)
    value["list"].append(2)
    found = store.get(KEY)
    assert found is not None
    assert found.value == {"list": [1]}
    found.value["list"].append(3)
    again = store.get(KEY)
    assert again is not None
    assert again.value == {"list": [1]}


def test_keys_and_list_are_in_key_order_and_only_of_the_prefix(store: Store) -> None:
    names = ["b", "a", "a.1", "a-1", "a0", "A", "ナ", "a b"]
    for name in names:
        store.create(f"inbox/x/{name}", {"name": name})
    store.create("inbox/x/sub/a", {})
    store.create("inbox/xy/a", {})
    store.create("inbox/c", {})
    assert list(store.keys("inbox/x")) == [f"inbox/x/{name}" for name in sorted(names)]
    assert [doc.value["name"] for doc in store.list("inbox/x")] == sorted(names)
    assert list(store.keys("inbox")) == ["inbox/c"]
    assert list(store.keys("nothing/here")) == []
    assert list(store.list("nothing/here")) == []


def test_folders_are_the_names_directly_below(store: Store) -> None:
    for key in ("inbox/b/x", "inbox/a/x", "inbox/a/deep/x", "inbox/top", ".bus/rooms/r/messages/000001"):
        store.create(key, {})
    assert list(store.folders("inbox")) == ["a", "b"]
    assert list(store.folders(".bus/rooms")) == ["r"]
    assert list(store.folders("nothing")) == []


def test_the_state_side_and_the_archive_are_keys_like_any_other(store: Store) -> None:
    for key in (".bus/ledger/20260307/t-1", "archive/2026-03/t-1", "top"):
        doc = store.create(key, {"key": key})
        assert store.get(key) == doc


@pytest.mark.parametrize("key", BAD_KEYS)
def test_what_is_no_key_is_invalid_everywhere(store: Store, key: str) -> None:
    doc = store.create(KEY, {"n": 1})
    forged = Doc(key, {}, doc.rev)
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.get(key),
        lambda: store.exists(key),
        lambda: store.create(key, {}),
        lambda: store.replace(forged, {}),
        lambda: store.delete(forged),
        lambda: store.move(forged, ARCHIVED, {}),
        lambda: store.move(doc, key, {}),
    )
    for act in acts:
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "invalid"
        str(error.value).encode()
    assert store.get(KEY) == doc


@pytest.mark.parametrize("prefix", [key for key in BAD_KEYS if key != ".bus"])
def test_what_is_no_prefix_is_invalid(store: Store, prefix: str) -> None:
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.keys(prefix),
        lambda: list(store.list(prefix)),
        lambda: store.folders(prefix),
        lambda: store.feed(prefix).poll(),
    )
    for act in acts:
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "invalid"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


BAD_VALUES = {
    "a lone surrogate": {"text": "\ud800"},
    "a lone surrogate in a key": {"\udfff": 1},
    "NaN": {"n": math.nan},
    "infinity": {"n": [-math.inf]},
    "240 levels": nested(240),
    "100,000 levels": nested(100_000),
    "a number of 5,000 digits": {"n": 10**5000},
    "no JSON": {"n": object()},
}


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES.keys())
def test_what_could_not_be_read_again_is_invalid_and_nothing_is_written(store: Store, value: dict[str, Any]) -> None:
    doc = store.create(KEY, {"n": 1})
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.create("inbox/coder/new", value),
        lambda: store.replace(doc, value),
        lambda: store.move(doc, ARCHIVED, value),
    )
    for act in acts:
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "invalid"
    assert store.get(KEY) == doc
    assert list(store.keys("inbox/coder")) == [KEY]


@pytest.mark.parametrize("value", [{"text": "NaN Infinity {{{[[["}, {"text": "[{" * 500}, nested(150), {"n": 10**400}])
def test_what_only_looks_doubtful_is_kept(store: Store, value: dict[str, Any]) -> None:
    store.create(KEY, value)
    found = store.get(KEY)
    assert found is not None
    assert found.value == value


def test_a_document_over_the_limit_is_too_large_with_both_numbers(store: Store) -> None:
    doc = store.create(KEY, {"n": 1})
    big = {"text": "x" * DOCUMENT_BYTES}
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.create("inbox/coder/new", big),
        lambda: store.replace(doc, big),
        lambda: store.move(doc, ARCHIVED, big),
    )
    for act in acts:
        with pytest.raises(BusError) as error:
            act()
        assert error.value.code == "too_large"
        assert str(DOCUMENT_BYTES) in error.value.message
    assert store.get(KEY) == doc
    assert list(store.keys("inbox/coder")) == [KEY]


def test_a_document_at_the_limit_is_kept(store: Store) -> None:
    room = DOCUMENT_BYTES - len(b'{\n  "text": ""\n}\n')
    doc = store.create(KEY, {"text": "x" * room})
    assert store.get(KEY) == doc
    with pytest.raises(BusError):
        store.replace(doc, {"text": "x" * (room + 1)})


def test_the_parser_takes_bom_and_crlf() -> None:
    assert parse("k", b'\xef\xbb\xbf{\r\n  "a": 1\r\n}\r\n') == {"a": 1}
