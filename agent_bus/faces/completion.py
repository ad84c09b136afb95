"""What a client may suggest for an argument of a prompt or for the id in an address."""

from __future__ import annotations

from functools import partial

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CompleteRequestParams, CompleteResult, Completion, PromptReference

from agent_bus.bus import Bus
from agent_bus.errors import BusError
from agent_bus.faces.answers import settled
from agent_bus.faces.prompts import Prompts
from agent_bus.faces.requests import Context, caller_of, protocol_error
from agent_bus.faces.resources import Documents, unknown
from agent_bus.faces.toolbox import Toolbox
from agent_bus.ids import fold
from agent_bus.offers import Words

MOST = 100
"""The protocol's limit."""


class Completions:
    """Suggestions for what one server offers."""

    def __init__(self, toolbox: Toolbox, prompts: Prompts, documents: Documents) -> None:
        self._toolbox = toolbox
        self._prompts = prompts
        self._documents = documents

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        """The words that begin with what is typed; none for an argument about which nothing is known."""
        words = self._words(params)
        if words is None:
            return CompleteResult(completion=Completion(values=[], total=0, has_more=False))
        look = partial(_beginning, words, params.argument.value)
        try:
            found = await settled(self._toolbox.look(look, caller_of(self._toolbox, context)))
        except BusError as error:
            raise protocol_error(error) from None
        return CompleteResult(completion=Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST))

    def _words(self, params: CompleteRequestParams) -> Words | None:
        name = params.argument.name
        if not isinstance(params.ref, PromptReference):
            resource = self._documents.offered.get(params.ref.uri)
            if resource is None:
                raise unknown(params.ref.uri)
            return resource.complete.get(name)
        prompt = self._prompts.offered.get(params.ref.name)
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {ascii(params.ref.name[:60])[1:-1]}")
        fixed = next((p.words for p in prompt.parameters if p.name == name and p.words), ())
        return (lambda bus: fixed) if fixed else prompt.complete.get(name)


def _beginning(words: Words, typed: str, bus: Bus) -> list[str]:
    start = fold(typed)
    return [word for word in words(bus) if word and fold(word).startswith(start)]
