"""Mentions: whom a text addresses, by the table of the design."""

import pytest

from agent_bus import ids
from agent_bus.domain import mentions

MEMBERS = ("B", "C", "Jean-Luc", "Zoë", "ナナ", "claude-code", "李", "Dr.Who")
NAMES = {ids.fold(m): m for m in MEMBERS} | {"mj": "B", "le mj": "B"}


def found(text: str) -> list[str]:
    """Whom a text addresses; unknown names with a question mark."""
    one = mentions.find(text, NAMES)
    return [*one.handles, *(["all"] if one.everyone else []), *(f"?{u}" for u, _ in one.unknown)]


@pytest.mark.req("rooms:1")
@pytest.mark.parametrize(
    ("text", "whom"),
    [
        *((t, ["B"]) for t in ("@b", "(@B),", "@B.", "@B's", "@B-", "@B_", "＠B", "[@B](u)", "@B@C", "@le MJ", "@mj")),
        *((t, []) for t in ("MJ", "@ B", "\\@B", "@@B", "x@B.com", "b@example.com", "> @B", "https://x/@B/y")),
        *((t, []) for t in ("`@B`", "``@B``", "```\n@B\n```", "~~~\n@B", "```\n@B\n~~~\n@C", "    @B", "<!-- @B -->")),
        ("@Jean-Luc.", ["Jean-Luc"]), ("@Zoe\u0308", ["Zoë"]), ("@ナナは", ["ナナ"]), ("@李さん", ["李"]),
        ("@claude-codeさん", ["claude-code"]), ("@Dr.Who!", ["Dr.Who"]), ("@李明", ["?李明"]), ("@Jean", ["?Jean"]),
        ("@Bobby", ["?Bobby"]), ("@B2", ["?B2"]), ("@B.com", ["?B.com"]), ("a ` b @C", ["C"]), ("@all", ["all"]),
        ("@all and @C", ["C", "all"]), ("%% @B %% @C", ["C"]), ("text\n    @B", ["B"]), ("mail a@x.org @C", ["C"]),
        ("@B and @b and ＠B", ["B"]), ("@Dr.Who then @C then @B", ["Dr.Who", "C", "B"]), ("@ナナー", ["?ナナー"]),
    ],
)  # fmt: skip
def test_a_text_addresses_whom_the_table_says(text: str, whom: list[str]) -> None:
    """Cases 11, 13 to 17, 19 and the table of mentions."""
    assert found(text) == whom


@pytest.mark.req("rooms:1")
def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    """Two edits are near, three are not; quotes count if a room wants them."""
    assert mentions.find("@claud-cod @Zedd", NAMES).unknown == (("claud-cod", "claude-code"), ("Zedd", ""))
    assert mentions.find("> @B", NAMES, scan_quotes=True).handles == ("B",)


@pytest.mark.req("rooms:1")
@pytest.mark.parametrize("piece", ["`" * 7 + " ``x ", "<!-- ", "%% a", "a", "@", "@B ", "@" + "x" * 200 + " ", "a.b@"])
def test_a_long_text_is_scanned_in_time_linear_in_its_length(piece: str) -> None:
    """96 KiB of what makes naive patterns slow."""
    text = piece * (98_304 // len(piece))
    assert len(mentions.scanned(text)) <= len(text)
    assert set(mentions.find(text, NAMES).handles) <= {"B"}
