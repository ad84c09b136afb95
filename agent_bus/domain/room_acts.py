"""What may be done in a room: each function checks one act on a head and gives the record that does it. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_bus import ids
from agent_bus.domain import mentions, room, rounds
from agent_bus.domain.turns import ACTIVE, Value, queue
from agent_bus.errors import BusError, invalid, too_large

MEMBERS, ORDER, HANDLE_CHARS, WORDS = 64, 256, 64, 1000
RESERVED = ("all", "system", "host", "everyone")
Record = dict[str, Any]


@dataclass(frozen=True)
class Who:
    """Who acts: a member, the host, or both; `key` and `handle` are "" for a host without a voice."""

    key: str
    handle: str
    host: bool


def handle(given: str, name: str = "handle") -> str:
    """A handle as it is stored: without its sign, in NFC.

    Raises:
        BusError: `bad_handle` with the rule.
    """
    text = unicodedata.normalize("NFC", given.strip())
    text = text[1:] if text[:1] in tuple(mentions.SIGNS) else text
    good = "Use letters and digits of any script, inside also _ - . , 1 to 64 characters."
    inner = all(c in "_-." or unicodedata.category(c)[0] in "LNM" for c in text)
    ends = bool(text) and all(unicodedata.category(c)[0] in "LNM" for c in (text[0], text[-1]))
    if not inner or not ends or unicodedata.category(text[0])[0] == "M" or len(text) > HANDLE_CHARS:
        raise BusError("bad_handle", f"{name} {given[:70]!a} is no handle.", good)
    if ids.fold(text) in RESERVED:
        raise BusError("bad_handle", f"{name} {text} is reserved.", "Take another name.")
    return text


def join(setup: Value, head: Value, given: str, name: str, description: str, sha: str, owner: Value) -> Record:
    """A member comes in, or back; that its handle is free was checked."""
    check_open(head)
    shown = handle(given, "name")
    old = head["members"].get(ids.fold(shown))
    if old is None:
        if ids.fold(shown) in room.names(head):
            raise BusError("handle_taken", f"{shown} is another member's alias.", "Take another name.")
        if len(head["members"]) >= MEMBERS:
            raise too_large("room", len(head["members"]) + 1, MEMBERS, "members")
    return {"kind": "join", "from": old["handle"] if old else shown, "name": name, "description": description,
            "session_sha256": sha, "owner": dict(owner)}  # fmt: skip


def leave(setup: Value, head: Value, who: Who) -> Record:
    """A member goes; the host cannot."""
    check_open(head)
    if who.host:
        raise BusError("refused", "the host cannot leave.", "close ends the room.")
    return {"kind": "leave", "from": who.handle, "who": who.key}


def eliminate(setup: Value, head: Value, who: Who, name: str) -> Record:
    """The host retires a member for good."""
    key = _target(setup, head, who, name)
    if head["members"][key]["s"] == room.ELIMINATED:
        raise BusError("conflict", f"{name} is eliminated already.", "Nothing is left to do.")
    return {"kind": "eliminate", "from": who.handle, "who": key, "name": head["members"][key]["handle"]}


def release(setup: Value, head: Value, who: Who, name: str) -> Record:
    """The host frees a handle whose session is lost."""
    key = _target(setup, head, who, name)
    if head["members"][key]["s"] == room.LEFT:
        raise BusError("conflict", f"{name} has left.", "The handle is free to join.")
    return {"kind": "release", "from": who.handle, "who": key, "name": head["members"][key]["handle"]}


def give_up(setup: Value, head: Value, who: Who) -> Record:
    """The holder of the floor lets its turn go."""
    check_running(setup, head, who)
    check_turn(head, who)
    return {"kind": "pass", "from": who.handle, "who": who.key}


def skip(setup: Value, head: Value, who: Who) -> Record:
    """The host takes the floor from its holder."""
    check_host(setup, head, who)
    if not head["floor"]:
        raise wrong_phase(head, "nobody has the floor")
    return {"kind": "turn_skipped", "from": who.handle, "who": head["floor"]}


def collect(setup: Value, head: Value, who: Who, names: Sequence[str], deadline_s: int) -> Record:
    """The host asks who wants to speak; with names a round for those alone."""
    _idle(setup, head, who)
    scope = members(setup, head, names, "names")
    required = scope or rounds.participants({**head, "scope": []}, room.host_key(setup))
    if not required:
        raise BusError("no_recipient", "there is nobody to ask.", "Wait until somebody has joined.")
    return {"kind": "collect", "from": who.handle, "scope": scope, "required": required, "deadline_s": deadline_s}


def raise_hand(setup: Value, head: Value, who: Who, weight: int) -> Record:
    """A participant says how much it wants to speak: 0 = not this time, to 10."""
    check_running(setup, head, who)
    if not 0 <= weight <= 10:
        raise invalid("weight", f"must be 0 to 10, got {weight}", "0 skips this round.")
    if head["phase"] != rounds.COLLECTING:
        raise wrong_phase(head, "hands are raised after collect")
    if who.host:
        raise BusError("refused", "the host does not raise a hand.", "order takes the host as well.")
    if who.key not in rounds.participants(head, room.host_key(setup)):
        raise BusError("refused", "this round is for others.", "Wait for the next one.")
    if who.key in head["decided"]:
        raise BusError("conflict", f"{who.handle} has raised {head['decided'][who.key]}.", "A hand is raised once.")
    return {"kind": "raise", "from": who.handle, "who": who.key, "weight": weight}


def order(setup: Value, head: Value, who: Who, names: Sequence[str]) -> Record:
    """The host says who speaks, one by one; nobody ends the round."""
    check_host(setup, head, who)
    if len(names) > ORDER:
        raise too_large("names", len(names), ORDER, "names")
    if names or head["phase"] != rounds.ORDERING:
        keys = members(setup, head, names, "names", host=True)
        outside = [k for k in keys if head["scope"] and k not in (*head["scope"], room.host_key(setup))]
        if outside:
            raise BusError("refused", f"{outside[0]} is not in this round.", "Order those of its scope.")
    if head["phase"] != rounds.ORDERING:
        raise wrong_phase(head, "an order is given when all have decided")
    return {"kind": "order", "from": who.handle, "order": keys if names else []}


def cancel(setup: Value, head: Value, who: Who) -> Record:
    """The host drops the open vote, else the running round."""
    check_host(setup, head, who)
    if not head["poll"] and head["phase"] not in (rounds.COLLECTING, rounds.ORDERING, rounds.SPEAKING):
        raise wrong_phase(head, "there is no round and no vote")
    return {"kind": "cancel", "from": who.handle, "poll": bool(head["poll"])}


def poll(setup: Value, head: Value, who: Who, question: str, names: Sequence[str], deadline_s: int) -> Record:
    """The host asks some members for a ballot each."""
    _idle(setup, head, who, moderated=False)
    if not question.strip():
        raise invalid("text", "must be the question", "Ask something.")
    voters = members(setup, head, names, "names")
    if not voters:
        raise BusError("no_recipient", "a vote needs voters.", "Give their names.")
    return {"kind": "poll", "from": who.handle, "question": question.strip(), "voters": voters,
            "deadline_s": deadline_s}  # fmt: skip


def vote(setup: Value, head: Value, who: Who, ballot: str, document: str) -> Record:
    """A voter's ballot; the record names only its document."""
    check_open(head)
    check_alive(head, who)
    if not head["poll"]:
        raise wrong_phase(head, "there is no vote")
    if who.key not in head["poll"]["voters"]:
        raise BusError("refused", f"{who.handle or 'the host'} has no vote here.", "Only the listed voters have.")
    if who.key in head["poll"]["ballots"]:
        raise BusError("conflict", f"{who.handle} has voted.", "A ballot is cast once.")
    if not ballot.strip():
        raise invalid("text", "must be the ballot", "Say for what you vote.")
    return {"kind": "vote", "from": who.handle, "who": who.key, "voter": who.key, "ballot": document}


