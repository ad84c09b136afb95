"""Tips: cards that keep what was written on them, whoever else writes on them at the same time."""

import re
import sys
from pathlib import Path

import pytest
from pydantic_core import to_json

from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.domain import tip
from tests.board.conftest import Judge
from tests.tools.desk import Desk, refused


@pytest.fixture
def card(desk: Desk, folder: str) -> str:
    """The id of a tip."""
    made = desk.moa_tip_create("Cache", "Keep the menu", workspace=folder, context="long", tags=["a"], author="ann")
    found: str = made["id"]
    return found


@pytest.mark.req("tips:1")
def test_a_new_tip_is_captured_and_read_back_as_it_was_given(desk: Desk, folder: str) -> None:
    made = desk.moa_tip_create("Cache", "Keep the menu", workspace=folder)
    assert re.fullmatch(r"tip_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", made["id"])
    assert (made["status"], made["createdAt"]) == ("captured", made["updatedAt"])
    assert "context" not in made
    refs = [{"path": "docs/a.md", "section": "B"}, "src/x.py"]
    full = desk.moa_tip_create(
        "T", "S", workspace=folder, documentRefs=refs, tags=["x", "y", "x"], nextAction="go", author="ann"
    )
    read = desk.moa_tip_read(full["id"], workspace=folder)
    assert read == full
    assert read["documentRefs"] == [{"path": "docs/a.md", "section": "B"}, {"path": "src/x.py"}]
    assert (read["tags"], read["author"], read["lastActor"]) == (["x", "y"], "ann", "ann")


@pytest.mark.req("tips:2")
def test_an_update_changes_clears_and_notes_who_and_from_where(
    desk: Desk, folder: str, card: str, clock: ManualClock
) -> None:
    clock.advance(5)
    done = desk.moa_tip_update(card, workspace=folder, status="planned", clear=["context"], actor="bob")
    assert "context" not in done
    assert (done["author"], done["lastActor"], done["title"]) == ("ann", "bob", "Cache")
    assert done["updatedAt"] > done["createdAt"]
    (line,) = done["history"]
    assert (line["from"], line["to"], line["actor"]) == ("captured", "planned", "bob")
    with refused("conflict", done["rev"]):
        desk.moa_tip_update(card, workspace=folder, title="x", expected_rev="other")


@pytest.mark.req("tips:3")
def test_what_is_too_long_or_no_field_is_refused_and_nothing_changes(desk: Desk, folder: str, card: str) -> None:
    assert desk.moa_tip_update(card, workspace=folder, context="é" * 16_384)["cut"]
    before = desk.moa_tip_read(card, workspace=folder)
    with refused("too_large", "32769", "32768"):
        desk.moa_tip_update(card, workspace=folder, context="é" * 16_384 + "x")
    nothing = dict.fromkeys(p for p in ("title", "summary", "context", "tags", "status", "clear", "actor"))
    with refused("invalid", "nothing"):
        desk.moa_tip_update(card, workspace=folder, **nothing)
    for given in ({"clear": ["title"]}, {"author": "x"}, {"clear": ["module"], "module": "m"}, {"status": "done"}):
        with refused("invalid"):
            desk.moa_tip_update(card, workspace=folder, **given)
    for ref in ("../x", "/etc/x", "C:\\x", '{"path": 1}', "{broken"):
        with refused("invalid", "documentRefs"):
            desk.moa_tip_update(card, workspace=folder, documentRefs=[ref])
    with refused("too_large", "49152"):
        desk.moa_tip_update(card, workspace=folder, sourceRefs=[f"{n:02}{'é' * 297}" for n in range(64)])
    with refused("invalid", "title"):
        desk.moa_tip_create(" ", "S", workspace=folder)
    assert desk.moa_tip_read(card, workspace=folder) == before


