"""Debates: several agents argue in turns until all agree or the rounds are over; the bus keeps turns and order."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict

from agent_bus import ids, paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import debate, debate_setup, debate_words
from agent_bus.errors import BusError, invalid, too_large
from agent_bus.operations import debate_archive, debate_pages, debates, stop, waits
from agent_bus.operations.debates import Debate

_TRIES = 50
TaskId = Annotated[str, Param("The debate's id: 1 to 64 letters, digits, _ - .", max_chars=200)]
AgentId = Annotated[str, Param("Which of the debate's agents you are.", max_chars=200)]


class Answer(BaseModel):
    """What stands in it depends on its status; see the tool."""

    model_config = ConfigDict(extra="allow")


class Waited(Answer):
    """your_turn, debate_complete, closed, or timeout."""

    status: Literal["your_turn", "debate_complete", "closed", "timeout"]


class Initialized(BaseModel):
    """A debate is made."""

    ok: bool
    task_id: str
    card_url: str
    agents: list[dict[str, Any]]


class Begun(BaseModel):
    """A debate has begun."""

    ok: bool
    speaker: str
    round: int
    turn: int


class Completed(BaseModel):
    """A debate is closed; `already` if it was so before."""

    ok: bool
    archive: str
    status: str
    already: bool


@command(group="debate", writes=True)
def moa_init(
    bus: Bus,
    task_id: TaskId,
    preset_config: Annotated[str, Param("JSON {agents, debate, …}; or give agents.", json=True)] = "",
    agents: Annotated[list[str], Param("1 to 12 ids in speaking order: id or id@slot.", max_items=12)] = [],  # noqa: B006
    rounds: Annotated[int, Param("1 to 20.", low=1, high=20)] = 2,
    turn_timeout_s: Annotated[int, Param("How long a turn may take; 0: for ever.", low=0, high=86_400)] = 900,
    on_timeout: Annotated[Literal["skip", "pause"], Param("What happens then.")] = "skip",
) -> Initialized:
    """Make a debate between agents; moa_start_debate begins it. Its id is used once."""
    stop.refuse_if_stopped(bus)
    debates.folder(task_id)
    flat = {"rounds": rounds, "turn_timeout_s": turn_timeout_s, "on_timeout": on_timeout}
    setup = debate_setup.read(task_id, preset_config, agents, flat)
    debates.create(bus, {**setup, "created_at": bus.stamp(), "created_by": bus.caller.agent})
    return Initialized(ok=True, task_id=task_id, card_url="", agents=[_seat(bus, a) for a in setup["agents"]])


@command(group="debate", writes=True)
def moa_start_debate(
    bus: Bus,
    task_id: TaskId,
    reference_results: Annotated[
        str, Param("What all shall know: goal, scope, stances; text or JSON.", json=True, required=True)
    ] = "",
) -> Begun:
    """Begin a debate: the first agent's turn, and everybody who waits is woken."""
    stop.refuse_if_stopped(bus)
    if (size := len(reference_results.encode())) > debate_setup.TEXT_BYTES:
        raise too_large("reference_results", size, debate_setup.TEXT_BYTES, "bytes")
    head = debates.start(bus, task_id, reference_results).head
    assert head is not None
    return Begun(ok=True, speaker=head["speaker"], round=1, turn=1)


@command(group="debate", writes=True, idempotent=True)
async def moa_wait_turn(
    bus: Bus,
    task_id: TaskId,
    agent_id: AgentId,
    since: Annotated[int, Param("The last turn you know.", low=0)] = 0,
    cursor: Annotated[str, Param("From the last answer, for the rest of it.", max_chars=60)] = "",
    timeout_s: Annotated[int, Param("How long to wait, at most 50 s.", low=0, high=50, clamp=True)] = 45,
    worker: Annotated[str, Param("Who sits in for the agent, for the record.", max_chars=80)] = "",
) -> Waited:
    """Wait for your turn in a debate; the answer has what was said since, and how to go on. A time-out is normal."""
    start = debate_pages.read(cursor, since)
    found = await waits.until(bus, partial(_look, bus, task_id, agent_id, worker, start), timeout_s)
    if found is not None:
        return found
    now = await waits.on_thread(partial(debates.settled, bus, task_id))
    speaker = now.head["speaker"] if now.head else ""
    return Waited(status="timeout", retry=True, state=now.state, speaker=speaker, cursor=cursor)


