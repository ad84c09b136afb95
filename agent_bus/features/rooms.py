"""Conversations by mention, with the names that clients of turn-taking hubs know: `@name` passes the floor."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PrivateAttr

from agent_bus import ids
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import mentions, turns
from agent_bus.domain import room as rules
from agent_bus.domain import room_words as words
from agent_bus.domain.room_acts import Who
from agent_bus.domain.room_messages import Wish
from agent_bus.errors import BusError
from agent_bus.operations import (
    rooms,
    rooms_acting,
    rooms_open,
    rooms_paths,
    rooms_reading,
    rooms_sessions,
    rooms_waiting,
    waits,
)
from agent_bus.operations.rooms import Room
from agent_bus.operations.rooms_acting import Done

Handle = Annotated[str, Param("Yours.", max_chars=200)]
Where = Annotated[str, Param("Not needed if one is open.", max_chars=200)]
Session = Annotated[str, Param("From joining.", max_chars=200)]
After = Annotated[int, Param("The last cursor you have.", low=0)]
Timeout = Annotated[int, Param("At most 50 s.", low=0, high=50, clamp=True)]
Wake = Annotated[Literal["addressed", "all"], Param("all: every message wakes.")]
Content = Annotated[str, Param("Must mention an @participant or @all.")]


class TurnResult(BaseModel):
    """Where the conversation stands for you, and what is new."""

    model_config = ConfigDict(extra="allow")
    _session: str = PrivateAttr("")
    status: str
    active_turn: str
    new_messages: list[dict[str, Any]]
    current_queue: list[str]
    active_participants: list[str]
    system_notice: str
    error: str
    room: str
    cursor: int
    next: str


class Participants(BaseModel):
    """Who takes part, whose turn it is."""

    model_config = ConfigDict(extra="allow")
    participants: list[dict[str, Any]]
    active_turn: str
    turn_queue: list[str]
    message_count: int


class Initialized(BaseModel):
    """A conversation is ready to be joined; the session has the powers of a host, without a voice."""

    status: str
    filepath: str
    topic: str
    participants: list[str]
    first_speaker: str
    aliases: dict[str, list[str]]
    room: str
    session: str
    message: str


def _take_back(bus: Bus, result: BaseModel) -> None:
    """An answer that never reached its caller has delivered nothing."""
    if isinstance(result, TurnResult):
        rooms_waiting.take_back(bus, result.room, result._session)


@command(group="rooms", writes=True)
def init_conversation(
    bus: Bus,
    filepath: Annotated[str, Param('A note in the vault, new, .md; "" = none.', max_chars=500)],
    participants: Annotated[list[str], Param("Handles.", max_items=64, max_chars=200)],
    topic: Annotated[str, Param("What it is about.", max_chars=2000)] = "",
    room: Annotated[str, Param("Its name; else from the path.", max_chars=200)] = "",
    first_speaker: Annotated[str, Param("Else the first who is there.", max_chars=200)] = "",
    aliases: Annotated[list[str], Param("@B:MJ,boss", max_items=64, json=True)] = [],  # noqa: B006
    force: Annotated[bool, Param("Close an open room of that name.")] = False,
    barrier: Annotated[int, Param("It starts with so many; 0 = 2.", low=0, high=64)] = 0,
    turn_timeout_s: Annotated[int, Param("0 = for ever.", low=0, high=86_400)] = 0,
) -> Initialized:
    """Make a conversation; its participants come in by join_conversation."""
    rooms_paths.check(bus, filepath)
    wish = {
        "mode": rules.MENTION, "topic": topic, "description": "", "host": "", "participants": participants,
        "aliases": rooms_open.read_aliases(aliases), "first_speaker": first_speaker or "", "barrier": barrier,
        "turn_timeout_s": turn_timeout_s, "filepath": filepath,
    }  # fmt: skip
    found, session = rooms_open.open_room(bus, room or rooms_paths.name_for(bus, filepath), wish, force)
    setup = found.setup
    first = setup["first_speaker"] or next(iter(setup["participants"]), "")
    return Initialized(
        status="initialized", filepath=filepath, topic=topic, participants=words.at(setup["participants"]),
        first_speaker=words.sign(first), room=found.name,
        aliases={words.sign(k): v for k, v in setup["aliases"].items()}, session=session,
        message=f"Room initialized with {len(setup['participants'])} participants.",
    )  # fmt: skip


@command(group="rooms", writes=True, undo=_take_back)
async def join_conversation(
    bus: Bus,
    handle: Handle,
    name: Annotated[str, Param("Shown.", max_chars=200)] = "",
    room: Where = "",
    session: Session = "",
    timeout_s: Timeout = 45,
) -> TurnResult:
    """Come into a conversation and wait for the others. Talk by these tools; do not read its note."""
    where = await waits.on_thread(lambda: rooms_open.default_room(bus, room, session, handle))
    found, mine, _ = await waits.on_thread(lambda: rooms.join(bus, where, handle, name, "", session))
    rooms_sessions.remember(bus, handle, mine)
    gathering = found.head["state"] == rules.GATHERING
    told = await rooms_waiting.wait(bus, found.name, mine, 0, timeout_s if gathering else 0, False)
    made = await waits.on_thread(partial(_result, bus, found.name, told, mine))
    bare = made.status in ("timeout", "message_received") and not made.new_messages
    running = not told.get("waiting_for") or not gathering
    status = "joined" if bare and running and made.status != "closed" else made.status
    return made.model_copy(update={"status": status, "session": mine})


@command(group="rooms", writes=False)
def list_participants(bus: Bus, room: Where = "") -> Participants:
    """Who takes part, whose turn it is, who follows."""
    found = rooms.settled(bus, rooms_open.default_room(bus, room, ""))
    setup, head = found.setup, found.head
    rows = [_row(bus, found, key, one) for key, one in head["members"].items()]
    first = setup["first_speaker"] or next(iter(setup["participants"]), "")
    return Participants(
        participants=rows, **words.turn(found.head), turn_queue=words.queue(found.head), room=found.name,
        active_participants=[r["handle"] for r in rows if r["status"] == "active"], first_speaker=words.sign(first),
        topic=setup["topic"], filepath=setup["filepath"], message_count=head["messages"],
        aliases={words.sign(k): v for k, v in setup["aliases"].items()},
    )  # fmt: skip


@command(group="rooms", writes=True, idempotent=True, undo=_take_back)
async def wait_for_turn(
    bus: Bus,
    handle: Handle,
    room: Where = "",
    session: Session = "",
    after: After = 0,
    timeout_s: Timeout = 45,
    wake: Wake = "addressed",
) -> TurnResult:
    """Wait for your turn or a message for you; a time-out is normal: call again."""
    mine = await waits.on_thread(lambda: rooms_sessions.recall(bus, session, room, handle))
    where = rooms_open.default_room_of(mine)
    await waits.on_thread(lambda: _check(bus, where, mine, handle))
    told = await rooms_waiting.wait(bus, where, mine, after, timeout_s, wake == "all")
    return await waits.on_thread(partial(_result, bus, where, told, mine))


@command(group="rooms", writes=True, idempotent=True, undo=_take_back)
async def send_message(
    bus: Bus,
    sender: Handle,
    content: Content,
    is_private: Annotated[bool, Param("Only for `to`, else those it mentions.")] = False,
    to: Annotated[list[str], Param("Whom, privately.", max_items=64)] = [],  # noqa: B006
    key: Annotated[str, Param("Makes a repeat safe.", max_chars=64)] = "",
    block: Annotated[bool, Param("Wait for your next turn.")] = True,
    room: Where = "",
    session: Session = "",
    timeout_s: Timeout = 45,
) -> TurnResult:
    """Speak when it is your turn: whom you @mention speaks next. Then it waits as wait_for_turn."""
    wish = Wish(content, to, is_private, "", key)
    mine, made = await waits.on_thread(lambda: _send(bus, sender, wish, room, session))
    if not block or made.status != "sent":
        return made
    told = await rooms_waiting.wait(bus, made.room, mine, 0, timeout_s, False)
    after = await waits.on_thread(partial(_result, bus, made.room, told, mine))
    return after.model_copy(update=made.model_extra or {})


@command(group="rooms", writes=True, idempotent=True, undo=_take_back)
async def wait_for_message(
    bus: Bus, handle: Handle, room: Where = "", session: Session = "", after: After = 0, timeout_s: Timeout = 45
) -> TurnResult:
    """The same as wait_for_turn."""
    return await wait_for_turn(bus, handle, room, session, after, timeout_s)


@command(group="rooms", writes=True, idempotent=True)
def broadcast_message(
    bus: Bus, sender: Handle, content: Content, room: Where = "", session: Session = ""
) -> TurnResult:
    """Speak to all, without waiting."""
    return _send(bus, sender, Wish(content), room, session)[1]


@command(group="rooms", writes=True, idempotent=True)
def whisper_message(
    bus: Bus,
    sender: Handle,
    target: Annotated[list[str], Param("Whom.", max_items=64)],
    content: Annotated[str, Param("The message.")],
    room: Where = "",
    session: Session = "",
) -> TurnResult:
    """Speak to some alone, without waiting."""
    return _send(bus, sender, Wish(content, target, True), room, session)[1]


def _send(bus: Bus, sender: str, wish: Wish, room: str, session: str) -> tuple[str, TurnResult]:
    """Posts a message; a declared sender who has not joined is joined first. `not_your_turn` is an answer."""
    mine = _joined(bus, sender, room, session)
    where = rooms_open.default_room_of(mine)
    _check(bus, where, mine, sender)
    try:
        done = rooms_acting.say(bus, where, mine, wish)
    except BusError as error:
        if error.code != "not_your_turn":
            raise
        found = rooms.settled(bus, where)
        told = {"status": error.code, **rooms_waiting.place(found, rooms.who(found, mine))}
        return mine, _result(bus, where, told).model_copy(update={"error": str(error)})
    made = _result(bus, where, {"status": "sent"})
    return mine, made.model_copy(update=_facts(done))


def _joined(bus: Bus, sender: str, room: str, session: str) -> str:
    try:
        return rooms_sessions.recall(bus, session, room, sender)
    except BusError as error:
        where = rooms_open.default_room(bus, room, "", sender) if error.code == "bad_token" else ""
        member = rooms.settled(bus, where).head["members"].get(mentions.key(sender)) if where else None
        if member is None or member["s"] != rules.NOT_JOINED:
            raise
    _, mine, _ = rooms.join(bus, where, sender, "", "", "")
    rooms_sessions.remember(bus, sender, mine)
    return mine


def _check(bus: Bus, where: str, session: str, handle: str) -> None:
    """Refuses a handle that is nobody's, or whose session it is not."""
    found = rooms.settled(bus, where)
    key = ids.fold(rules.names(found.head).get(mentions.key(handle), ""))
    if not key:
        raise BusError("not_found", f"there is no participant {handle[:60]!a}.", "list_participants shows them.")
    if rooms.who(found, session).key != key:
        raise BusError("bad_token", f"this is not the session of {handle}.", "Give your own.")


