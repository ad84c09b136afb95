"""Acts in a room by their names, for every face: who acts is known by the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent_bus.bus import Bus
from agent_bus.domain import room_acts, room_messages
from agent_bus.domain.room_acts import Record, Who
from agent_bus.domain.room_messages import Said, Wish
from agent_bus.domain.turns import Value
from agent_bus.errors import BusError, invalid
from agent_bus.operations import rooms, rooms_export
from agent_bus.operations.rooms import Room

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "raise": ("weight",), "vote": ("text",), "pass": (), "leave": (), "collect": ("names", "deadline_s"),
    "order": ("names",), "skip": (), "cancel": (), "whisper": ("names", "text"), "eliminate": ("names",),
    "release": ("names",), "poll": ("names", "text", "deadline_s"), "reveal": ("force",), "close": (),
}  # fmt: skip
"""What each act takes."""


@dataclass(frozen=True)
class Given:
    """What acts may take; -1, empty and False are not given."""

    names: tuple[str, ...] = ()
    weight: int = -1
    text: str = ""
    deadline_s: int = 0
    force: bool = False


@dataclass(frozen=True)
class Done:
    """What came of an act or a message: the room after it, who acted, its number, and whether it was done before."""

    found: Room
    who: Who
    number: int
    already: bool = False
    said: Said | None = None


def act(bus: Bus, name: str, session: str, action: str, given: Given) -> Done:
    """Does one act.

    Raises:
        BusError: `invalid` naming a parameter that the act does not have; what the act's rules say.
    """
    _check(action, given)
    if action == "whisper":
        return say(bus, name, session, Wish(given.text, given.names, private=True), whisper=True)
    whose: list[Who] = []
    kept: list[str] = []

    def make(found: Room) -> Record | None:
        who = rooms.who(found, session)
        whose[:] = [who]
        if action == "close" and who.host and not found.is_open:
            return None
        if action == "vote":
            room_acts.vote(found.setup, found.head, who, given.text, "")
            kept[:] = kept or [rooms.ballot(bus, found, given.text)]
            return room_acts.vote(found.setup, found.head, who, given.text, kept[0])
        if action == "reveal":
            ballots = rooms.ballots(bus, found) if who.host else {}
            return room_acts.reveal(found.setup, found.head, who, given.force, ballots)
        return _ACTS[action](found.setup, found.head, who, given)

    found, made = rooms.act(bus, name, make)
    if action == "close":
        rooms_export.make(bus, found)
    return Done(found, whose[0], made["number"] if made else found.head["number"], made is None)


def say(bus: Bus, name: str, session: str, wish: Wish, whisper: bool = False) -> Done:
    """Posts a message; the same one again gives the first one's number.

    Raises:
        BusError: what the rules of messages say.
    """
    last: list[tuple[Who, int, Said | None]] = []

    def make(found: Room) -> Record | None:
        who = rooms.who(found, session)
        if not whisper and (number := room_messages.repeated(found.setup, found.head, who, wish)):
            last[:] = [(who, number, None)]
            return None
        moderated = found.setup["mode"] == "moderated"
        tell = room_messages.whisper if whisper and moderated else room_messages.message
        said = tell(found.setup, found.head, who, wish)
        last[:] = [(who, 0, said)]
        return said.record

    found, made = rooms.act(bus, name, make)
    who, number, said = last[0]
    return Done(found, who, made["number"] if made else number, made is None, said)


def _check(action: str, given: Given) -> None:
    takes = PARAMETERS[action]
    for name, value in vars(given).items():
        is_given = value not in ((), "", False) and value != {"weight": -1, "deadline_s": 0}.get(name)
        if is_given and name not in takes:
            raise invalid(name, f"is not for {action}", f"{action} takes {', '.join(takes) or 'nothing'}.")
    if "weight" in takes and given.weight == -1:
        raise invalid("weight", "must be given", "0 skips this round, 1 to 10 say how much you want to speak.")
    if action in ("eliminate", "release") and len(given.names) != 1:
        raise invalid("names", f"must be exactly one for {action}", "Name the member.")
    if action == "whisper" and not given.text.strip():
        raise BusError("bad_content", "text must not be blank.", "Say something.")


_ACTS: Mapping[str, Callable[[Value, Value, Who, Given], Record]] = {
    "raise": lambda setup, head, who, given: room_acts.raise_hand(setup, head, who, given.weight),
    "pass": lambda setup, head, who, given: room_acts.give_up(setup, head, who),
    "leave": lambda setup, head, who, given: room_acts.leave(setup, head, who),
    "collect": lambda setup, head, who, given: room_acts.collect(setup, head, who, given.names, given.deadline_s),
    "order": lambda setup, head, who, given: room_acts.order(setup, head, who, given.names),
    "skip": lambda setup, head, who, given: room_acts.skip(setup, head, who),
    "cancel": lambda setup, head, who, given: room_acts.cancel(setup, head, who),
    "eliminate": lambda setup, head, who, given: room_acts.eliminate(setup, head, who, given.names[0]),
    "release": lambda setup, head, who, given: room_acts.release(setup, head, who, given.names[0]),
    "poll": lambda setup, head, who, given: room_acts.poll(setup, head, who, given.text, given.names, given.deadline_s),
    "close": lambda setup, head, who, given: room_acts.close(setup, head, who),
}
