"""Our block in a file of the user: in, replaced, out, and every other character as it was."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_bus.clients.roles.block import BEGIN, END, find_block, put_block, take_block
from agent_bus.errors import BusError

ONE = f"{BEGIN}\n# one\n\n- 一つ\n{END}"
TWO = f"{BEGIN}\n# two\n{END}"
PIECES = st.sampled_from(["a", "日本", " ", "\n", "\r\n", "\r", "\t", "# x\n", f"`{BEGIN}`", "\ufeff", "--> ", "\n\n"])
FILES = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=40))


@pytest.mark.req("clients:22")
@settings(max_examples=200, deadline=None)
@given(FILES)
@example("")
@example("\n")
@example("a\r")
@example("a\r\nb")
@example("a\n\n")
def test_any_file_is_the_same_after_put_and_take(text: str) -> None:
    once = put_block(text, ONE)
    assert put_block(once, ONE) == once
    assert once.startswith(text)
    found = find_block(once)
    assert found is not None
    assert found.text == ONE
    assert take_block(once) == text
    assert take_block(put_block(once, TWO)) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{TWO}\n"),
        ("# Mine\n", f"# Mine\n\n{TWO}\n"),
        ("# Mine", f"# Mine\n\n{TWO}"),
        ("# Mine\r\n", "# Mine\r\n\r\n" + TWO.replace("\n", "\r\n") + "\r\n"),
    ],
)
def test_a_block_stands_at_the_end_behind_an_empty_line(before: str, after: str) -> None:
    assert put_block(before, TWO) == after


@settings(max_examples=100, deadline=None)
@given(FILES, FILES)
def test_what_a_user_wrote_around_the_block_later_stays(before: str, after: str) -> None:
    text = f"{before}\n{ONE}\n{after}"
    assert put_block(text, TWO) == f"{before}\n{TWO}\n{after}"
    taken = take_block(text)
    assert taken in (f"{before}\n{after}", before + after)


def test_taking_out_a_block_between_lines_joins_none_of_them() -> None:
    assert take_block(f"a\n{ONE}\nb\n") == "a\nb\n"
    assert take_block(f"a\n\n{ONE}\n\nb\n") == "a\n\nb\n"
    assert take_block(f"{ONE}\nb\n") == "b\n"


def test_a_replaced_block_has_the_line_ends_of_the_old_one() -> None:
    text = f"a\n{ONE}\nb\n".replace("\n", "\r\n")
    assert put_block(text, TWO) == f"a\n{TWO}\nb\n".replace("\n", "\r\n")
    lone = f"a\r\n{BEGIN}\nx\n{END}\r\n"
    assert put_block(lone, TWO) == f"a\r\n{TWO}\r\n"


def test_a_block_of_a_later_release_or_behind_a_byte_order_mark_is_found() -> None:
    assert put_block(f"\ufeff{BEGIN.replace('1', '2')}\nx\n{END}\n", TWO) == f"\ufeff{TWO}\n"


def test_a_mark_that_is_only_spoken_of_is_none() -> None:
    assert find_block(f"It stands between `{BEGIN}` and {END}.\n") is None
    assert take_block("no block\n") == "no block\n"


@pytest.mark.req("clients:22")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a\n{BEGIN}\nx\n", 2),
        (f"a\nb\n{END}\n", 3),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", 2),
        (f"{ONE}\n{ONE}\n", 6),
        (f"{END}\n{BEGIN}\n", 1),
        (f"{BEGIN}\n{END}\n{END}\n", 3),
    ],
)
def test_broken_marks_are_refused_with_their_line(text: str, line: int) -> None:
    for act in (find_block, take_block, lambda text: put_block(text, TWO)):
        with pytest.raises(BusError, match=f"line {line} ") as caught:
            act(text)
        assert caught.value.code == "refused"
        assert BEGIN in caught.value.hint
