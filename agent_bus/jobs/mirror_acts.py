"""What decisions in the vault do: each act gives the same result when a crash makes it run again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from agent_bus.bus import Bus
from agent_bus.domain.task import Task
from agent_bus.domain.wishes import ANSWER, APPROVAL, APPROVE, CANCEL, PRIORITY, REJECT, REVIEW
from agent_bus.errors import BusError
from agent_bus.features.queue import cancel_task, retry_task
from agent_bus.operations import approving, find, finish, orders, reorder, rooms_person
from agent_bus.operations.decisions import Act
from agent_bus.operations.dispatch import dispatch
from agent_bus.times import parse_stamp

DISPATCH, SAY = "dispatch", "say"
_EVENTS = {
    APPROVE: ("approve", "accept"), REJECT: ("reject", "rework"), ANSWER: ("retry", "rework"),
    CANCEL: ("cancel", "cancel_requested"), PRIORITY: ("priority",),
}  # fmt: skip
"""The lines in a task's history that show that an act was done."""


def for_people(theirs: Bus) -> Act:
    """The acts of a bus, as those use it who write in the vault."""

    def act(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        fields = value.get("fields") or {}
        if value["verb"] == DISPATCH:
            _check_age(theirs, str(value.get("at", "")))
            return _dispatch(theirs, fields, key)
        if value["verb"] == SAY:
            number = rooms_person.say(theirs, str(fields["room"]), str(fields["instruction"]), key)
            return {"room": str(fields["room"]), "number": number}
        task_id, verb = str(value["task_id"]), str(value["verb"])
        try:
            return {"status": _decide(theirs, verb, task_id, fields)}
        except BusError as error:
            task = find.find_quietly(theirs, task_id)
            if error.code == "conflict" and task and _is_done(theirs, task.task, verb, str(value.get("at", ""))):
                return {"status": task.task.status}
            raise

    return act


def _decide(bus: Bus, verb: str, task_id: str, fields: Mapping[str, Any]) -> str:
    answer, kind = str(fields.get("answer", "")), fields.get("kind")
    if verb == CANCEL:
        return cancel_task(bus, task_id, str(fields.get("reason", ""))).task_state
    if verb == PRIORITY:
        return reorder.set_priority(bus, task_id, str(fields["priority"])).priority
    if verb == APPROVE and kind == APPROVAL:
        return approving.approve(bus, task_id, "", str(fields.get("sha256", ""))).status
    if verb == REJECT and kind == APPROVAL:
        return approving.reject(bus, task_id, answer, str(fields.get("sha256", ""))).status
    if verb == APPROVE:
        return finish.judge(bus, task_id, "accept", answer, bus.caller.agent)[0].status
    if kind == REVIEW:
        return finish.judge(bus, task_id, "rework", answer, bus.caller.agent)[0].status
    return retry_task(bus, task_id, answer).task_state


def _is_done(bus: Bus, task: Task, verb: str, at: str) -> bool:
    """Whether the vault did this since the decision was taken: then only the result was lost."""
    who = bus.caller.agent
    return any(
        one.get("event") in _EVENTS.get(verb, ()) and one.get("by") == who and str(one.get("at", "")) >= at
        for one in task.history
    )


def _check_age(bus: Bus, at: str) -> None:
    """Nothing is sent for a decision of long ago: the key that keeps it from being sent twice may be forgotten soon."""
    if bus.now() - parse_stamp(at) > timedelta(seconds=bus.settings.dedupe_s) / 2:
        fix = "Look whether there is a task of it, else write it again."
        raise BusError("refused", f"this was wanted at {at}, and was cut short.", fix)


def _dispatch(bus: Bus, fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    order, notes = orders.read_order(
        bus,
        target=str(fields["target"]),
        instruction=str(fields["instruction"]),
        priority=str(fields.get("priority") or "normal"),
        context="",
        from_agent="",
        depends_on=[str(one) for one in fields.get("after") or []],
        not_before=str(fields.get("not_before", "")),
        dedupe_key=f"vault:{key}",
        options="",
    )
    task = dispatch(bus, order).task
    return {"task_id": task.task_id, "status": task.status, "notes": notes}
