"""What a person wants by what they have set in a task's note: the rules of docs/vault-notes.md "Deciding in a note"."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agent_bus.domain.human import SEND, Human, word
from agent_bus.domain.task import (
    BLOCKED,
    CANCELLED,
    DEAD_LETTER,
    IN_REVIEW,
    PENDING_APPROVAL,
    PRIORITIES,
    TERMINAL,
    Task,
)

APPROVE, REJECT, ANSWER, CANCEL, PRIORITY = "approve", "reject", "answer", "cancel", "priority"
APPROVAL, REVIEW, QUESTION = "approval", "review", "question"
KINDS = {PENDING_APPROVAL: APPROVAL, IN_REVIEW: REVIEW, BLOCKED: QUESTION, DEAD_LETTER: QUESTION}
"""What a task asks of people, by its state."""
_ENTRIES = {
    PENDING_APPROVAL: ("dispatch", "close_gate"),
    IN_REVIEW: ("submit",),
    BLOCKED: ("submit", "approve", "come_due", "dispatch"),
    DEAD_LETTER: ("recover", "give_up"),
}
WORDS = {
    APPROVE: ("approve", "ok", "yes", "accept", "承認", "はい"),
    REJECT: ("reject", "no", "却下", "いいえ", "rework", "やり直し"),
    CANCEL: ("cancel", "cancelled", "取消", "キャンセル"),
}
_VERB = {name: verb for verb, names in WORDS.items() for name in names}
_BOXES = {APPROVE: APPROVE, REJECT: REJECT, CANCEL: CANCEL, SEND: ANSWER}


@dataclass(frozen=True)
class Asked:
    """What is asked about a task at present.

    Args:
        req: the nonce that a decision must carry.
        kind: approval, review or question.
        n: the how manieth approval this note is asked for.
        sha256: of the text that an approval would be for.
    """

    req: str
    kind: str
    n: int
    sha256: str


@dataclass(frozen=True)
class Heard:
    """What a note says.

    Args:
        verb: what to do, "" for nothing.
        priority: the new one, "" for the same.
        fault: why nothing is done, as long as the note stands so: the name of a text; "" if nothing is wrong.
        late: the decision was for a request that is over, or nothing is asked at all.
        put_back: the name of a text: why a property that was changed is put back, "" if none is.
    """

    verb: str = ""
    priority: str = ""
    fault: str = ""
    late: bool = False
    put_back: str = ""


def mark(task: Task, sha256: str) -> tuple[str, str] | None:
    """The kind of what a task asks now, and what tells this asking from every other; None if it asks nothing."""
    kind = KINDS.get(task.status)
    if kind is None:
        return None
    events = _ENTRIES[task.status]
    at = next((str(one.get("at")) for one in reversed(task.history) if one.get("event") in events), "")
    return kind, f"{kind} {task.attempt} {at} {sha256}"


def hear(base: Human, now: Human, answer: str, req: str, asked: Asked | None, task: Task) -> Heard:
    """What differs between what the bus published and what stands there now.

    Args:
        base: what the bus published in the write that the note is based on.
        answer: the text under Reply.
        req: the nonce in the note.
        asked: the open request; None if nothing is asked.
    """
    priority, put_back = _properties(base, now, task)
    verbs = {verb for box, verb in _BOXES.items() if box in now.ticks - base.ticks}
    if now.approve and not base.approve:
        verbs.add(APPROVE)
    spoken, nonce = _spoken(now.decision) if now.decision != base.decision else ("", "")
    if spoken == "?":
        return Heard(priority=priority, fault="unknown_word", put_back=put_back)
    if spoken:
        verbs.add(spoken)
    if word(now.status) == CANCELLED and word(base.status) != CANCELLED:
        verbs.add(CANCEL)
    if verbs == {REJECT, ANSWER}:
        verbs = {REJECT}
    if len(verbs) > 1:
        return Heard(priority=priority, fault="contradiction", put_back=put_back)
    verb = next(iter(verbs), "")
    fault, late = _against(verb, spoken == APPROVE, nonce, answer, req, asked)
    if verb == CANCEL and task.status in TERMINAL:
        late = True
    return Heard("" if fault or late else verb, priority, fault, late, put_back)


def allowed(verb: str, level: str, categories: Collection[str], protected: Collection[str]) -> bool:
    """Whether the vault may do this at its level of authority (`none`, `normal`, `all`)."""
    if level == "none":
        return False
    risky = {word(one) for one in categories} & {word(one) for one in protected}
    return level == "all" or verb != APPROVE or not risky


def _properties(base: Human, now: Human, task: Task) -> tuple[str, str]:
    """A priority that a person has set, and why something must be put back, "" if nothing."""
    wanted = word(now.priority)
    changed = now.priority != base.priority
    priority = wanted if changed and wanted in PRIORITIES and not task.ended and wanted != task.priority else ""
    wrong = changed and not priority and wanted != task.priority
    typed = now.status != base.status and word(now.status) != CANCELLED and now.status != task.status
    return priority, "no_priority" if wrong else "put_back" if typed else ""


def _spoken(decision: str) -> tuple[str, str]:
    """The verb of `ab_decision` and the nonce behind it; the verb is `?` if the word is none of ours."""
    if not decision:
        return "", ""
    first, _, rest = word(decision).partition(" ")
    return _VERB.get(first, "?"), rest.strip()


def _against(
    verb: str, spoken: bool, nonce: str, answer: str, req: str, asked: Asked | None
) -> tuple[str, bool]:  # the fault, and whether it is too late
    if verb not in (APPROVE, REJECT, ANSWER):
        return "", False
    if asked is None or req != asked.req or (spoken and nonce not in ("", asked.req)):
        return "", True
    if (verb == APPROVE and asked.kind == QUESTION) or (verb == ANSWER and asked.kind == APPROVAL):
        return "other_verb", False
    if verb == REJECT and asked.kind == QUESTION:
        return "other_verb", False
    if (verb == ANSWER and not answer) or (verb == REJECT and asked.kind == REVIEW and not answer):
        return "no_reply", False
    if verb == APPROVE and asked.kind == APPROVAL and asked.n > 1 and nonce != asked.req:
        return "say_it_again", False
    return "", False