def _result(bus: Bus, where: str, told: dict[str, Any], session: str = "") -> TurnResult:
    found = rooms.settled(bus, where)
    speaks = any(due["do"] == "speak" for due in told.get("obligations", []))
    status = told["status"] if told["status"] != "ready" else "your_turn" if speaks else "message_received"
    extra = {k: told[k] for k in ("waiting_for", "queue_position") if told.get(k)}
    if "waiting_for" in extra:
        extra["waiting_for"] = words.at(extra["waiting_for"])
    calls = {"your_turn": "send_message", "closed": "", "superseded": ""}
    active = [m["handle"] for m in found.head["members"].values() if m["s"] == turns.ACTIVE]
    made = TurnResult(
        status=status, **words.turn(found.head), new_messages=[words.message(m) for m in told.get("messages", [])],
        current_queue=words.queue(found.head), active_participants=words.at(active), error="",
        system_notice=words.notice(told),
        room=found.name, cursor=told.get("cursor", 0), next=calls.get(status, "wait_for_turn"), **extra,
    )  # fmt: skip
    made._session = session
    return made


def _row(bus: Bus, found: Room, key: str, one: dict[str, Any]) -> dict[str, Any]:
    acked = rooms_reading.cursor(bus, found, Who(key, one["handle"], False))["acked"]
    return {
        "id": key, "name": one["name"], "handle": words.sign(one["handle"]), "status": one["s"],
        "joined_at": one["joined_at"], "last_read_seq_id": acked, "aliases": one["aliases"],
    }  # fmt: skip


def _facts(done: Done) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": done.number, "duplicate": done.already}
    if done.said is not None:
        facts["unknown_mentions"] = [{"text": t, "nearest": n} for t, n in done.said.unknown]
        facts["ignored_all"] = done.said.ignored_all
    return facts
