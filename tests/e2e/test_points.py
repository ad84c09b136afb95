"""Killed or stopped before each write-like system call of a verb: nothing is lost, nothing happens twice."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Judge
from tests.tools import kill_points

if sys.platform == "win32":
    pytest.skip("the points need fork and signals", allow_module_level=True)

from tests.e2e.points import DUELS, SCENES


@pytest.mark.req("core:39")
@pytest.mark.parametrize("name", SCENES)
def test_after_a_kill_before_any_write_everything_is_done_once_by_a_repeat_and_a_pass(judge: Judge, name: str) -> None:
    found = judge("kill", name)
    assert found["wrong"] == []
    assert found["points"] > 10
    assert found["states"] >= 2


@pytest.mark.req("core:39")
@pytest.mark.parametrize("name", DUELS)
def test_while_one_process_stands_still_before_any_write_its_rival_leaves_one_winner(judge: Judge, name: str) -> None:
    found = judge("stop", name)
    assert found["wrong"] == []
    assert found["points"] > 10


def test_a_kill_that_loses_something_would_be_seen(tmp_path: Path) -> None:
    """The tool itself: of two files written one after the other, a kill leaves none, the first, or both."""
    template = tmp_path / "template"
    template.mkdir()

    def prepare(root: Path) -> Callable[[], str]:
        def act() -> str:
            for name in "ab":
                (root / name).write_text("x")
            return "done"

        return act

    points = list(kill_points.points(template, tmp_path, signal.SIGKILL, prepare))
    assert [sorted(p.name for p in point.root.iterdir()) for point in points] == [[], ["a"], ["a", "b"]]
    assert [point.outcome for point in points] == [None, None, "done"]