def reveal(setup: Value, head: Value, who: Who, force: bool, ballots: Value) -> Record:
    """All ballots at once, as a message of the system."""
    check_host(setup, head, who)
    if not head["poll"]:
        raise wrong_phase(head, "there is no vote")
    if not force and (missing := rounds.awaited(head)):
        raise wrong_phase(head, f"ballots are missing of {', '.join(missing)}")
    rows = [f"{head['members'][k]['handle']} → {ballots.get(k, '(no ballot)')}" for k in head["poll"]["voters"]]
    text = "\n".join([head["poll"]["question"], *rows])
    return {"kind": room.REVEAL, "from": "system", "who": "", "to": [], "content": text}


def close(setup: Value, head: Value, who: Who) -> Record:
    """The host ends the room."""
    if not who.host:
        raise host_only()
    return {"kind": "close", "from": who.handle or "host"}


def members(setup: Value, head: Value, given: Sequence[str], name: str, host: bool = False) -> list[str]:
    """The keys of active members that are named; all or none is taken.

    Raises:
        BusError: `unknown_recipient`, `eliminated`, `recipient_left`; `invalid` for the host where it is not meant.
    """
    found = []
    for one in given:
        key = known(head, one)
        state = head["members"][key]["s"]
        if key == room.host_key(setup) and not host:
            raise invalid(name, "must not have the host in it", "Leave the host out.")
        if state == room.ELIMINATED:
            raise BusError("eliminated", f"{one} is eliminated.", "Leave it out.")
        if state != ACTIVE:
            raise BusError("recipient_left", f"{one} is not here.", "Leave it out.")
        found.append(key)
    return found if host else list(dict.fromkeys(found))