@command(group="debate", writes=True, idempotent=True)
def moa_submit_turn(
    bus: Bus,
    task_id: TaskId,
    agent_id: AgentId,
    content: Annotated[str, Param("Your speech, 1 to 20,000 characters.")],
    signoff: Annotated[bool, Param("Your vote to end the debate now.")] = False,
    turn: Annotated[int, Param("The turn's number from your_turn: makes a repeat safe.", low=0)] = 0,
) -> Answer:
    """Speak in a debate when it is your turn; only this counts. Then go on with moa_wait_turn."""
    text, most = content.strip(), bus.settings.debate.max_turn_chars
    for _ in range(_TRIES):
        found = debates.settled(bus, task_id)
        agent = _agent(found, agent_id)
        again = _repeat(bus, found, agent, text, signoff, turn)
        if again is not None:
            return again
        if found.head is None or found.state not in (debate.DEBATING, debate.PAUSED):
            raise BusError("debate_not_active", f"the debate {task_id} is {found.state}.", "moa_wait_turn says more.")
        if not text:
            raise invalid("content", "must not be empty", "Say something, or wait.")
        if len(text) > most:
            raise too_large("content", len(text), most)
        _check_turn(found.head, agent, turn)
        made = debate.speech(found.head, text, signoff, bus.stamp(), debates.by(bus))
        if debates.record(bus, found, made):
            return _accepted(bus, debates.settled(bus, task_id), made)
    raise debates.busy(task_id)


@command(group="debate", writes=True, idempotent=True)
def moa_complete(
    bus: Bus,
    task_id: TaskId,
    verdict: Annotated[str, Param("In a word or a line.", max_chars=500)] = "",
    confidence: Annotated[Literal["unset", "low", "medium", "high"], Param("How sure.")] = "unset",
    findings: Annotated[list[str], Param("At most 64.", max_items=64, max_chars=2000)] = [],  # noqa: B006
    recommendation: Annotated[str, Param("What to do.", max_chars=4000)] = "",
) -> Completed:
    """Close a debate and archive it; the first call decides, later ones get the same answer."""
    said: dict[str, Any] = {"verdict": verdict, "findings": findings, "recommendation": recommendation}
    sure = {} if confidence == "unset" else {"confidence": confidence}
    found, already = debates.close(bus, task_id, {**said, **sure})
    debate_archive.make(bus, found)
    assert found.head is not None
    status = str(found.head["result"]["status"])
    if not already:
        line = {"at": bus.stamp(), "event": "debate.closed", "task_id": found.id, "outcome": status}
        bus.journal.write(bus.now(), line)
    return Completed(ok=True, archive=debate_archive.place(found), status=status, already=already)


@command(group="debate", writes=True, people=True, idempotent=True)
def debate_export(bus: Bus, task_id: TaskId) -> Completed:
    """Write the archive of a closed debate anew where files of it are missing."""
    found = debates.settled(bus, task_id)
    if found.head is None or found.state != debate.CLOSED:
        raise BusError("conflict", f"the debate {task_id} is {found.state}.", "moa_complete closes and archives it.")
    debate_archive.make(bus, found)
    status = str(found.head["result"]["status"])
    return Completed(ok=True, archive=debate_archive.place(found), status=status, already=True)


def _seat(bus: Bus, agent: dict[str, Any]) -> dict[str, Any]:
    """An agent with what the settings say of its slot."""
    slot = bus.settings.slots.get(str(agent.get("binding_slot", "")))
    known = {k: v for k, v in slot.model_dump().items() if v} if slot else {}
    return {k: v for k, v in agent.items() if k in ("id", "binding_slot")} | known


