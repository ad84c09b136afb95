"""Rooms in six tools, whatever their mode: open, join, send, act, wait, read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PrivateAttr

from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import room, room_news, turns
from agent_bus.domain.room_messages import Wish
from agent_bus.operations import (
    rooms,
    rooms_acting,
    rooms_export,
    rooms_open,
    rooms_reading,
    rooms_sessions,
    rooms_waiting,
    waits,
)
from agent_bus.operations.rooms_acting import Done, Given

Names = Param("Handles.", max_items=256, max_chars=200)
Session = Annotated[str, Param("From joining or opening; not needed if you joined just one room.", max_chars=200)]
Action = Literal[
    "raise", "vote", "pass", "leave", "collect", "order", "skip", "cancel", "whisper", "eliminate", "release", "poll",
    "reveal", "close",
]  # fmt: skip
_NEXT = {
    "speak": "room_send(content=…)",
    "raise": "room_act(action='raise', weight=0…10)",
    "vote": "room_act(action='vote', text=…)",
    "order": "room_act(action='order', names=[…])",
    "reveal": "room_act(action='reveal')",
}


class Answer(BaseModel):
    """What stands in it depends on the call; see the tool."""

    model_config = ConfigDict(extra="allow")
    _session: str = PrivateAttr("")


class Opened(BaseModel):
    """A room is open; the session is shown once."""

    room: str
    mode: str
    session: str
    state: str
    next: str


class Joined(BaseModel):
    """A member is in; the session is shown once."""

    ok: bool
    room: str
    isHost: bool  # noqa: N815 (the name that clients know)
    session: str
    state: str
    phase: str
    next: str


def _take_back(bus: Bus, result: BaseModel) -> None:
    """An answer that never reached its caller has delivered nothing."""
    if isinstance(result, Answer) and result._session:
        rooms_waiting.take_back(bus, rooms_open.default_room_of(result._session), result._session)


@command(group="meetings", writes=True)
def room_open(
    bus: Bus,
    room: Annotated[str, Param("Its name.", max_chars=200)],
    mode: Annotated[
        Literal["moderated", "mention", "free"], Param("The host orders; @mentions pass the floor; or anybody speaks.")
    ] = "moderated",
    host: Annotated[str, Param("Your handle as host; needed if moderated.", max_chars=200)] = "",
    topic: Annotated[str, Param("What it is about.", max_chars=2000)] = "",
    description: Annotated[str, Param("Who the host is.", max_chars=1000)] = "",
    participants: Annotated[list[str], Names] = [],  # noqa: B006
    aliases: Annotated[list[str], Param("@B:MJ,boss", max_items=64, json=True)] = [],  # noqa: B006
    first_speaker: Annotated[str, Param("Of the participants.", max_chars=200)] = "",
    barrier: Annotated[int, Param("It starts with so many; 0 = 2.", low=0, high=64)] = 0,
    turn_timeout_s: Annotated[int, Param("How long a turn may take; 0 = for ever.", low=0, high=86_400)] = 0,
    force: Annotated[bool, Param("Close an open room of that name.")] = False,
) -> Opened:
    """Open a room to talk in; the session makes you its host. Others come in by room_join."""
    wish = {
        "mode": mode, "topic": topic, "description": description, "host": host, "participants": participants,
        "aliases": rooms_open.read_aliases(aliases), "first_speaker": first_speaker, "barrier": barrier,
        "turn_timeout_s": turn_timeout_s, "filepath": "",
    }  # fmt: skip
    found, session = rooms_open.open_room(bus, room, wish, force)
    rooms_sessions.remember(bus, host, session)
    follow_up = "room_wait, then room_act(action='collect')" if mode == "moderated" else "room_wait"
    return Opened(room=found.name, mode=mode, session=session, state=found.head["state"], next=follow_up)


@command(group="meetings", writes=True)
def room_join(
    bus: Bus,
    name: Annotated[str, Param("Your handle.", max_chars=200)],
    room: Annotated[str, Param("Not needed if one is open.", max_chars=200)] = "",
    description: Annotated[str, Param("Who you are.", max_chars=1000)] = "",
    session: Annotated[str, Param("Yours, to come back.", max_chars=200)] = "",
) -> Joined:
    """Come into a room under a name; then room_wait. Read by tools, not in notes of rooms."""
    where = rooms_open.default_room(bus, room, session, name)
    found, mine, _ = rooms.join(bus, where, name, "", description, session)
    rooms_sessions.remember(bus, name, mine)
    who, head = rooms.who(found, mine), found.head
    return Joined(
        ok=True, room=found.name, isHost=who.host, session=mine, state=head["state"], phase=head["phase"],
        next="room_wait",
    )  # fmt: skip


@command(group="meetings", writes=True, idempotent=True)
def room_send(
    bus: Bus,
    content: Annotated[str, Param("The message; by mention it must name an @member or @all.")],
    to: Annotated[list[str], Names] = [],  # noqa: B006
    private: Annotated[bool, Param("Only for `to`, else those it mentions.")] = False,
    mention: Annotated[str, Param("Whom it is for.", max_chars=200)] = "",
    key: Annotated[str, Param("Makes a repeat safe.", max_chars=64)] = "",
    session: Session = "",
) -> Answer:
    """Speak in a room when you have the floor; `to` makes it private."""
    mine = rooms_sessions.recall(bus, session)
    done = rooms_acting.say(bus, rooms_open.default_room_of(mine), mine, Wish(content, to, private, mention, key))
    return Answer(**sent(done), next=following(bus, [], mine))


@command(group="meetings", writes=True)
def room_act(
    bus: Bus,
    action: Annotated[Action, Param("raise, vote, pass, leave, whisper to the host; the others are the host's.")],
    names: Annotated[list[str], Names] = [],  # noqa: B006
    weight: Annotated[int, Param("raise: 0 = not now, to 10.")] = -1,
    text: Annotated[str, Param("whisper, vote: ballot, poll: question.")] = "",
    deadline_s: Annotated[int, Param("collect, poll.", low=0, high=86_400)] = 0,
    force: Annotated[bool, Param("reveal: now.")] = False,
    session: Session = "",
) -> Answer:
    """Do what room_wait asks for. Host: collect hands, order speakers, poll and reveal, close."""
    mine = rooms_sessions.recall(bus, session)
    done = rooms_acting.act(
        bus, rooms_open.default_room_of(mine), mine, action, Given(tuple(names), weight, text, deadline_s, force)
    )
    head = done.found.head
    due = room_news.obligations(done.found.setup, head, done.who)
    facts: dict[str, Any] = {"already": True} if done.already else {}
    if action == "close":
        facts["file"] = rooms_export.place(done.found)
    return Answer(
        ok=True, number=done.number, phase=head["phase"], round=head["round"], obligations=due, **facts,
        next=following(bus, due, mine) if done.found.is_open and action != "leave" else "",
    )  # fmt: skip


@command(group="meetings", writes=True, idempotent=True, undo=_take_back)
async def room_wait(
    bus: Bus,
    after: Annotated[int, Param("The last cursor you have; 0 = the last answer's.", low=0)] = 0,
    timeout_s: Annotated[int, Param("At most 50 s.", low=0, high=50, clamp=True)] = 45,
    wake: Annotated[Literal["addressed", "all"], Param("all: every message wakes.")] = "addressed",
    session: Session = "",
) -> Answer:
    """Wait until you must act, are addressed, or the room closes; a time-out is normal: call again."""
    mine = await waits.on_thread(lambda: rooms_sessions.recall(bus, session))
    found = await rooms_waiting.wait(bus, rooms_open.default_room_of(mine), mine, after, timeout_s, wake == "all")
    follow_up = {"closed": "", "superseded": ""}.get(
        found["status"], following(bus, found.get("obligations", []), mine)
    )
    made = Answer(**found, next=follow_up)
    made._session = mine
    return made


@command(group="meetings", writes=True, idempotent=True, undo=_take_back)
def room_read(
    bus: Bus,
    what: Annotated[Literal["unread", "history", "status", "agents"], Param("What.")] = "unread",
    limit: Annotated[int, Param("1 to 500.", low=1, high=500)] = 50,
    after: Annotated[int, Param("Only later ones.", low=0)] = 0,
    number: Annotated[int, Param("One message,", low=0)] = 0,
    offset: Annotated[int, Param("from here on.", low=0)] = 0,
    session: Session = "",
) -> Answer:
    """Read a room: unread messages, its history, how it stands, who is there."""
    mine = rooms_sessions.recall(bus, session)
    found = rooms.settled(bus, rooms_open.default_room_of(mine))
    who = rooms.who(found, mine)
    if what in ("status", "agents"):
        return Answer(**status(bus, found, who)) if what == "status" else Answer(agents=_members(found))
    if number:
        return Answer(messages=[rooms_reading.one(bus, found, who, number, offset)])
    if what == "history":
        rows, more = rooms_reading.history(bus, found, who, limit, after)
        return Answer(messages=rows, more=more, cursor=rows[-1]["number"] if rows else after)
    start = rooms_reading.take(bus, found, who, after)
    page = rooms_reading.news(bus, found, who, start, limit)
    rooms_reading.delivered(bus, found, who, page["cursor"])
    left = rooms_reading.unread(bus, found, who) - len(page["messages"])
    made = Answer(messages=page["messages"], unread_left=max(0, left), cursor=page["cursor"])
    made._session = mine
    return made


def sent(done: Done) -> dict[str, Any]:
    """What a sender is told."""
    head = done.found.head
    shown = [head["members"][k]["handle"] for k in turns.queue(head)]
    facts: dict[str, Any] = {"number": done.number, "duplicate": done.already}
    if done.said is not None:
        unknown = [{"text": t, "nearest": n} for t, n in done.said.unknown]
        facts |= {"recipients": done.said.record["to"], "unknown_mentions": unknown}
        facts["ignored_all"] = done.said.ignored_all
    floor = head["members"][head["floor"]]["handle"] if head["floor"] else ""
    return {**facts, "floor": floor, "queue": shown}


def status(bus: Bus, found: rooms.Room, who: Any) -> dict[str, Any]:
    """A room's state as somebody may know it; it moves no cursor."""
    head = found.head
    poll = head["poll"]
    recent, _ = rooms_reading.history(bus, found, who, 50)
    to_me = [m for m in recent if who.handle and who.handle in m["to"]]
    return {
        **room_news.public(found.setup, head),
        "queue": [head["members"][k]["handle"] for k in turns.queue(head)],
        "poll": {"question": poll["question"], "ballots": len(poll["ballots"])} if poll else {},
        "unread": rooms_reading.unread(bus, found, who),
        "mentions": to_me[-5:],
        "waiting_for": room.waiting_for(found.setup, head),
    }


def following(bus: Bus, due: list[dict[str, Any]], session: str) -> str:
    """The next call; at the command line with its session, so that it can be pasted."""
    call = _NEXT[due[0]["do"]] if due else "room_wait()"
    if bus.caller.channel != "cli":
        return call.removesuffix("()")
    return f"{call[:-1]}{'' if call.endswith('()') else ', '}session='{session}')"


def _members(found: rooms.Room) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = room_news.public(found.setup, found.head)["members"]
    return rows
