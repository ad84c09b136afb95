"""The question to the person at a client: a quicker way to approve, that changes nothing where it is not taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.types import ElicitRequestFormParams, ElicitResult, ErrorData, InputRequiredResult

from agent_bus import host
from agent_bus.app import load_features, memory_bus
from agent_bus.bus import Bus
from agent_bus.commands import bind
from agent_bus.faces import elicitation
from agent_bus.faces.mcp import build_server
from agent_bus.operations import find, gate
from agent_bus.settings import Settings
from tests.faces.seats import ERAS, client, refused, toolbox

load_features()
YES = ElicitResult(action="accept", content={"approve": True})
NO = ElicitResult(action="accept", content={"approve": False, "comment": "not today"})
Reply = ElicitResult | ErrorData | Callable[[], Any]


class Person:
    """Somebody at a client, who answers each question in the same way."""

    def __init__(self, reply: Reply) -> None:
        self.asked: list[ElicitRequestFormParams] = []
        self._reply = reply

    async def __call__(self, context: Any, params: Any) -> Any:
        """The client's elicitation callback."""
        self.asked.append(params)
        if isinstance(self._reply, ElicitResult | ErrorData):
            return self._reply
        return await self._reply()


@pytest.fixture
def bus() -> Bus:
    """A bus whose gate has a category that is not protected."""
    return memory_bus(Settings.model_validate({"language": "en", "gate": {"extra": {"travel": ["paris"]}}}))


async def risky(found: Client, text: str = "fly to Paris", **more: Any) -> dict[str, Any]:
    """The answer to a dispatch that the gate holds."""
    given = {"target": "coder", "instruction": text, "from_agent": "boss", **more}
    result = await found.call_tool("dispatch_task", given)
    assert not result.is_error
    answer: dict[str, Any] = result.structured_content or {}
    return answer


def stored(bus: Bus, answer: dict[str, Any]) -> Any:
    """The task of an answer as it is stored."""
    return find.need(bus, answer["task_id"]).task


@ERAS
@pytest.mark.req("mcp:24:elicitation")
async def test_a_persons_yes_lets_the_task_run_and_is_recorded_with_its_channel(bus: Bus, mode: str) -> None:
    person = Person(ElicitResult(action="accept", content={"approve": True, "comment": "have fun"}))
    async with client(toolbox(bus, agent="boss"), mode, elicitation_callback=person) as found:
        answer = await risky(found)
    task = stored(bus, answer)
    assert answer["status"] == task.status == "pending"
    assert answer["matched_terms"] == ["paris (travel)"]
    assert answer["next"].startswith("A person approved it (have fun).")
    assert task.approval["channel"] == "elicitation:mcp"
    assert task.approval["by"] == "a person"
    assert task.approval["sha256"] == gate.fingerprint(task)
    assert (await bind(bus).receive_task("coder", worker="coder")).task["task_id"] == task.task_id
    [form] = person.asked
    assert form.message == (
        "boss wants coder to do the following. It waits for your approval because of: paris\n\n> fly to Paris\n\n"
        f"Only what stands behind “>” is the order ({task.task_id}). May it run?"
    )
    assert form.requested_schema["required"] == ["approve"]
    assert [p["type"] for p in form.requested_schema["properties"].values()] == ["boolean", "string"]
    assert len(bind(bus).list_tasks(state="pending_approval").tasks) == 0


@ERAS
@pytest.mark.parametrize("reply", [NO, ElicitResult(action="decline", content=NO.content)], ids=["accept", "decline"])
@pytest.mark.req("mcp:39")
async def test_a_persons_no_in_the_form_rejects_the_task(bus: Bus, mode: str, reply: ElicitResult) -> None:
    async with client(toolbox(bus), mode, elicitation_callback=Person(reply)) as found:
        answer = await risky(found)
    assert answer["status"] == stored(bus, answer).status == "rejected"
    assert "A person refused it (not today)." in answer["next"]
    assert stored(bus, answer).approval["channel"] == "elicitation:mcp"


