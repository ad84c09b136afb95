"""docs/requirements.md and the tests name one another."""

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CHECKOUT = Path(os.environ.get("AGENT_BUS_CHECKOUT") or TESTS.parent)
ROW = re.compile(
    r"^\| ((?:core|mcp|launcher|notify|clients|vault|board|tips|handoff|presence|debate|rooms):[\w:]+) \| (.+) \|$",
    re.MULTILINE,
)


def rows() -> tuple[list[str], list[str]]:
    """The ids that need a test and those for later, in the page's order."""
    page = (CHECKOUT / "docs" / "requirements.md").read_text(encoding="utf-8")
    needed, _, later = page.partition("\n## Later\n")
    return [name for name, _ in ROW.findall(needed)], [name for name, _ in ROW.findall(later)]


def named() -> Iterator[tuple[str, str]]:
    """Each id in a `req` marker of a test file, with the place."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req":
                place = f"{path.relative_to(TESTS).as_posix()}:{node.lineno}"
                assert node.args, f"{place}: a req marker without an id"
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{place}: write the id out"
                    yield str(argument.value), place


def whole(name: str) -> str:
    """The requirement that an id like `core:40:stale` is a part of."""
    return ":".join(name.split(":")[:2])


def test_every_requirement_has_a_test() -> None:
    proved = {name for name, _ in named()}
    missing = [name for name in rows()[0] if name not in proved]
    assert not missing, f"requirements without a test: {', '.join(missing)}"


def test_every_marker_names_a_requirement() -> None:
    known = {whole(name) for ids in rows() for name in ids}
    unknown = [f"{place} names {name}" for name, place in named() if whole(name) not in known]
    assert not unknown, "\n".join(unknown)


def test_every_requirement_has_its_own_id_and_none_was_lost() -> None:
    needed, later = rows()
    assert [name for name, count in Counter(needed + later).items() if count > 1] == []
    numbers = {tuple(whole(name).split(":")) for name in needed + later}
    for group, count in Counter(group for group, _ in numbers).items():
        assert {number for its, number in numbers if its == group} == {str(n + 1) for n in range(count)}, group
    assert len(numbers) >= 45 + 32