def known(head: Value, given: str) -> str:
    """The key of the member that a name means.

    Raises:
        BusError: `unknown_recipient` with the nearest name.
    """
    names = room.names(head)
    word = given.strip().lstrip(mentions.SIGNS)
    if (found := names.get(ids.fold(word))) is None:
        near = mentions.nearest(word, names)
        hint = f"Did you mean {near}?" if near else f"Members: {', '.join(list(names.values())[:20])}."
        raise BusError("unknown_recipient", f"there is no member {word[:60]!a}.", hint)
    return ids.fold(found)


def check_open(head: Value) -> None:
    """Refuses acts in a closed room."""
    if head["state"] == room.CLOSED:
        shut = head["closed"]
        raise BusError("closed", f"the room was closed at {shut['at']} by {shut['by']}.", "Its history can be read.")


def check_alive(head: Value, who: Who) -> None:
    """Refuses acts of the eliminated."""
    if who.key and head["members"][who.key]["s"] == room.ELIMINATED:
        raise BusError("eliminated", f"{who.handle} is eliminated.", "Reading and waiting are still allowed.")


def check_running(setup: Value, head: Value, who: Who) -> None:
    """Refuses acts of the eliminated, in a closed room, and before the barrier lifts."""
    check_open(head)
    check_alive(head, who)
    if head["state"] == room.GATHERING:
        names = ", ".join(room.waiting_for(setup, head)) or "one more member"
        raise BusError("not_started", f"the room waits for {names}.", "Wait; it starts by itself.")


def check_turn(head: Value, who: Who) -> None:
    """Refuses acts of those who do not have the floor."""
    if head["floor"] != who.key or not who.key:
        holder = head["members"][head["floor"]]["handle"] if head["floor"] else "nobody"
        line = queue(head)
        place = f" {who.handle} is number {line.index(who.key) + 1} in the queue." if who.key in line else ""
        raise BusError("not_your_turn", f"{holder} has the floor.{place}", "Wait for your turn.")


def check_host(setup: Value, head: Value, who: Who) -> None:
    """Refuses the host's acts to others."""
    if not who.host:
        raise host_only()
    check_open(head)


def host_only() -> BusError:
    """The error for what only the host may do."""
    return BusError("host_only", "only the host may do that.", "Whisper to the host.")


def wrong_phase(head: Value, why: str) -> BusError:
    """The error for an act that does not fit."""
    state = "with an open vote" if head["poll"] else head["phase"]
    return BusError("wrong_phase", f"the room is {state}: {why}.", "The state says what is due.")


def _idle(setup: Value, head: Value, who: Who, moderated: bool = True) -> None:
    check_host(setup, head, who)
    if moderated and setup["mode"] != room.MODERATED:
        raise wrong_phase(head, "rounds are for moderated rooms")
    if head["poll"] or head["phase"] not in ("talk", rounds.IDLE) or head["state"] == room.GATHERING:
        raise wrong_phase(head, "finish what is under way")


def _target(setup: Value, head: Value, who: Who, name: str) -> str:
    check_host(setup, head, who)
    key = known(head, name)
    if key == room.host_key(setup):
        raise invalid("names", "must not be the host", "The host stays until it closes the room.")
    return key
