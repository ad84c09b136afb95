"""No answer is longer than 8,000 characters, whatever stands in the documents; paging reaches every character once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_bus import paging
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.errors import BusError
from agent_bus.operations import recover
from tests.tools.desk import Desk, refused

UNIT = '\n"\\\x00\x1f\U0001f600語é\u2028'
HOSTILE = (UNIT * (200_000 // len(UNIT) + 1))[:200_000]
STRIPPED = "\x01" * 200_000


@pytest.fixture
def engine() -> str:
    """Answers are cut above the engines: one of them is enough."""
    return "memory"


def fits(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, which must fit as compact JSON."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=str)
    assert len(text) <= paging.ANSWER_CHARS, f"{len(text)} characters: {text[:300]}"
    return answer


@pytest.mark.parametrize("text", [HOSTILE, STRIPPED], ids=["mixed", "controls"])
def test_a_long_instruction_is_read_once_and_whole_in_parts(boss: Desk, coder: Desk, text: str) -> None:
    context = '{"k": "' + "c" * 5000 + '"}'
    sent = fits(boss.dispatch_task("coder", text, context=context))
    got = fits(coder.receive_task())
    assert got["task"]["instruction_chars"] == len(text)
    whole, cursor = got["task"]["instruction"].removesuffix("…"), got["cursor"]
    while cursor:
        part = fits(coder.receive_task(cursor=cursor))
        assert part["already_held"] is True
        assert part["task"]["from_character"] == len(whole)
        whole, cursor = whole + part["task"]["instruction_part"], part["cursor"]
    assert whole == f"{text}\n\n--- context ---\n{context}"
    assert boss.task(sent["task_id"])["attempt"] == 1


def test_a_long_comment_is_read_to_its_end_too(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "short")["task_id"]
    coder.receive_task()
    coder.submit_report(task_id, status="blocked", summary="what?")
    comment = HOSTILE[:20_000]
    fits(boss.acknowledge_report(task_id, "rework", comment))
    got = fits(coder.receive_task())
    whole, cursor = got["task"]["instruction"].removesuffix("…"), got["cursor"]
    while cursor:
        part = fits(coder.receive_task(cursor=cursor))
        whole, cursor = whole + part["task"]["instruction_part"], part["cursor"]
    assert whole == f"short\n\n--- comment ---\n{comment}"


def test_a_whole_task_is_read_once_and_whole_in_parts(boss: Desk) -> None:
    task_id = boss.dispatch_task("coder", HOSTILE)["task_id"]
    whole, cursor = "", ""
    while True:
        shown = fits(boss.get_task(task_id, cursor))
        whole, cursor = whole + shown["task_json"], shown["cursor"]
        if not cursor:
            break
    assert json.loads(whole) == boss.task(task_id)
    with refused("invalid", "cursor"):
        boss.get_task(task_id, "x")


@pytest.mark.parametrize("summary", [HOSTILE[:20_000], STRIPPED[:20_000], "short"], ids=["mixed", "controls", "short"])
@pytest.mark.parametrize("artifacts", [[], [HOSTILE[:1000]] * 200, [STRIPPED[:1000]] * 5], ids=["none", "many", "few"])
def test_reports_are_read_once_and_whole_in_parts(boss: Desk, coder: Desk, summary: str, artifacts: list[str]) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    fits(coder.submit_report(task_id, summary=summary, artifacts=artifacts, needs_review=True))
    fits(boss.get_reports())
    whole, cursor = "", ""
    while True:
        page = fits(boss.get_reports(task_id=task_id, cursor=cursor))
        [row] = page["reports"]
        if "summary_part" in row:
            whole += row["summary_part"]
        elif page["cursor"] or row.get("summary_chars"):
            whole += row["summary"].removesuffix("…") if page["cursor"] else row["summary"]
        else:
            assert (row["summary"], row["artifacts"]) == (summary, artifacts)
            return
        if not (cursor := page["cursor"]):
            break
    assert whole == summary + ("\n\n--- artifacts ---\n" + "\n".join(artifacts) if artifacts else "")


def test_many_reports_of_one_task_are_all_reached(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    texts = [f"{n}" + STRIPPED[:1000] for n in range(5)]
    for text in texts:
        coder.receive_task()
        coder.submit_report(task_id, summary=text, status="blocked")
        boss.acknowledge_report(task_id, "rework", "again")
    seen: list[str] = []
    cursor = ""
    while True:
        page = fits(boss.get_reports(task_id=task_id, cursor=cursor))
        for row in page["reports"]:
            if "summary_part" in row:
                seen[-1] += row["summary_part"]
            else:
                seen.append(row["summary"].removesuffix("…"))
        if not (cursor := page["cursor"]):
            break
    assert sorted(seen) == texts


@pytest.mark.parametrize("as_object", [True, False])
def test_shared_data_is_read_once_and_whole_in_parts(boss: Desk, as_object: bool) -> None:
    data = json.dumps({"k": HOSTILE[:60_000]}, ensure_ascii=False) if as_object else HOSTILE[:60_000]
    fits(boss.share_context("k" * 120, data))
    fits(boss.get_shared_context())
    whole, cursor = "", ""
    while True:
        page = fits(boss.get_shared_context("k" * 120, cursor=cursor))
        whole, cursor = whole + page["entries"][0]["data"], page["cursor"]
        if not cursor:
            break
    assert whole == data


def test_pages_reach_every_entry_once(boss: Desk) -> None:
    keys = [f"key-{n:03d}" for n in range(60)]
    for key in keys:
        boss.share_context(key, HOSTILE[:400])
    seen, cursor = [], ""
    while True:
        page = fits(boss.get_shared_context(limit=100, cursor=cursor))
        seen += [e["key"] for e in page["entries"]]
        if not (cursor := page["cursor"]):
            break
    assert seen == keys


def test_lists_of_hostile_tasks_fit_and_reach_every_task_once(boss: Desk) -> None:
    sent = [boss.dispatch_task("語" * 60, STRIPPED[:300])["task_id"] for _ in range(40)]
    seen, cursor = [], ""
    while True:
        page = fits(boss.list_tasks(limit=100, cursor=cursor))
        seen += [t["task_id"] for t in page["tasks"]]
        if not (cursor := page["cursor"]):
            break
    assert seen == sent


def test_every_other_answer_fits_too(
    bus: Bus, boss: Desk, coder: Desk, person: Desk, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = STRIPPED[:500]
    terms = " ".join(f"delete {noun}" for noun in ("files", "database", "backups", "users", "tables", "rows") * 40)
    gated = fits(boss.dispatch_task("coder", terms, context=STRIPPED[:40_000]))["task_id"]
    other = fits(boss.dispatch_task("coder", terms))["task_id"]
    fits(person.approve(gated, bad))
    fits(person.reject(other, bad))
    fits(boss.get_task(other))
    for n in range(120):
        desk = Desk(bus, Caller(agent=f"agent-{n}-{'語' * 40}"))
        fits(desk.update_status(state="working", note=bad))
    held = fits(boss.dispatch_task("coder", "x"))["task_id"]
    fits(coder.receive_task())
    fits(boss.cancel_task(held, bad))
    fits(boss.get_task(held))
    fits(coder.update_status(current_task_id=held, note=bad))
    fits(boss.get_all_status())
    chained = boss.dispatch_task("b", "x")["task_id"]
    steps = [{"target": "b", "instruction": terms[:900]}] * 190
    fits(boss.share_context(f"task-chain-{chained}", json.dumps({"next_tasks": steps})))
    Desk(bus).receive_task("b")
    Desk(bus).submit_report(chained, worker="b", summary="s")
    fits(boss.acknowledge_report(chained, comment=STRIPPED[:20_000]))
    for n in range(60):
        Desk(bus).dispatch_task("many", bad)
        Desk(bus).receive_task("many", worker=f"many#{n + 1}")
    fits(boss.emergency_stop(bad))
    fits(boss.system_health())
    fits(boss.get_task(held))
    monkeypatch.setattr(recover, "is_lost", lambda *_: True)
    fits(boss.system_health())
    resumed = fits(person.resume(requeue=True))
    assert any("more" in line for line in resumed["requeued"]) or len(resumed["requeued"]) > 50
    fits(boss.list_tasks())


def test_refusals_are_short_whatever_was_given(boss: Desk, coder: Desk) -> None:
    task_id = boss.dispatch_task("coder", "x")["task_id"]
    coder.receive_task()
    coder.submit_report(task_id, summary=STRIPPED[:20_000])
    calls: list[Callable[[], Any]] = [
        lambda: boss.dispatch_task(HOSTILE[:200], "x"),
        lambda: boss.dispatch_task("x", "x", priority=HOSTILE),
        lambda: boss.dispatch_task("x", "x", not_before=HOSTILE[:60]),
        lambda: boss.dispatch_task("x", "x", options='{"' + "a" * 50_000 + '": 1}'),
        lambda: boss.dispatch_task("x", "x", depends_on=[HOSTILE[:60]]),
        lambda: boss.get_task(HOSTILE[:60]),
        lambda: coder.submit_report(task_id, summary="else"),
        lambda: coder.submit_report(task_id, summary="s", lease_id=HOSTILE[:80]),
        lambda: boss.get_shared_context("x" * 100),
        lambda: boss.update_status("boss", HOSTILE),
    ]
    for call in calls:
        with pytest.raises(BusError) as caught:
            call()
        assert len(json.dumps(caught.value.as_dict(), ensure_ascii=False)) < 1500


def test_texts_with_lone_surrogates_are_refused(boss: Desk) -> None:
    with refused("invalid", "surrogate"):
        boss.dispatch_task("coder", "\ud800")