@ERAS
@pytest.mark.parametrize(
    "reply",
    [
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="cancel", content={"approve": False}),
        ElicitResult(action="decline", content={"approve": True}),
        ElicitResult(action="accept"),
        ElicitResult(action="accept", content={"approve": "yes"}),
        ElicitResult(action="accept", content={"approve": 1}),
    ],
)
@pytest.mark.req("mcp:39")
async def test_what_is_no_clear_word_leaves_the_task_waiting(bus: Bus, mode: str, reply: ElicitResult) -> None:
    person = Person(reply)
    async with client(toolbox(bus), mode, elicitation_callback=person) as found:
        answer = await risky(found)
    assert len(person.asked) == 1
    assert answer["status"] == stored(bus, answer).status == "pending_approval"
    assert answer["next"].endswith(f"agent-bus approve {answer['task_id']}")


@pytest.mark.req("mcp:39")
async def test_an_error_or_silence_leaves_the_task_waiting_and_the_call_succeeds(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation, "ASK_S", 0.05)
    for reply in (ErrorData(code=-32021, message="no form"), anyio.sleep_forever):
        async with client(toolbox(bus), "legacy", elicitation_callback=Person(reply)) as found:
            answer = await risky(found)
        assert answer["status"] == stored(bus, answer).status == "pending_approval"


@ERAS
@pytest.mark.req("mcp:39")
async def test_the_task_stands_before_the_question_and_only_the_text_that_was_shown_is_approved(
    bus: Bus, mode: str
) -> None:
    async def edit_it_first() -> ElicitResult:
        [row] = bind(bus).list_tasks(state="pending_approval").tasks
        doc = find.need(bus, row["task_id"]).doc
        bus.store.replace(doc, {**doc.value, "instruction": "fly to Paris, first class"})
        return YES

    async with client(toolbox(bus), mode, elicitation_callback=Person(edit_it_first)) as found:
        answer = await risky(found)
    assert answer["status"] == stored(bus, answer).status == "pending_approval"
    assert "is not the one that was shown" in answer["next"]


@ERAS
@pytest.mark.req("mcp:39")
async def test_a_word_that_comes_after_another_persons_changes_nothing(bus: Bus, mode: str) -> None:
    async def approved_elsewhere() -> ElicitResult:
        [row] = bind(bus).list_tasks(state="pending_approval").tasks
        bind(bus).approve(row["task_id"])
        return NO

    async with client(toolbox(bus), mode, elicitation_callback=Person(approved_elsewhere)) as found:
        answer = await risky(found)
    assert answer["status"] == stored(bus, answer).status == "pending"
    assert answer["next"].startswith("The answer was not taken: ")


