"""Debates: agents speak in turns, in rounds, until all agree or the rounds are over. Pure.

    initialized -> debating                     the head is made
    debating    -> debating, complete, paused   a turn is recorded, or missed
    paused      -> debating                     its speaker speaks, or an absent agent comes back
    any         -> closed                       the first closing record

A record is made by the exclusive create of `turns/<head.seq>`; `apply` moves the head on. Every time comes from the
record, so that whoever applies it gets the same head. Kinds: speech, missed, paused, present, closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from agent_bus.times import parse_stamp, stamp

INITIALIZED, DEBATING, PAUSED, COMPLETE, CLOSED = "initialized", "debating", "paused", "complete", "closed"
SPEECH, MISSED, PAUSE, PRESENT, CLOSE = "speech", "missed", "paused", "present", "closed"
MISSED_ABSENT = 2
"""So many missed turns in a row make an agent absent."""
GRACE = timedelta(seconds=5)
"""A turn is skipped only so long after its end: its speaker's clock may be another host's."""
RENEWALS = 4
"""A turn's lease ends at the latest this many times its length after it began."""
UNANIMOUS = "unanimous_signoff"
OVER = "rounds_over"
Head = dict[str, Any]
Value = Mapping[str, Any]


def begin(setup: Value, references: str, at: str) -> Head:
    """The head of a debate that starts."""
    agents = agent_ids(setup)
    head = {
        "schema": 1, "task_id": setup["task_id"], "state": DEBATING, "references": references, "seq": 1, "turn": 1,
        "round": 1, "speaker": agents[0], "turn_since": at, "lease": {"worker": "", "until": ""}, "signoffs": {},
        "missed_in_row": dict.fromkeys(agents, 0), "absent": [], "missed": 0, "started_at": at,
        "early": False, "reason": "", "finished_at": "", "result": {}, "void": [],
    }  # fmt: skip
    return {**head, "lease": _lease(setup, at)}


def never_begun(setup: Value, record: Value) -> Head:
    """The head of a debate that is closed before it starts."""
    return {**begin(setup, "", str(record["at"])), "state": CLOSED, "started_at": "", **_closing(record)}


def apply(setup: Value, head: Value, record: Value) -> Head:
    """The head after the record of its number; one that came too late is void, and changes nothing else."""
    made: Head = {**head, "seq": head["seq"] + 1}
    kind, at = record.get("kind"), str(record.get("at", ""))
    if kind == CLOSE and head["state"] != CLOSED:
        return {**made, "state": CLOSED, **_closing(record), "finished_at": head["finished_at"] or at}
    if kind == PRESENT and head["state"] in (DEBATING, PAUSED):
        return _returned(setup, made, str(record.get("agent", "")), at)
    late = _until(head) > str(record.get("seen_until", ""))
    if kind == PAUSE and head["state"] == DEBATING and not late:
        return {**made, "state": PAUSED, "reason": "turn_timeout"}
    if kind == SPEECH and head["state"] in (DEBATING, PAUSED):
        return _spoken(setup, made, record, at)
    if kind == MISSED and head["state"] == DEBATING and not late:
        return _missed(setup, made, at)
    return {**made, "void": [*head["void"], head["seq"]]}


def speech(head: Value, content: str, signoff: bool, at: str, by: Value) -> dict[str, Any]:
    """The record of a speech by the present speaker."""
    place = {"turn": head["turn"], "round": head["round"], "speaker": head["speaker"]}
    return {"schema": 1, **place, "kind": SPEECH, "content": content, "signoff": signoff, "at": at, "by": dict(by)}


def due(setup: Value, head: Value, now: datetime) -> dict[str, Any] | None:
    """The record that time asks for: a turn that is missed, or a pause; None if there is none."""
    if head["state"] != DEBATING:
        return None
    away = head["speaker"] in head["absent"]
    until = _until(head)
    skips = setup.get("on_timeout") != "pause"
    if not away and (not until or now < parse_stamp(until) + (GRACE if skips else timedelta(0))):
        return None
    place = {"turn": head["turn"], "round": head["round"], "speaker": head["speaker"], "seen_until": until}
    if away or skips:
        return {"schema": 1, **place, "kind": MISSED, "content": "", "signoff": False, "at": stamp(now)}
    return {"schema": 1, "kind": PAUSE, "seen_until": until, "at": stamp(now)}


