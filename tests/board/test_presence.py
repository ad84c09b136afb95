"""Presence: who is here is told by heartbeats of server processes, and who has gone by their end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest
from pydantic_core import to_json

from agent_bus import host
from agent_bus.bus import Bus, Caller
from agent_bus.clock import ManualClock
from agent_bus.commands import find
from agent_bus.domain import presence as rules
from agent_bus.faces.exchange import Exchange
from agent_bus.faces.toolbox import Toolbox, for_client, offered
from agent_bus.jobs import reaper
from agent_bus.operations import presence
from agent_bus.times import stamp
from tests.tools.desk import Desk, Server


def call(bus: Bus, client: str, session: str, verb: str, **given: Any) -> dict[str, Any]:
    """A tool call as a server makes it for a client."""
    caller = Caller(channel="mcp", process=True)
    box = Toolbox(lambda: bus, caller, offered("all", "worker"))

    async def run() -> dict[str, Any]:
        made = await box.call(find(verb), given, Exchange(), for_client(caller, client, session))
        return made.model_dump(mode="json")

    return anyio.run(run)


def documents(bus: Bus) -> set[str]:
    """The keys of all documents of the machine's side."""
    found: set[str] = set()

    def walk(prefix: str) -> None:
        found.update(bus.store.keys(prefix))
        for name in bus.store.folders(prefix):
            walk(f"{prefix}/{name}")

    walk(".bus")
    return found


@pytest.mark.req("presence:1")
def test_clients_are_seen_with_their_names_by_a_third_and_nothing_but_heartbeats_is_written(bus: Bus) -> None:
    call(bus, "Claude Code 2.1", "s1", "get_all_status")
    call(bus, "codex 0.9", "s2", "get_all_status")
    before = documents(bus)
    seen = call(bus, "gemini-cli 1.0", "s3", "moa_status_agents")
    assert {k.split("/")[1] for k in documents(bus) - before} == {"presence"}
    assert (seen["sessionCount"], seen["agentCount"], seen["source"]) == (3, 3, "local")
    shown = {a["address"]: (a["state"], a["kind"], a["client"]["name"], a["client"]["version"]) for a in seen["agents"]}
    assert shown == {
        "claude-code:s1:main": ("busy", "main", "Claude Code", "2.1"),
        "codex:s2:main": ("busy", "main", "codex", "0.9"),
        "gemini-cli:s3:main": ("busy", "main", "gemini-cli", "1.0"),
    }
    assert {tuple(a) for a in seen["agents"]} == {tuple(seen["agents"][0])}
    assert {s["sessionId"]: s["agents"] for s in seen["sessions"]} == {"s1": 1, "s2": 1, "s3": 1}
    assert [a["sessionId"] for a in call(bus, "x", "s3", "moa_status_agents", sessionId="s2")["agents"]] == ["s2"]


@pytest.mark.req("presence:2")
def test_who_has_no_call_is_idle_and_who_was_killed_has_gone(
    disk: Bus, clock: ManualClock, server: Callable[..., Server]
) -> None:
    other = server()
    pid = other.process.pid
    call(disk, "codex 1", "mine", "get_all_status")
    value = presence.beat(disk.called_by(Caller(client="claude 1")), "theirs", "main", {"pid": pid})
    doc = disk.store.get(f"{presence.PREFIX}/theirs/main")
    assert doc is not None
    disk.store.replace(doc, {**value, "pid_started": host.start_stamp(pid)})
    clock.advance(61)
    assert {a["sessionId"]: a["state"] for a in Desk(disk).moa_status_agents()["agents"]} == {
        "mine": "idle",
        "theirs": "idle",
    }
    other.kill()
    assert [a["sessionId"] for a in Desk(disk).moa_status_agents()["agents"]] == ["mine"]
    reaper.sweep(disk, disk.now())
    assert [len(disk.store.keys(f"{presence.PREFIX}/{name}")) for name in ("mine", "theirs")] == [1, 0]


