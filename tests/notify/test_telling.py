"""From a verb to a post: nothing is lost, nothing floods, no verb ever waits for a channel."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_bus.bus import Bus
from agent_bus.clock import ManualClock
from agent_bus.commands import bind
from agent_bus.jobs.loop import Job, run_once
from agent_bus.jobs.notify import Teller
from agent_bus.jobs.sender import Sender, backoff_s
from agent_bus.operations import outbox
from agent_bus.settings import load_settings
from tests.notify.conftest import Open
from tests.notify.drive import Telling, call, dispatch, finish
from tests.notify.stand_in import PATH, TOKEN, Answer, StandIn, text


def discord(stand_in: StandIn, **more: Any) -> dict[str, Any]:
    return {"discord": {"url": stand_in.url, "level": "info", **more}}


def ids_in(texts: list[str]) -> list[str]:
    return [found for one in texts for found in dict.fromkeys(re.findall(r"t-\d{8}-\d{6}-\d+", one))]


def test_a_tasks_life_is_told_in_order_and_once(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    task_id = dispatch(bus)
    telling.run(1)
    finish(bus, task_id, "completed", "All green.", review=True)
    telling.run(120)
    assert [one.split("\n")[0] for one in stand_in.delivered()] == [
        "New task",
        "Work has begun",
        "A report waits for your review",
    ]
    assert "boss → coder" in stand_in.delivered()[0]
    assert "> Write the tests." in stand_in.delivered()[0]
    assert "coder → boss" in stand_in.delivered()[2]
    assert "> All green." in stand_in.delivered()[2]
    assert outbox.overview(bus)[0]["waiting"] == 0


def test_notices_about_one_task_within_seconds_become_one_post(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    bus = opened(discord(stand_in))
    telling = Telling(bus, clock)
    finish(bus, dispatch(bus), "failed", "No.")
    telling.run(30)
    assert len(stand_in.posts) == 1
    embed = stand_in.posts[0]["embeds"][0]
    assert embed["color"] == 0xE74C3C
    assert all(words in text(stand_in.posts[0]) for words in ("New task", "Work has begun", "Task failed"))


@pytest.mark.req("notify:6")
def test_a_429_holds_the_whole_channel_for_the_longer_of_its_two_times_and_loses_nothing(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    at: list[float] = []
    stand_in.on_post = lambda: at.append(clock.boot_s())
    stand_in.script = [Answer(429, {"retry_after": 2}, {"Retry-After": "5"})]
    sent = [dispatch(bus, f"Part {n}") for n in range(3)]
    telling.run(60)
    assert at[1] - at[0] >= 5
    assert ids_in(stand_in.delivered()) == sent
    stand_in.script = [Answer(429, {"retry_after": 7.5}, {"Retry-After": "1"})]
    at.clear()
    dispatch(bus)
    telling.run(60)
    assert at[1] - at[0] >= 7.5


@pytest.mark.req("notify:6")
def test_a_burst_is_told_by_task_and_at_most_25_times_a_minute(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    bus = opened(discord(stand_in))
    telling = Telling(bus, clock)
    at: list[float] = []
    stand_in.on_post = lambda: at.append(clock.boot_s())
    sent = []
    for n in range(67):  # three notices each: 201
        sent.append(dispatch(bus, f"Part {n}", agent=f"coder{n}"))
        finish(bus, sent[-1], "completed", "Done.", agent=f"coder{n}")
    telling.run(300)
    assert sorted(ids_in(stand_in.delivered())) == sorted(sent)
    assert len(stand_in.posts) == 67
    assert all(sum(t <= other < t + 60 for other in at) <= 25 for t in at)


@pytest.mark.req("notify:7")
@pytest.mark.parametrize("fault", ["hang", "500", "dead"])
def test_ten_minutes_of_a_dead_channel_delay_no_verb_and_lose_nothing(
    opened: Open, clock: ManualClock, stand_in: StandIn, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_bus.notifiers.discord.TIMEOUT_S", 0.2)
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    if fault == "dead":
        stand_in.die()
    else:
        stand_in.always = Answer(500, hang=fault == "hang")
    sent = []
    for n in range(5):
        sent.append(dispatch(bus, f"Part {n}"))
        telling.run(120)
    state = outbox.overview(bus)[0]
    assert state["waiting"] == 5
    assert state["last_error"]
    assert state["next_try"]
    stand_in.always = None
    if fault == "dead":
        stand_in.rise()
    telling.run(301)
    assert ids_in(stand_in.delivered()) == sent
    assert len(stand_in.posts) < 60  # backed off, not hammered
    assert outbox.overview(bus)[0]["last_error"] == ""


def test_the_back_off_doubles_up_to_five_minutes_with_jitter() -> None:
    assert [backoff_s(n, 1.0) for n in (0, 1, 2, 8, 9, 500)] == [1, 2, 4, 256, 300, 300]
    assert backoff_s(4, 0.0) == 8


@pytest.mark.req("notify:7")
def test_no_verb_touches_the_network_whatever_channels_there_are(opened: Open, tmp_path: Path) -> None:
    opened().close()
    (tmp_path / "bus.toml").write_text(
        f'root = "{(tmp_path / "bus").as_posix()}"\n[notify.discord]\nurl = "https://127.0.0.1:9{PATH}"\n'
    )
    program = """
