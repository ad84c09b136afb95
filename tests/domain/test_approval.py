"""The approval gate: what it stops, what it lets pass, and what its record is worth."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bus.domain.approval import (
    Hit,
    WordLists,
    denied,
    fingerprint,
    granted,
    requested,
    scan,
    still_valid,
)

HERE = Path(__file__).parent
LISTS = WordLists.build()
ZERO_WIDTH = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\U000e0041"]


def lines(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def risky() -> list[tuple[str, str]]:
    pairs = (line.split("\t", 1) for line in lines("risky.txt"))
    return [(category, text.replace("\\n", "\n")) for category, text in pairs]


def categories(text: str, lists: WordLists = LISTS) -> set[str]:
    return {hit.category for hit in scan(text, lists)}


@pytest.mark.req("core:30")
@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("支払いを実行して", Hit("支払い実行", "money")),
        ("delete the production database", Hit("delete production", "deletion")),
        ("supprimer la base", Hit("supprimer base", "deletion")),
        ("删除所有文件", Hit("删除文件", "deletion")),
        ("lösche alle Dateien", Hit("löschen datei", "deletion")),
        ("paga la factura", Hit("pagar factura", "money")),
    ],
)
def test_the_handed_examples_are_stopped_with_term_and_category(text: str, hit: Hit) -> None:
    assert scan(text, LISTS) == (hit,)


@pytest.mark.req("core:31")
@pytest.mark.parametrize(
    "text",
    [
        "fix issue 12 in Format-Table",
        "rename deleted_at column",
        "explain the source",
        "refresh the payload parser",
    ],
)
def test_the_handed_ordinary_work_passes(text: str) -> None:
    assert scan(text, LISTS) == ()


def test_the_corpora_are_large_enough_to_mean_something() -> None:
    assert len(lines("corpus.txt")) >= 200
    assert len(risky()) >= 150


@pytest.mark.parametrize("text", lines("corpus.txt"))
def test_ordinary_programming_work_passes(text: str) -> None:
    assert scan(text, LISTS) == ()


@pytest.mark.parametrize(("category", "text"), risky())
def test_risky_work_is_stopped_under_its_category(category: str, text: str) -> None:
    assert category in categories(text)


@pytest.mark.parametrize(("category", "text"), risky())
def test_capitals_change_nothing(category: str, text: str) -> None:
    if "x -delete" not in text and "prod-db" not in text:
        assert category in categories(text.upper())


def test_ordinary_lines_joined_into_one_text_still_pass() -> None:
    assert scan("\n".join(lines("corpus.txt")), LISTS) == ()


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_fenced_code_hides_money_but_never_deletion(fence: str) -> None:
    text = f"look at this:\n{fence}text\npay the invoice\ndelete the database\n{fence}\nthanks"
    assert categories(text) == {"deletion"}


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert categories("```\npay the invoice") == {"money"}
    assert categories("````\npay the invoice\n```") == {"money"}


def test_money_outside_the_fence_is_still_seen() -> None:
    assert categories("```\nx = 1\n```\npay the invoice") == {"money"}


def test_each_term_is_named_once_and_in_a_stable_order() -> None:
    text = "pay the invoice. delete the database. DELETE the databases. rm -rf x. pay the invoices."
    assert scan(text, LISTS) == (
        Hit("delete database", "deletion"),
        Hit("rm -rf", "deletion"),
        Hit("pay invoice", "money"),
    )


def test_added_words_count_alone_with_their_endings_but_not_inside_other_words() -> None:
    lists = WordLists.build({"legal": ["sue"]})
    for text in ("sue them", "he sues them", "they sued", "suing them"):
        assert scan(text, lists) == (Hit("sue", "legal"),)
    for text in ("the issue", "pursue it", "call sue_all()", "SueHandler", "tissue-box"):
        assert scan(text, lists) == ()


def test_added_words_may_join_a_shipped_category_or_be_more_than_one_word_or_not_latin() -> None:
    lists = WordLists.build({"money": ["stripe"], "secrets": ["api key", "秘密", "Clé privée"]})
    assert scan("call Stripe", lists) == (Hit("stripe", "money"),)
    assert categories("```\ncall stripe\n```", lists) == set()
    assert categories("rotate the  API\u00a0key", lists) == {"secrets"}
    assert categories("the api keyboard", lists) == set()
    assert categories("この秘密を見せて", lists) == {"secrets"}
    assert categories("affiche la cle privee", lists) == {"secrets"}


def test_an_added_word_of_blanks_is_nothing() -> None:
    assert scan("any text", WordLists.build({"x": ["", "  ", "\u200b"]})) == ()


@pytest.mark.parametrize("off", ["delete", "DATABASE", "Delete Database"])
def test_off_takes_away_a_verb_an_object_or_a_pair_whatever_its_case(off: str) -> None:
    assert scan("delete the database", WordLists.build(off=[off])) == ()
    assert categories("wipe the disk", WordLists.build(off=[off])) == {"deletion"}


@pytest.mark.parametrize(
    ("text", "off"),
    [("rm -rf /", "rm -rf"), ("lösche die Datenbank", "LÖSCHEN"), ("删除所有文件", "文件"), ("sue", "Sue")],
)
def test_off_takes_away_commands_accented_cjk_and_added_words(text: str, off: str) -> None:
    assert scan(text, WordLists.build({"legal": ["sue"]}))
    assert scan(text, WordLists.build({"legal": ["sue"]}, off=[off])) == ()


@given(st.text(max_size=400))
def test_scan_never_raises_on_any_text(text: str) -> None:
    scan(text, LISTS)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=100))
def test_scan_never_raises_on_lone_surrogates(text: str) -> None:
    scan(text, LISTS)


@given(st.lists(st.sampled_from([text for _, text in risky()] + ["\n", "```", ". ", "the", "not "]), max_size=8))
def test_scan_never_raises_on_pieces_of_risky_texts(pieces: list[str]) -> None:
    hits = scan(" ".join(pieces), LISTS)
    assert len(set(hits)) == len(hits)


@given(
    st.sampled_from([text for _, text in risky()] + lines("corpus.txt") + ["~~~\npay the bill\n~~~"]),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(ZERO_WIDTH)), max_size=12),
)
def test_zero_width_characters_change_nothing(text: str, inserted: list[tuple[int, str]]) -> None:
    laced = text
    for at, character in inserted:
        laced = laced[:at] + character + laced[at:]
    assert scan(laced, LISTS) == scan(text, LISTS)


HOSTILE = [
    *(
        "delete ",
        "delete the all old ",
        "pay $ ",
        "a",
        "`",
        "```\n",
        " ",
        "rm -a -b ",
        "dd a=b c=d ",
        "find ",
    ),
    *("-a", "delete/", "drop the a b ", "git push ", "remove-item ", "a\u0300", "d\u200b"),
    *("把删除", "把数据库", "删除", "给", "全", "データベースを"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_text_of_the_greatest_length_is_scanned_in_linear_time(piece: str) -> None:
    text = (piece * (200_000 // len(piece) + 1))[:200_000]
    assert scan(text, LISTS) == scan(text[:2_000], LISTS)


def test_a_fingerprint_depends_on_each_of_instruction_context_and_target_and_not_on_key_order() -> None:
    base = fingerprint("do it", {"a": 1, "b": "é"}, "coder")
    assert len(base) == 64
    assert int(base, 16) >= 0
    assert fingerprint("do it", {"b": "é", "a": 1}, "coder") == base
    others = {
        fingerprint("do it ", {"a": 1, "b": "é"}, "coder"),
        fingerprint("do it", {"a": 1, "b": "e"}, "coder"),
        fingerprint("do it", None, "coder"),
        fingerprint("do it", '{"a":1,"b":"é"}', "coder"),
        fingerprint("do it", {"a": 1, "b": "é"}, "boss"),
    }
    assert base not in others
    assert len(others) == 5


def test_a_fingerprint_is_the_sha256_of_canonical_json() -> None:
    known = hashlib.sha256(b'["x",null,"coder"]').hexdigest()
    assert fingerprint("x", None, "coder") == known


def test_a_fingerprint_takes_lone_surrogates_and_refuses_what_is_no_json() -> None:
    assert len(fingerprint("\ud800", None, "coder")) == 64
    with pytest.raises(TypeError):
        fingerprint("x", object(), "coder")


def test_a_request_names_terms_and_categories_once() -> None:
    hits = scan("delete the database, then wipe the disk and pay the invoice", LISTS)
    assert requested(hits, "2030-01-02T03:04:05.000Z") == {
        "state": "requested",
        "terms": ["delete database", "wipe disk", "pay invoice"],
        "categories": ["deletion", "money"],
        "at": "2030-01-02T03:04:05.000Z",
    }


@pytest.mark.req("core:32")
def test_a_grant_says_who_when_and_how_and_holds_only_for_its_text() -> None:
    asked = requested(scan("delete the database", LISTS), "t0")
    text = fingerprint("delete the database", None, "coder")
    record = granted(asked, "ann", "t1", "cli", text)
    assert {k: record[k] for k in ("by", "at", "channel", "sha256")} == {
        "by": "ann",
        "at": "t1",
        "channel": "cli",
        "sha256": text,
    }
    assert record["terms"] == ["delete database"]
    assert still_valid(record, text)
    assert not still_valid(record, fingerprint("delete the database!", None, "coder"))
    assert asked["state"] == "requested"


def test_only_a_grant_opens_the_gate() -> None:
    asked = requested((), "t0")
    assert not still_valid(None, "s")
    assert not still_valid({}, "s")
    assert not still_valid(asked, "s")
    assert not still_valid(denied(asked, "ann", "t1", "cli", "s"), "s")
    assert still_valid(granted(asked, "ann", "t1", "cli", "s"), "s")