def renewed(setup: Value, head: Value, worker: str, now: datetime) -> Head | None:
    """The head with a longer lease for its speaker; None if it is as long as it can be, or over."""
    term, until = int(setup.get("turn_timeout_s", 0)), _until(head)
    if not term or head["state"] != DEBATING or now >= parse_stamp(until):
        return None
    last = parse_stamp(str(head["turn_since"])) + RENEWALS * timedelta(seconds=term)
    wanted = min(now + timedelta(seconds=term), last)
    if wanted - parse_stamp(until) < timedelta(seconds=min(1, term / 4)):
        return None
    return {**head, "lease": {"worker": worker, "until": stamp(wanted)}}


def agent_ids(setup: Value) -> list[str]:
    """The ids of the agents in the order in which they speak."""
    return [str(agent["id"]) for agent in setup["agents"]]


def tally(setup: Value, head: Value) -> dict[str, int]:
    """How many have signed, of how many that are not absent."""
    return {"signed": len(head["signoffs"]), "of": len(agent_ids(setup)) - len(head["absent"])}


def follower(setup: Value, speaker: str) -> tuple[str, bool]:
    """Who speaks after somebody, and whether that begins a round."""
    agents = agent_ids(setup)
    place = agents.index(speaker) + 1
    return (agents[0], True) if place == len(agents) else (agents[place], False)


def events(setup: Value, last: Head | None, records: Iterable[Value], archive: str = "") -> list[dict[str, Any]]:
    """The events of a debate, from its documents alone.

    Args:
        last: its present head, None before it starts.
        records: all of them in order; those that are void are left out.
        archive: what the end of it names.
    """
    told: list[dict[str, Any]] = []

    def tell(kind: str, ts: Any, **fields: Any) -> None:
        told.append({"seq": len(told) + 1, "type": kind, "task_id": setup["task_id"], "ts": ts, **fields})

    agents = agent_ids(setup)
    specs = {a["id"]: {k: v for k, v in a.items() if k != "id"} for a in setup["agents"]}
    about = {"agents": agents, "agent_specs": specs, "rounds": setup["rounds"], "extras": setup["extras"]}
    tell("task_initialized", setup["created_at"], **about)
    if last is None:
        return told
    if last["started_at"]:
        tell("debate_started", last["started_at"], agents=agents, rounds=setup["rounds"])
    head = begin(setup, last["references"], last["started_at"] or setup["created_at"])
    for record in records:
        before, head = head, apply(setup, head, record)
        _tell_turn(tell, before, head, record)
        if head["state"] == COMPLETE != before["state"]:
            early = {"early": True, "reason": head["reason"], "signoffs": head["signoffs"]} if head["early"] else {}
            tell("debate_complete", record["at"], rounds=setup["rounds"], turns=head["turn"] - 1, **early)
    if last["state"] == CLOSED:
        tell("task_closed", last["closed_at"], archive=archive, turns=last["turn"] - 1)
    return told


def result(setup: Value, head: Value, statements: Mapping[str, str]) -> dict[str, Any]:
    """What result.json holds.

    Args:
        statements: by agent the content of its voting turn.
    """
    rounds, closing = int(setup["rounds"]), dict(head["result"])
    status = closing.pop("status")
    done = {"complete": rounds, "not_started": 0}.get(status, head["round"] - 1)
    made = {
        "task_id": setup["task_id"], "status": status, "rounds_configured": rounds,
        "rounds_completed": head["round"] - 1 if head["early"] else done,
        "turns": head["turn"] - 1, "missed": head["missed"], "finished_at": head["finished_at"],
    }  # fmt: skip
    if head["early"]:
        made |= {"early": True, "reason": UNANIMOUS, "signoffs": {k: statements.get(k, "") for k in head["signoffs"]}}
    return made | ({"absent": head["absent"]} if head["absent"] else {}) | {k: v for k, v in closing.items() if v}


