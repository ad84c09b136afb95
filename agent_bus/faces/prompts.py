"""Prompts: texts that a person's client inserts, made by the features' functions."""

from __future__ import annotations

from functools import partial

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    PromptArgument,
    PromptMessage,
    TextContent,
)
from mcp.types import Prompt as Shown

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.faces.answers import settled
from agent_bus.faces.requests import Context, caller_of, protocol_error
from agent_bus.faces.toolbox import Toolbox
from agent_bus.offers import Prompt, prompts
from agent_bus.parameters import check_given, nearest


class Prompts:
    """The prompts that one server offers."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self.offered = {name: one for name, one in prompts().items() if one.group in toolbox.groups}

    async def list(self, context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        """All of them."""
        return ListPromptsResult(prompts=[describe(one) for one in self.offered.values()])

    async def get(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """One, with its arguments filled in; an empty argument is one that was not given."""
        found = self.offered.get(params.name)
        if found is None:
            hint = nearest(params.name, self.offered)
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {ascii(params.name[:60])[1:-1]}. {hint}".rstrip())
        given = {name: value for name, value in (params.arguments or {}).items() if value != ""}
        try:
            said = await settled(self._toolbox.look(partial(_write, found, given), caller_of(self._toolbox, context)))
        except BusError as error:
            raise protocol_error(error) from None
        message = PromptMessage(role="user", content=TextContent(type="text", text=said))
        return GetPromptResult(description=found.text, messages=[message])


def describe(prompt: Prompt) -> Shown:
    """A prompt as clients see it."""
    listed = [
        PromptArgument(name=p.name, description=p.param.text, required=p.required or None) for p in prompt.parameters
    ]
    return Shown(name=prompt.name, description=prompt.text, arguments=listed or None)


def _write(prompt: Prompt, given: dict[str, str], bus: Bus) -> str:
    return str(prompt.verb(bus, **check_given(f"the prompt {prompt.name}", prompt.parameters, given)))