def _look(bus: Bus, task_id: str, agent_id: str, worker: str, start: debate_pages.Start, _first: bool) -> Waited | None:
    found = debates.settled(bus, task_id)
    agent = _agent(found, agent_id)
    found = debates.come_back(bus, task_id, agent)
    head = found.head
    if head is None:
        return None
    if found.state in (debate.COMPLETE, debate.CLOSED):
        return _ended(bus, found, start)
    if head["speaker"] != agent:
        return None
    found = debates.renew(bus, found, worker)
    head = found.head
    if head is None or head["speaker"] != agent:
        return None
    tally = debate.tally(found.setup, head)
    words = debate_words.prompt(found.setup, head, tally, bus.settings.debate.language)
    facts = {
        "speaker_id": agent, "turn": head["turn"], "round": head["round"], "rounds": found.setup["rounds"],
        "deadline": head["lease"]["until"], "prompt": words, "tally": tally,
    }  # fmt: skip
    context = debate_pages.page(bus, found, start, paging.ROOM - paging.size(facts) - 200)
    return Waited(status="your_turn", **facts, full_context=context)


def _ended(bus: Bus, found: Debate, start: debate_pages.Start) -> Waited:
    head = found.head
    assert head is not None
    page = debate_pages.page(bus, found, start, paging.ROOM - 500)
    page.pop("reference_results", None)
    if found.state == debate.COMPLETE:
        return Waited(status="debate_complete", early=head["early"], reason=head["reason"], **page)
    archive = debate_archive.place(found)
    return Waited(status="closed", result_status=head["result"]["status"], archive=archive, **page)


def _agent(found: Debate, given: str) -> str:
    """The agent of a debate that a call means."""
    known = debate.agent_ids(found.setup)
    for one in known:
        if ids.same_name(one, given):
            return one
    raise BusError(
        "not_found", f"the debate {found.id} has no agent {given[:60]!a}.", f"Its agents: {', '.join(known)}."
    )


def _check_turn(head: dict[str, Any], agent: str, turn: int) -> None:
    if head["speaker"] != agent or (turn and turn != head["turn"]):
        now = f"it is turn {head['turn']}, of {head['speaker']}"
        raise BusError("not_your_turn", f"{now}.", "Go back to moa_wait_turn; do not submit again.")


def _repeat(bus: Bus, found: Debate, agent: str, text: str, signoff: bool, turn: int) -> Answer | None:
    """The first answer again for a turn that this agent has recorded; None if this is a new one.

    Raises:
        BusError: `not_your_turn` if the turn is recorded otherwise.
    """
    head = found.head
    if head is None:
        return None
    if not turn and head["speaker"] == agent and found.state in (debate.DEBATING, debate.PAUSED):
        return None
    if turn >= head["turn"]:
        return None
    span = len(debate.agent_ids(found.setup))
    seen = (
        [debates.turn(bus, found, turn)] if turn else list(debates.turns(bus, found, max(0, head["turn"] - 1 - span)))
    )
    mine = [r for r in seen if r is not None and r["speaker"] == agent and r["kind"] == debate.SPEECH]
    if mine and (mine[-1]["content"], mine[-1]["signoff"]) == (text, signoff):
        return _accepted(bus, found, mine[-1], duplicate=True)
    if turn and found.state in (debate.DEBATING, debate.PAUSED, debate.COMPLETE, debate.CLOSED):
        raise BusError("not_your_turn", f"turn {turn} is recorded already.", "Go back to moa_wait_turn.")
    return None


def _accepted(bus: Bus, found: Debate, made: dict[str, Any], **more: Any) -> Answer:
    """The answer to a turn, the same however much later it is asked for."""
    head, number = found.head, made["turn"]
    assert head is not None
    facts: dict[str, Any] = {"accepted": True, "turn": number}
    if number < head["turn"] - 1:
        speaker, wrapped = debate.follower(found.setup, made["speaker"])
        return Answer(**facts, next_speaker=speaker, round=made["round"] + wrapped, **more)
    if found.state in (debate.DEBATING, debate.PAUSED):
        return Answer(**facts, next_speaker=head["speaker"], round=head["round"], **more)
    early = {"early": True, "reason": debate.UNANIMOUS} if head["early"] else {}
    return Answer(**facts, debate_complete=True, **early, **more)