import sys
from agent_bus.app import open_bus
from agent_bus.bus import Caller
from agent_bus.commands import bind
from agent_bus.settings import load_settings
from agent_bus.operations import claim

def no_network(event, arguments):
    assert event not in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "subprocess.Popen"), event

bus = open_bus(load_settings(sys.argv[1]), Caller(role="operator", person=True, process=True))
assert bus.settings.notify["discord"].enabled
sys.addaudithook(no_network)
verbs = bind(bus)
sent = verbs.dispatch_task("coder", "Write the tests.")
verbs.dispatch_task("coder", "Pay the invoice of 300 euros to the landlord.")
claim.receive(bus, "coder", "coder")
verbs.submit_report(sent.task_id, "coder", "failed", "No.")
verbs.acknowledge_report(sent.task_id)
verbs.emergency_stop("test")
verbs.resume()
print(verbs.system_health().outboxes[0]["waiting"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "bus.toml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


VICTIM = """
import sys
from datetime import UTC, datetime
from agent_bus.app import open_bus
from agent_bus.jobs.notify import Teller
from agent_bus.jobs.sender import Sender
from agent_bus.settings import load_settings

bus = open_bus(load_settings(sys.argv[1]))
Teller().tick(bus, bus.now())
print("told", flush=True)
Sender("discord").tick(bus, bus.now())
print("sent", flush=True)
"""


@pytest.mark.req("notify:8")
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_job_killed_between_post_and_removal_tells_that_one_twice_at_most_and_never_not_at_all(
    opened: Open, tmp_path: Path, stand_in: StandIn
) -> None:
    from agent_bus.clock import SystemClock

    bus = opened(discord(stand_in, coalesce_s=0), SystemClock())
    Teller().tick(bus, bus.now())
    task_id = dispatch(bus)  # with no job alive: between the act and any notice
    root = (tmp_path / "bus").as_posix()
    table = f'[notify.discord]\nurl = "{stand_in.url}"\nlevel = "info"\ncoalesce_s = 0\n'
    (tmp_path / "bus.toml").write_text(f'root = "{root}"\n{table}')
    victim = subprocess.Popen([sys.executable, "-c", VICTIM, str(tmp_path / "bus.toml")], stdout=subprocess.PIPE)
    stand_in.on_post = lambda: os.kill(victim.pid, signal.SIGKILL)
    out, _ = victim.communicate(timeout=30)
    assert out == b"told\n"
    assert victim.returncode == -signal.SIGKILL
    stand_in.on_post = lambda: None
    assert len(outbox.waiting(bus, "discord")) == 1
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", VICTIM, str(tmp_path / "bus.toml")], capture_output=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr
    assert ids_in([text(p) for p in stand_in.posts]) == [task_id, task_id]
    assert outbox.waiting(bus, "discord") == []


@pytest.mark.req("notify:8")
def test_a_teller_killed_between_outbox_and_its_mark_tells_nothing_twice_while_it_waits_and_nothing_is_lost(
    opened: Open, clock: ManualClock, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    task_id = dispatch(bus)
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "set_told", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            telling.teller.tick(bus, bus.now())
    assert len(outbox.waiting(bus, "discord")) == 1
    again = Telling(bus, clock)
    again.run(10)
    assert ids_in(stand_in.delivered()) == [task_id]


@pytest.mark.req("notify:9")
def test_what_discord_is_sent_allows_no_mentions_and_fits(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    bus = opened(discord(stand_in))
    telling = Telling(bus, clock)
    summary = f"@everyone <@1> {stand_in.url} " + "long " * 1000
    finish(bus, dispatch(bus), "failed", summary)
    telling.run(30)
    shown = text(stand_in.posts[0])
    assert stand_in.posts[0]["allowed_mentions"] == {"parse": []}
    assert len(shown) <= 2000
    assert "@everyone" not in shown
    assert "<@1>" not in shown
    assert TOKEN not in shown


@pytest.mark.req("notify:10")
@pytest.mark.parametrize("status", [204, 400, 404, 429, 500])
def test_the_address_stands_nowhere_but_in_the_settings(
    opened: Open, clock: ManualClock, stand_in: StandIn, status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    stand_in.script = [Answer(status)]
    dispatch(bus)
    telling.run(10)
    stand_in.die()
    dispatch(bus)
    telling.run(30)
    health = call(bus, "system_health")
    said = [
        json.dumps(health),
        caplog.text,
        repr(bus.settings),
        bus.settings.model_dump_json(),
        str(bus.settings.notify),
    ]
    files = [p.read_text(encoding="utf-8", errors="replace") for p in tmp_path.rglob("*") if p.is_file()]
    assert health["outboxes"][0]["waiting"] + len(stand_in.delivered()) >= 1
    assert [one for one in (*said, *files) if TOKEN in one] == []


@pytest.mark.req("notify:10")
def test_an_unforeseen_error_of_a_notifier_shows_its_type_only(
    opened: Open,
    clock: ManualClock,
    stand_in: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(stand_in.url)

    monkeypatch.setattr("requests.post", broken)
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    dispatch(bus)
    telling.run(5)
    error = outbox.overview(bus)[0]["last_error"]
    assert error.startswith("RuntimeError")
    assert TOKEN not in error + caplog.text


@pytest.mark.req("notify:10")
def test_a_wrong_line_about_a_channel_is_named_without_its_value(tmp_path: Path) -> None:
    path = tmp_path / "bus.toml"
    path.write_text(
        f'[notify.discord]\nurl = ["{TOKEN}"]\nquiet = "late"\n[notify.discord.team]\nurl = "https://a.example/x"\n'
    )
    found = load_settings(str(path), {})
    assert len(found.problems) == 2
    assert not [p for p in found.problems if TOKEN in p]
    assert set(found.notify) == {"discord", "discord.team"}
    seed = load_settings(str(path), {"DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/abc"})
    assert seed.notify["discord.team"].url.get_secret_value() == "https://a.example/x"
    alone = load_settings(
        "", {"DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/abc", "AGENT_BUS_CONFIG": str(tmp_path / "no")}
    )
    assert alone.notify["discord"].enabled
    assert "abc" not in repr(alone)


@pytest.mark.parametrize("status", [401, 404])
def test_a_webhook_that_is_gone_is_left_alone_until_the_settings_change_and_is_one_problem(
    opened: Open, clock: ManualClock, stand_in: StandIn, status: int
) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    stand_in.always = Answer(status)
    first = dispatch(bus)
    telling.run(20)
    second = dispatch(bus)
    telling.run(600)
    assert len(stand_in.posts) == 1
    problems = [p for p in call(bus, "system_health")["problems"] if "are off" in p]
    assert len(problems) == 1
    assert f"answered {status}" in problems[0]
    stand_in.always = None
    changed = opened(discord(stand_in, coalesce_s=0, keep_h=48))
    Telling(changed, clock).run(20)
    assert ids_in(stand_in.delivered()) == [first, second]


@pytest.mark.req("notify:11")
@pytest.mark.parametrize(
    "evening", [datetime(2026, 3, 28, 20, 30, tzinfo=UTC), datetime(2026, 10, 24, 19, 30, tzinfo=UTC)]
)
def test_what_happens_in_quiet_hours_over_a_clock_change_is_told_once_in_the_morning_alarms_at_once(
    opened: Open, stand_in: StandIn, evening: datetime
) -> None:
    clock = ManualClock(evening)
    bus = opened(discord(stand_in, quiet="22:00-07:00", coalesce_s=0), clock, timezone="Europe/Berlin")
    telling = Telling(bus, clock)
    at: dict[str, datetime] = {}
    stand_in.on_post = lambda: at.__setitem__(text(stand_in.posts[-1]), clock.now())
    telling.run(3600)  # 21:30 local, then past 22:00
    calm = [dispatch(bus, f"Part {n}", agent="calm") for n in range(3)]
    bad = dispatch(bus, "Part 3")
    finish(bus, bad, "failed", "No.")
    telling.run(600)
    assert ids_in(stand_in.delivered()) == [bad]
    telling.run(12 * 3600)
    assert ids_in(stand_in.delivered()) == [bad, *calm]
    morning = [moment for words, moment in at.items() if bad not in words]
    local = [(m + timedelta(hours=2 if evening.month == 3 else 1)).hour for m in morning]  # summer time from March on
    assert local == [7, 7, 7]


@pytest.mark.req("notify:12")
def test_the_first_channel_on_an_old_folder_hears_nothing_of_what_lies_there(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    quiet = opened()
    for n in range(125):
        for agent in ("a", "b", "c"):
            dispatch(quiet, f"Part {n}", agent=agent)
        finish(quiet, dispatch(quiet, f"Part {n}", agent=f"done{n}"), "failed", "No.", agent=f"done{n}")
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    telling.run(120)
    assert stand_in.posts == []
    fresh = dispatch(bus)
    telling.run(10)
    old = call(bus, "list_tasks", agent_name="a")["tasks"][0]["task_id"]
    finish(bus, old, "failed", "No.", agent="a")
    telling.run(10)
    assert ids_in(stand_in.delivered())[:2] == [fresh, old]
    assert "New task" not in stand_in.delivered()[1]


def test_what_ended_while_no_job_was_alive_is_told_by_the_next(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    bus = opened(discord(stand_in, coalesce_s=0, level="alarm"))
    old = dispatch(bus)
    Telling(bus, clock).run(5)
    clock.advance(3 * 86_400)
    finish(bus, old, "failed", "No.")
    call(bus, "acknowledge_report", task_id=old)
    young = dispatch(bus)
    finish(bus, young, "failed", "No.")
    call(bus, "acknowledge_report", task_id=young)
    Telling(bus, clock).run(10)
    assert sorted(ids_in(stand_in.delivered())) == sorted([old, young])


def test_a_stop_and_its_end_are_told_once_each(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    for n in range(2):
        bind(bus).emergency_stop(f"fire {n}")
        telling.run(20)
        Telling(bus, clock).run(20)
        bind(bus).resume()
        telling.run(20)
    assert [one.split("\n")[0] for one in stand_in.delivered()] == ["EMERGENCY STOP", "The bus runs again"] * 2
    assert "> fire 1" in stand_in.delivered()[2]


def test_a_silent_holder_is_told_once(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    from agent_bus.operations import claim

    bus = opened(discord(stand_in, level="need", coalesce_s=0))
    telling = Telling(bus, clock)
    task_id = dispatch(bus)
    assert claim.receive(bus, "coder", "coder")
    telling.run(3500)
    assert stand_in.posts == []
    telling.run(7200)
    assert [one.split("\n")[0] for one in stand_in.delivered()] == ["No sign of life from whoever holds the task"]
    assert f"agent-bus release {task_id}" in stand_in.delivered()[0]


def test_a_parked_account_is_one_notice_however_many_tasks_wait(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    bus = opened(discord(stand_in, level="alarm", coalesce_s=0))
    telling = Telling(bus, clock)
    for _ in range(5):
        dispatch(bus)
    value = {
        "account": "claude",
        "agents": ["coder"],
        "reason": "login",
        "since": "2026-12-01T12:00:00.000Z",
        "until": "",
    }
    bus.store.create(".bus/parked/claude", value)
    telling.run(30)
    assert len(stand_in.delivered()) == 1
    assert "agent-bus unpark coder" in stand_in.delivered()[0]


def test_two_supervisors_at_once_tell_once(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    bus, other = opened(discord(stand_in, coalesce_s=0)), opened(discord(stand_in, coalesce_s=0))
    one, two = Telling(bus, clock), Telling(other, clock)
    sent = [dispatch(bus, f"Part {n}") for n in range(5)]
    for _ in range(20):
        one.run(0.1)
        two.run(0.1)
    assert sorted(ids_in(stand_in.delivered())) == sorted(sent)


def test_while_one_sender_posts_another_one_keeps_out(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    bus, other = opened(discord(stand_in, coalesce_s=0)), opened(discord(stand_in, coalesce_s=0))
    one, two = Telling(bus, clock), Telling(other, clock)
    waits: list[float] = []
    stand_in.on_post = lambda: waits.append(two.sender.tick(other, other.now()))
    dispatch(bus)
    one.run(5)
    assert waits == [5.0]
    assert len(stand_in.posts) == 1


def test_old_news_is_dropped_with_a_line_in_the_journal_and_alarms_are_kept(
    opened: Open, clock: ManualClock, stand_in: StandIn
) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    stand_in.always = Answer(500)
    dispatch(bus, agent="calm")
    bad = dispatch(bus)
    finish(bus, bad, "failed", "No.")
    telling.run(10)
    clock.advance(30 * 3600)
    stand_in.always = None
    telling.run(400)
    assert ids_in(stand_in.delivered()) == [bad]
    assert "Task failed" in stand_in.delivered()[0]
    dropped = [line for line in bus.journal.read() if line["event"] == "notify.dropped"]
    assert len(dropped) == 1
    assert dropped[0]["count"] == 3


def test_retry_sends_at_once_and_drop_empties_the_outbox(opened: Open, clock: ManualClock, stand_in: StandIn) -> None:
    bus = opened(discord(stand_in, coalesce_s=0))
    telling = Telling(bus, clock)
    stand_in.always = Answer(500)
    dispatch(bus)
    telling.run(300)
    stand_in.always = None
    outbox.retry(bus, "discord")
    telling.run(0.2)
    assert len(stand_in.delivered()) == 1
    stand_in.always = Answer(500)
    dispatch(bus)
    dispatch(bus)
    telling.run(1)
    assert outbox.drop(bus, "discord") == 2
    assert outbox.overview(bus)[0]["waiting"] == 0


def test_a_program_of_the_users_own_reads_the_notice_as_json(opened: Open, clock: ManualClock, tmp_path: Path) -> None:
    out = tmp_path / "notice.json"
    code = f"import sys, pathlib; pathlib.Path({str(out)!r}).write_bytes(sys.stdin.buffer.read())"
    bus = opened(
        {"command": {"argv": [sys.executable, "-c", code], "level": "info", "coalesce_s": 0, "language": "ja"}}
    )
    telling = Telling(bus, clock, "command")
    task_id = dispatch(bus)
    telling.run(5)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["event"], found["subject"], found["level"]) == ("task.dispatched", task_id, "info")
    assert found["text"].startswith("新しいタスク")


@pytest.mark.parametrize(
    ("name", "table"),
    [("nonesuch", {}), ("discord", {}), ("discord", {"url": "http://example.com/x"}), ("command", {})],
)
def test_a_channel_that_cannot_be_made_is_off_and_a_problem(
    opened: Open, clock: ManualClock, name: str, table: dict[str, Any]
) -> None:
    bus = opened({name: {**table, "level": "info", "coalesce_s": 0}})
    telling = Telling(bus, clock, name)
    dispatch(bus)
    job = Job("x", telling.sender.tick)
    telling.run(5)
    assert run_once(bus, job) > 0
    assert job.failures == 0
    assert any(f"Notices to {name} are off" in p for p in call(bus, "system_health")["problems"])


def test_without_channels_nothing_is_written(opened: Open) -> None:
    bus: Bus = opened()
    dispatch(bus)
    Teller().tick(bus, bus.now())
    assert bus.store.folders(".bus/told") == []
    assert bus.store.folders(".bus/outbox") == []
    with pytest.raises(KeyError):
        Sender("discord").tick(bus, bus.now())