@pytest.mark.req("tips:4")
def test_a_list_is_filtered_paged_and_hides_what_is_archived(bus: Bus, folder: str, clock: ManualClock) -> None:
    desk = Desk(bus)
    cards = []
    for n in range(40):
        clock.advance(1)
        given = {"module": f"m{n % 2}", "tags": ["all", f"t{n % 4}"]}
        cards.append(desk.moa_tip_create(f"T{n}", "s" * 400, workspace=folder, context="c" * 900, **given)["id"])
    found: list[str] = []
    cursor = ""
    while True:
        page = desk.moa_tip_list(workspace=folder, cursor=cursor)
        assert len(to_json(page)) < 8000
        found += [row["id"] for row in page["tips"]]
        if not (cursor := page["cursor"]):
            break
    assert found == cards[::-1]
    assert "context" not in page["tips"][0]
    assert len(desk.moa_tip_list(workspace=folder, module="m1", tags=["all", "t3"])["tips"]) == 10
    assert desk.moa_tip_list(workspace=folder, tag="none")["tips"] == []
    once = desk.moa_tip_archive(cards[3], workspace=folder)
    assert desk.moa_tip_archive(cards[3], workspace=folder) == once
    assert once["status"] == "archived"

    def shown(**how: object) -> bool:
        rows = desk.moa_tip_list(workspace=folder, module="m1", tag="t3", **how)["tips"]
        return cards[3] in [row["id"] for row in rows]

    assert (shown(), shown(includeArchived=True), shown(status="archived")) == (False, True, True)
    desk.moa_tip_update(cards[3], workspace=folder, status="captured")
    assert shown()


@pytest.mark.req("tips:5")
def test_a_missing_tip_is_not_found_and_a_damaged_one_is_named(disk: Bus, folder: str) -> None:
    desk = Desk(disk)
    kept, torn = (desk.moa_tip_create(t, "S", workspace=folder)["id"] for t in ("kept", "torn"))
    (file,) = Path(disk.settings.root).rglob(f"{torn}.json")
    file.write_text("{", encoding="utf-8")
    page = desk.moa_tip_list(workspace=folder)
    assert ([row["id"] for row in page["tips"]], page["corrupt"]) == ([kept], [torn])
    with refused("corrupt", torn):
        desk.moa_tip_read(torn, workspace=folder)
    with refused("not_found", "moa_tip_list"):
        desk.moa_tip_read(f"tip_{'0' * 8}-0000-4000-8000-{'0' * 12}", workspace=folder)
    with refused("invalid", "id"):
        desk.moa_tip_read("../x", workspace=folder)


@pytest.mark.req("tips:6")
def test_a_big_tip_is_read_in_parts_of_less_than_an_answer(desk: Desk, folder: str) -> None:
    text = "".join(f"{n:05}\n" for n in range(3000))
    lists = {name: [f"{n:02}{'x' * 90}" for n in range(64)] for name in ("tags", "sourceRefs")}
    made = desk.moa_tip_create("T" * 200, "\n" * 1 + "s" * 1999, workspace=folder, context=text, **lists)
    parts, offset = [], 0
    while True:
        page = desk.moa_tip_read(made["id"], workspace=folder, offset=offset)
        assert len(to_json(page)) < 8000
        parts.append(page["context"])
        if not (offset := page.get("cut", 0)):
            break
    assert "".join(parts) == text


@pytest.mark.req("tips:7")
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_processes_that_change_different_fields_of_one_tip_at_once_all_win(judge: Judge) -> None:
    found = judge("tip_race")
    assert found == {f"field-{n}": f"{n}-9" for n in range(8)}


@pytest.mark.req("tips:8")
def test_workspaces_of_one_project_share_their_tips(desk: Desk, folder: str, card: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = str(tmp_path / "other")
    project = desk.project_create("Web")["projectId"]
    for one in (folder, other):
        desk.project_migrate(one, project)
    assert [row["id"] for row in desk.moa_tip_list(workspace=other)["tips"]] == [card]
    assert desk.moa_tip_update(card, workspace=other, title="New")["title"] == "New"
    desk.project_detach(other)
    with refused("not_found"):
        desk.moa_tip_read(card, workspace=other)


def test_the_history_of_a_tip_keeps_the_last_changes(clock: ManualClock) -> None:
    card = tip.create("tip_x", {"title": "T", "summary": "S"}, "captured", "ann", "2026-03-07T12:00:00.000Z")
    for n in range(60):
        card = tip.update(card, {}, tip.STATUSES[n % 2], [], str(n), clock.now())
    assert len(card["history"]) == tip.HISTORY
    assert card["history"][-1]["actor"] == "59"
