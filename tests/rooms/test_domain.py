"""The pure rules of rooms: the floor by mention, and rounds under a host, whatever order things happen in."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_bus.domain import room, room_acts, room_messages, room_news, rounds, turns
from agent_bus.domain.room_acts import Who
from agent_bus.domain.room_messages import Wish
from agent_bus.errors import BusError

AT = "2026-12-01T09:00:00.000Z"


class Table:
    """A room in memory: acts are checked on the head, then applied."""

    def __init__(self, mode: str, *names: str, host: str = "") -> None:
        self.setup: dict[str, Any] = {
            "room": "r", "mode": mode, "topic": "", "description": "", "host": host, "host_sha256": "h",
            "participants": list(names), "aliases": {}, "first_speaker": "", "barrier": 64, "turn_timeout_s": 0,
            "scan_quotes": False, "opened_at": AT,
        }  # fmt: skip
        self.head = room.begin(self.setup)
        self.told: list[dict[str, Any]] = []
        for name in names:
            self.put(room_acts.join(self.setup, self.head, name, "", "", name, {}))

    def who(self, name: str) -> Who:
        """A member by name."""
        return Who(name.casefold(), name, name == self.setup["host"])

    def put(self, record: dict[str, Any]) -> None:
        """Applies a record."""
        full = {"number": self.head["number"] + 1, "at": AT, **record}
        before, self.head = self.head, room.apply(self.setup, self.head, full)
        assert self.head["number"] == full["number"]
        self.told += room_news.notices(self.setup, before, self.head, full)

    def say(self, name: str, text: str, **wish: Any) -> str:
        """A message; who has the floor then and who follows."""
        self.put(room_messages.message(self.setup, self.head, self.who(name), Wish(text, **wish)).record)
        return " ".join([self.head["floor"], *turns.queue(self.head)])

    def act(self, what: Any, name: str, *args: Any) -> None:
        """Any other act."""
        self.put(what(self.setup, self.head, self.who(name), *args))


@pytest.mark.req("rooms:2")
def test_the_most_addressed_speaks_next() -> None:
    """The example of the design; at equal scores the first in the text."""
    table = Table("mention", "A", "B", "C", "D")
    assert table.head["floor"] == "a"
    assert table.say("A", "@B @C") == "b c"
    assert table.say("B", "@C @D") == "c d"
    assert table.say("C", "@A @D") == "d a"
    assert table.say("D", "@A") == "a"
    assert table.say("A", "@D then @C then @B") == "d c b"
    assert table.say("D", "@B and @b and ＠B") == "b c"
    table.act(room_acts.give_up, "B")
    assert (table.head["floor"], table.head["members"]["b"]["score"]) == ("c", 0)
    table.act(room_acts.leave, "C")
    assert table.head["floor"] == ""
    assert table.say("B", "@all go") == "a d"
    assert [n["type"] for n in table.told].count("started") == 1


@pytest.mark.req("rooms:3")
def test_a_round_goes_from_hands_to_an_order_to_speeches() -> None:
    """Twice carol, then nobody; the round ends by itself and by an empty order."""
    table = Table("moderated", "bob", "carol", host="mod")
    table.act(room_acts.collect, "mod", [], 0)
    table.act(room_acts.raise_hand, "bob", 5)
    table.act(room_acts.raise_hand, "carol", 0)
    [due] = room_news.obligations(table.setup, table.head, table.who("mod"))
    assert due["hands"] == "bob 5, carol 0"
    assert due["weights"] == [{"name": "bob", "weight": 5}, {"name": "carol", "weight": 0}]
    table.act(room_acts.order, "mod", ["carol", "bob", "mod", "carol"])
    assert [table.say(n, n) for n in ("carol", "bob", "mod")] == ["bob mod carol", "mod carol", "carol"]
    table.say("carol", "end")
    assert (table.head["phase"], table.head["round"], table.told[-1]["round"]) == ("idle", 2, 1)
    table.act(room_acts.collect, "mod", [], 0)
    table.act(room_acts.leave, "carol")
    table.act(room_acts.raise_hand, "bob", 1)
    table.act(room_acts.order, "mod", [])
    assert (table.head["round"], table.told[-1]["reason"]) == (3, "empty_order")
    table.act(room_acts.collect, "mod", ["bob"], 0)
    table.act(room_acts.eliminate, "mod", "bob")
    assert (table.head["round"], table.head["phase"], table.told[-1]["reason"]) == (4, "idle", "no_participants")


ACTS = ("collect", "scoped", "raise", "order", "say", "pass", "skip", "leave", "eliminate", "join", "cancel", "poll")


@pytest.mark.req("rooms:3")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(["A", "B", "C", "mod"])), max_size=30))
def test_whatever_happens_somebody_can_go_on(steps: list[tuple[str, str]]) -> None:
    """In every phase who must act is there: no room under a host stands still for ever."""
    table = Table("moderated", "A", "B", "C", host="mod")
    for what, name in steps:
        try:
            _one(table, what, name)
        except BusError:
            continue
        head = table.head
        if head["phase"] == rounds.COLLECTING:
            assert rounds.undecided(head)
        if head["phase"] == rounds.SPEAKING:
            assert head["members"][head["floor"]]["s"] == "active"
        assert (head["phase"] == rounds.SPEAKING) == bool(head["floor"])
        assert not (head["poll"] and head["phase"] != rounds.IDLE)


def _one(table: Table, what: str, name: str) -> None:
    if what == "say":
        table.say(name, "hello")
    elif what == "join":
        table.put(room_acts.join(table.setup, table.head, name, "", "", name, {}))
    elif what == "eliminate":
        table.act(room_acts.eliminate, "mod", name)
    elif what in ("raise", "pass", "leave"):
        act = {"raise": room_acts.raise_hand, "pass": room_acts.give_up, "leave": room_acts.leave}[what]
        table.act(act, name, *([3] if what == "raise" else []))
    elif what in ("collect", "scoped"):
        table.act(room_acts.collect, "mod", [name] if what == "scoped" else [], 0)
    elif what == "order":
        table.act(room_acts.order, "mod", [name, "B"])
    elif what == "poll":
        table.act(room_acts.poll, "mod", "who?", [name], 0)
    else:
        table.act(room_acts.cancel if what == "cancel" else room_acts.skip, "mod")