def _tell_turn(tell: Any, before: Head, head: Head, record: Value) -> None:
    if head["turn"] == before["turn"]:
        return
    place = {"turn": before["turn"], "round": before["round"]}
    if record["kind"] == MISSED:
        tell("turn_missed", record["at"], agent_id=before["speaker"], **place, absent=list(head["absent"]))
    else:
        text = record["content"]
        excerpt = text if len(text) <= 200 else f"{text[:200]}…"
        who = {"agent_id": before["speaker"], "speaker": before["speaker"], "content": text, "excerpt": excerpt}
        signed = {"signoff": True} if record["signoff"] else {}
        tell("turn_submitted", record["at"], **place, **who, **signed, timestamp=record["at"])
        if before["signoffs"] and not record["signoff"]:
            reset = {"round": before["round"], "reset_from": len(before["signoffs"])}
            tell("signoff_reset", record["at"], agent_id=before["speaker"], **reset)
    if head["state"] in (DEBATING, PAUSED):
        tell("turn_advanced", record["at"], round=head["round"], speaker=head["speaker"])


def _spoken(setup: Value, head: Head, record: Value, at: str) -> Head:
    speaker = head["speaker"]
    votes = {**head["signoffs"], speaker: head["turn"]} if record.get("signoff") is True else {}
    row = {**head["missed_in_row"], speaker: 0}
    here = [a for a in head["absent"] if a != speaker]
    return _on(setup, {**head, "signoffs": votes, "missed_in_row": row, "absent": here}, at)


def _missed(setup: Value, head: Head, at: str) -> Head:
    speaker = head["speaker"]
    count = head["missed_in_row"].get(speaker, 0) + 1
    made = {**head, "missed": head["missed"] + 1, "missed_in_row": {**head["missed_in_row"], speaker: count}}
    if count >= MISSED_ABSENT and speaker not in head["absent"]:
        votes = {k: v for k, v in head["signoffs"].items() if k != speaker}
        made |= {"absent": [*head["absent"], speaker], "signoffs": votes}
    return _on(setup, made, at)


def _on(setup: Value, head: Head, at: str) -> Head:
    """After a turn: over because all agree, over because it was the last, or the next speaker's."""
    made: Head = {**head, "turn": head["turn"] + 1, "state": DEBATING, "reason": ""}
    present = [a for a in agent_ids(setup) if a not in head["absent"]]
    if present and all(a in head["signoffs"] for a in present):
        return {**made, "state": COMPLETE, "early": True, "reason": UNANIMOUS, "finished_at": at}
    speaker, wrapped = follower(setup, head["speaker"])
    if wrapped and head["round"] >= setup["rounds"]:
        return {**made, "state": COMPLETE, "reason": OVER, "finished_at": at}
    made |= {"speaker": speaker, "round": head["round"] + wrapped, "turn_since": at, "lease": _lease(setup, at)}
    return made if present else {**made, "state": PAUSED, "reason": "all_absent"}


def _returned(setup: Value, head: Head, agent: str, at: str) -> Head:
    row = {**head["missed_in_row"], agent: 0}
    made = {**head, "absent": [a for a in head["absent"] if a != agent], "missed_in_row": row}
    if head["state"] == PAUSED and head["reason"] == "all_absent":
        made |= {"state": DEBATING, "reason": "", "turn_since": at, "lease": _lease(setup, at)}
    return made


def _closing(record: Value) -> dict[str, Any]:
    return {"finished_at": record["at"], "closed_at": record["at"], "result": dict(record["result"])}


def _lease(setup: Value, at: str) -> dict[str, str]:
    term = int(setup.get("turn_timeout_s", 0))
    return {"worker": "", "until": stamp(parse_stamp(at) + timedelta(seconds=term)) if term else ""}


def _until(head: Value) -> str:
    return str(head["lease"].get("until", ""))
