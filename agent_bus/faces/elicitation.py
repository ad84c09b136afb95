"""Asking the person at a client, the quicker way on after a call that already stands (docs/resources.md "Being asked").

In 2025 the question is a request to the client within the call. In 2026 it is the call's first answer, and the client
calls again with what the person said; what the server must know of the first call travels sealed with it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, get_type_hints

import anyio
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from pydantic import BaseModel, ValidationError

from agent_bus.bus import Bus, Caller
from agent_bus.commands import Ask, Command, Question
from agent_bus.faces.answers import as_object
from agent_bus.faces.requests import Context, is_modern
from agent_bus.faces.toolbox import Toolbox

ASK_S = 45.0
"""As long as a wait may last: clients give a call 60 s."""
STATE_S = 600.0
"""How long an answer may take in 2026, where no call is held open for it."""
KEY = "answer"
COMMENT_CHARS = 500
_CONTROL = re.compile(r"[^\x20-\x7e]")
Asked = BaseModel | InputRequiredResult


async def ask(toolbox: Toolbox, command: Command, result: BaseModel, context: Context, caller: Caller) -> Asked:
    """The result after the person's word, if they are asked and give one; in 2026 the question.

    Args:
        command: with an `ask`.
        result: of the call, which stands already.
        caller: who called.

    Raises:
        BusError: what `ask` raises.
    """
    assert command.ask is not None
    if not _can_ask(context):
        return result
    question, most_s = await toolbox.look(partial(_question, command.ask, result), caller)
    if question is None:
        return result
    form = ElicitRequestFormParams(message=question.text, requested_schema=_form(question))
    if is_modern(context):
        state = json.dumps({"result": as_object(result), "subject": question.subject})
        return InputRequiredResult(input_requests={KEY: ElicitRequest(params=form)}, request_state=state)
    reply = None
    # An error: the client cannot ask after all, or says what is no answer.
    with anyio.move_on_after(min(ASK_S, most_s)), suppress(MCPError, ValidationError):
        reply = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
    return await _take(toolbox, command.ask, result, question.subject, reply, context, caller)


def check_resumed(params: CallToolRequestParams) -> None:
    """Refuses a word without the state of the call it belongs to: taken for a first call, it would do all again.

    Raises:
        MCPError: -32602.
    """
    if params.input_responses and params.request_state is None:
        raise MCPError(INVALID_PARAMS, "requestState is missing: send what the first answer gave")


async def resume(
    toolbox: Toolbox, command: Command, params: CallToolRequestParams, context: Context, caller: Caller
) -> BaseModel | None:
    """The result of a call that comes back with the person's word (2026); None if this is a first call."""
    if command.ask is None or params.request_state is None:
        return None
    state = json.loads(params.request_state)  # sealed by this server
    model: type[BaseModel] = get_type_hints(command.verb)["return"]
    reply = (params.input_responses or {}).get(KEY)
    return await _take(
        toolbox, command.ask, model.model_validate(state["result"]), state["subject"], reply, context, caller
    )


def _question(ask: Ask, result: BaseModel, bus: Bus) -> tuple[Question | None, int]:
    return ask.question(bus, result), bus.settings.wait_max_s


def _can_ask(context: Context) -> bool:
    """Whether the client says that it shows forms; a bare capability means so, as there once was no other."""
    capabilities = context.session.client_capabilities
    declared = capabilities.elicitation if capabilities else None
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return is_modern(context) or context.session.can_send_request


def _form(question: Question) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "approve": {"type": "boolean", "title": question.yes},
            "comment": {"type": "string", "title": question.comment, "maxLength": COMMENT_CHARS},
        },
        "required": ["approve"],
    }


async def _take(
    toolbox: Toolbox, ask: Ask, result: BaseModel, subject: str, reply: object, context: Context, caller: Caller
) -> BaseModel:
    word = _word(reply)
    if word is None:
        return result
    client = context.session.client_params
    name = _CONTROL.sub("?", client.client_info.name)[:60] if client else ""
    person = replace(caller, agent="", person=True, channel=f"elicitation:{name}")
    return await toolbox.look(lambda bus: ask.answered(bus, result, subject, *word), person)


def _word(reply: object) -> tuple[bool, str] | None:
    """Yes or no with a comment; None if the form did not come back: programs without a person decline by themselves."""
    if not isinstance(reply, ElicitResult) or reply.action == "cancel":
        return None
    content = reply.content or {}
    yes, comment = content.get("approve"), content.get("comment")
    if yes is False or (yes is True and reply.action == "accept"):
        return yes, comment[:COMMENT_CHARS] if isinstance(comment, str) else ""
    return None