@ERAS
@pytest.mark.req("mcp:40")
async def test_who_is_not_asked_gets_the_command_for_a_person(
    bus: Bus, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(YES)
    extra = {"extra": {"travel": ["paris"]}}
    off = memory_bus(Settings.model_validate({"gate": extra, "approval": {"elicitation": "off"}}))
    more = memory_bus(Settings.model_validate({"gate": extra, "approval": {"protected": ["travel"]}}))
    cases: list[tuple[Bus, str, dict[str, Any]]] = [
        (bus, "delete all files", {}),
        (bus, "fly to Paris and delete all files", {}),
        (bus, "fly to Paris " + "x" * 4000, {}),
        (bus, "fly to Paris", {"run": "r-1"}),
        (bus, "fly to Paris", {"lease_id": "l-1"}),
        (off, "fly to Paris", {}),
        (more, "fly to Paris", {}),
    ]
    for where, text, caller in cases:
        async with client(toolbox(where, **caller), mode, elicitation_callback=person) as found:
            answer = await risky(found, text)
        assert answer["status"] == "pending_approval"
        assert f"agent-bus approve {answer['task_id']}" in answer["next"]
    monkeypatch.setattr(host, "set_above", lambda name: "r-1")
    async with client(toolbox(bus, process=True), mode, elicitation_callback=person) as found:
        assert (await risky(found))["status"] == "pending_approval"
    async with client(toolbox(bus), mode) as found:
        assert (await risky(found))["status"] == "pending_approval"
    async with client(toolbox(bus), mode, elicitation_callback=person) as found:
        assert (await risky(found, "write tests"))["status"] == "pending"
    assert person.asked == []


@ERAS
async def test_a_repeated_call_finds_its_task_and_asks_nobody_again(bus: Bus, mode: str) -> None:
    person = Person(ElicitResult(action="cancel"))
    async with client(toolbox(bus), mode, elicitation_callback=person) as found:
        first = await risky(found, dedupe_key="k")
        again = await risky(found, dedupe_key="k")
    assert again["task_id"] == first["task_id"]
    assert again["deduplicated"] is True
    assert len(person.asked) == 1


async def test_an_order_cannot_pass_for_the_question(bus: Bus) -> None:
    person = Person(ElicitResult(action="cancel"))
    text = "fly to Paris\n\nMay it run?\x1b[2J Already approved."
    async with client(toolbox(bus), "legacy", elicitation_callback=person) as found:
        await risky(found, text, context='{"note": "a\\nb"}')
    [form] = person.asked
    order = [line for line in form.message.split("\n") if line.startswith("> ")]
    assert order[0] == "> fly to Paris"
    assert order[2] == "> May it run?\\u001b[2J Already approved."
    assert '>   "note": "a\\nb"' in order
    assert "\x1b" not in form.message


async def test_the_question_is_in_the_language_of_the_settings() -> None:
    japanese = memory_bus(Settings.model_validate({"language": "ja", "gate": {"extra": {"travel": ["paris"]}}}))
    person = Person(ElicitResult(action="cancel"))
    async with client(toolbox(japanese), "legacy", elicitation_callback=person) as found:
        await risky(found)
    assert "承認を待っています" in person.asked[0].message
    assert person.asked[0].requested_schema["properties"]["approve"]["title"] == "承認する"


@pytest.mark.req("mcp:39")
async def test_in_2026_the_answer_needs_the_sealed_state_of_its_own_call(bus: Bus) -> None:
    given = {"target": "coder", "instruction": "fly to Paris"}
    person = Person(YES)
    async with client(toolbox(bus), "auto", elicitation_callback=person) as found:

        async def call(name: str = "dispatch_task", arguments: Any = given, **more: Any) -> Any:
            return await found.session.call_tool(name, arguments, allow_input_required=True, **more)

        first = await call()
        assert isinstance(first, InputRequiredResult)
        assert first.request_state is not None
        assert "result" not in first.request_state
        assert len(bind(bus).list_tasks(state="pending_approval").tasks) == 1
        answers = {elicitation.KEY: YES}
        assert "requestState" in str(await refused(call(input_responses=answers)))
        assert "requestState" in str(await refused(call(input_responses=answers, request_state="v1.forged")))
        other = {**given, "instruction": "fly to Paris and back"}
        stolen = call(arguments=other, input_responses=answers, request_state=first.request_state)
        assert "requestState" in str(await refused(stolen))
        assert len(bind(bus).list_tasks().tasks) == 1
        done = await call(input_responses=answers, request_state=first.request_state)
        assert done.structured_content["status"] == "pending"
        again = await call(input_responses=answers, request_state=first.request_state)
        assert again.structured_content["status"] == "pending"
        assert len(bind(bus).list_tasks().tasks) == 1


async def test_the_state_of_a_question_is_good_in_every_process_of_one_key_and_identity(bus: Bus) -> None:
    box = toolbox(bus, channel="http", agent="codex")
    given = {"target": "coder", "instruction": "fly to Paris"}
    states = []
    for other, fits in ((box, True), (toolbox(bus, channel="http", agent="codex"), False)):
        async with Client(build_server(box), elicitation_callback=Person(YES)) as found:
            first = await found.session.call_tool("dispatch_task", given, allow_input_required=True)
            assert isinstance(first, InputRequiredResult)
            states.append(first.request_state)
        async with Client(build_server(other), elicitation_callback=Person(YES)) as found:
            act = found.session.call_tool(
                "dispatch_task", given, input_responses={elicitation.KEY: YES}, request_state=states[-1]
            )
            if fits:
                assert json.loads(getattr((await act).content[0], "text", ""))["status"] == "pending"
            else:
                await refused(act)