@pytest.mark.req("presence:3")
def test_children_named_through_one_server_are_listed_newest_first_and_counted(bus: Bus, clock: ManualClock) -> None:
    for child in ("kid-1", "kid-2"):
        clock.advance(1)
        call(bus, "codex 1", "s", "moa_board_write", key="k", value="v", scope="global", author=child)
    seen = Desk(bus).moa_status_agents()
    assert (seen["agents"][0]["agentId"], len(seen["agents"])) == ("kid-2", 3)
    assert {a["parentAgentId"] for a in seen["agents"] if a["kind"] == "sub"} == {"main"}
    first = Desk(bus).moa_status_agents(limit=1)
    assert ([a["agentId"] for a in first["agents"]], first["agentsTruncated"]) == (["kid-2"], 2)
    rest = Desk(bus).moa_status_agents(cursor=first["cursor"])
    assert (len(rest["agents"]), rest["agentsTruncated"], rest["cursor"]) == (2, 0, "")


@pytest.mark.req("presence:4")
def test_a_heartbeat_is_written_at_most_every_30_s_and_failing_to_write_one_keeps_no_call_back(
    bus: Bus, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    real = presence.beat

    def counted(bus: Bus, session: str, agent: str, changes: Any) -> Any:
        writes.append(agent)
        return real(bus, session, agent, changes)

    monkeypatch.setattr(presence, "beat", counted)
    for _ in range(3):
        call(bus, "codex 1", "s", "get_all_status")
    assert writes == ["main"]
    clock.advance(30)
    call(bus, "codex 1", "s", "get_all_status")
    assert writes == ["main", "main"]

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(presence, "beat", fails)
    clock.advance(31)
    assert call(bus, "codex 1", "s", "get_all_status")["agents"] == []


@pytest.mark.req("presence:5")
def test_the_status_names_no_server_when_none_serves(bus: Bus) -> None:
    found = Desk(bus).moa_status()
    assert (found["bus"], found["control_plane_url"], found["tasks"]) == ({"port": 0, "mode": "off"}, "", [])
    assert found["uptime_s"] >= 0


@pytest.mark.req("presence:6")
def test_a_script_says_that_an_agent_is_there_and_a_hand_off_to_it_has_no_warning(bus: Bus, clock: ManualClock) -> None:
    desk = Desk(bus)
    made = desk.heartbeat("s9", agent="kid", parent="main", state="busy", task="tests", for_s=300)
    clock.advance(120)
    (row,) = desk.moa_status_agents()["agents"]
    assert (row["state"], row["task"], row["parentAgentId"]) == ("busy", "tests", "main")
    sent = desk.moa_handoff_send("user-global", "T", "S", workspace="user-global", toAgent=made["address"])
    assert sent["warnings"] == []
    close = f"{made['address']}x"
    sent = desk.moa_handoff_send("user-global", "T", "S", workspace="user-global", toAgent=close)
    assert made["address"] in sent["warnings"][0]
    clock.advance(301)
    assert desk.moa_status_agents()["agents"][0]["state"] == "stale"
    clock.advance(24 * 3600)
    assert desk.moa_status_agents()["agents"] == []


@pytest.mark.req("presence:7")
def test_many_agents_are_pages_of_less_than_an_answer(bus: Bus) -> None:
    desk = Desk(bus)
    for n in range(60):
        desk.heartbeat(f"s{n}", agent="a" * 80, task="t" * 200)
    seen: list[str] = []
    cursor = ""
    while True:
        page = desk.moa_status_agents(cursor=cursor)
        assert len(to_json(page)) < 8000
        seen += [a["sessionId"] for a in page["agents"]]
        if not (cursor := page["cursor"]):
            break
    assert sorted(seen) == sorted(f"s{n}" for n in range(60))


@pytest.mark.parametrize(
    ("age_s", "life", "state"),
    [
        (59, "unknown", "busy"), (60, "alive", "idle"), (60, "unknown", "stale"), (0, "dead", "gone"),
        (86_400, "unknown", "gone"), (86_400, "alive", "idle"),
    ],
)  # fmt: skip
def test_the_state_follows_from_the_last_sign_and_the_process(
    clock: ManualClock, age_s: int, life: str, state: str
) -> None:
    value = {"last_seen": stamp(clock.now() - timedelta(seconds=age_s))}
    assert rules.state(value, life, clock.now()) == state
