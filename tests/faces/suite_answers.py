"""The answers of the conformance suite's fixtures; their names and texts are the suite's own."""

from __future__ import annotations

import base64
import io
import json
import struct
import wave
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    InputResponseRequestParams,
    ListRootsRequest,
    ListRootsResult,
    MissingRequiredClientCapabilityErrorData,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    Tool,
)

Context = ServerRequestContext[Any, Any]
BEAT_S = 0.05
"""The suite asks for pauses of about this length between notices."""


@dataclass(frozen=True)
class Fixture:
    """What a list shows, and what a call runs."""

    shown: Any
    run: Callable[[Context, Any], Awaitable[Any]]


TOOLS: dict[str, Fixture] = {}
PROMPTS: dict[str, Fixture] = {}


def tool(name: str, schema: dict[str, Any] | None = None, **properties: dict[str, Any]) -> Callable[[Any], Any]:
    """Registers a tool; its properties are all required."""
    shape = schema or {"type": "object", "properties": properties, "required": list(properties)}

    def keep(run: Any) -> Any:
        shown = Tool(name=name, description=f"The suite's {name}.", input_schema=shape)
        TOOLS[name] = Fixture(shown, run)
        return run

    return keep


def prompt(name: str, *arguments: str) -> Callable[[Any], Any]:
    """Registers a prompt; its arguments are all required."""
    listed = [PromptArgument(name=argument, description=f"The {argument}.", required=True) for argument in arguments]

    def keep(run: Any) -> Any:
        PROMPTS[name] = Fixture(Prompt(name=name, description=f"The suite's {name}.", arguments=listed), run)
        return run

    return keep


def text(words: str) -> TextContent:
    """A text item."""
    return TextContent(type="text", text=words)


def png() -> str:
    """One red pixel, as base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return base64.b64encode(image).decode()


def wav() -> str:
    """A hundredth of a second of silence, as base64."""
    data = io.BytesIO()
    with wave.open(data, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(160))
    return base64.b64encode(data.getvalue()).decode()


def embedded(uri: str, kind: str, words: str) -> EmbeddedResource:
    """A text resource inside a result."""
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=words))


def image() -> ImageContent:
    """The red pixel as a content item."""
    return ImageContent(type="image", data=png(), mime_type="image/png")


# Tools that only answer.


@tool("test_simple_text")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [text("This is a simple text response for testing.")]


@tool("test_image_content")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [image()]


@tool("test_audio_content")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [AudioContent(type="audio", data=wav(), mime_type="audio/wav")]


@tool("test_embedded_resource")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@tool("test_multiple_content_types")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    data = json.dumps({"test": "data", "value": 123})
    mixed = embedded("test://mixed-content-resource", "application/json", data)
    return [text("Multiple content types test:"), image(), mixed]


@tool("test_error_handling")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return CallToolResult(content=[text("This tool intentionally returns an error for testing")], is_error=True)


@tool("test_headers", region={"type": "string", "x-mcp-header": "Region"})
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [text(f"region {(params.arguments or {}).get('region')}")]


@tool("test_trigger_tool_change")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [text("The tools are fixed when the server starts.")]


@tool("test_trigger_prompt_change")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [text("The prompts are fixed when the server starts.")]


@tool(
    "json_schema_2020_12_tool",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def _(context: Context, params: CallToolRequestParams) -> Any:
    return [text("fine")]


# Tools that speak while they work.


@tool("test_tool_with_logging")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)
        await anyio.sleep(BEAT_S)
    return [text("logged")]


@tool("test_logging_tool")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    await context.session.send_log_message("info", "only for those who asked", related_request_id=context.request_id)
    return [text("logged")]


@tool("test_tool_with_progress")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(BEAT_S)
    return [text("done")]


@tool("test_reconnection")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await anyio.sleep(BEAT_S)
    return [text("reconnected")]


# Tools that ask the client while they work: only the 2025 era can.


@tool("test_sampling", prompt={"type": "string"})
async def _(context: Context, params: CallToolRequestParams) -> Any:
    words = str((params.arguments or {}).get("prompt", ""))
    message = SamplingMessage(role="user", content=text(words))
    found = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return [text(f"LLM response: {getattr(found.content, 'text', '')}")]


@tool("test_elicitation", message={"type": "string"})
async def _(context: Context, params: CallToolRequestParams) -> Any:
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    found = await _elicit(context, str((params.arguments or {}).get("message", "")), fields, ["username", "email"])
    return [text(f"User response: action={found.action}, content={json.dumps(found.content)}")]


@tool("test_elicitation_sep1034_defaults")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return _told(await _elicit(context, "Look at the defaults.", fields))


@tool("test_elicitation_sep1330_enums")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    def titled(*names: str) -> list[dict[str, str]]:
        return [{"const": f"value{n}", "title": f"{name} Option"} for n, name in enumerate(names, 1)]

    three, choices = ["option1", "option2", "option3"], titled("First", "Second", "Third")
    fields = {
        "untitledSingle": {"type": "string", "enum": three},
        "titledSingle": {"type": "string", "oneOf": choices},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": three}},
        "titledMulti": {"type": "array", "items": {"anyOf": choices}},
    }
    return _told(await _elicit(context, "Choose.", fields))


async def _elicit(
    context: Context, message: str, fields: dict[str, Any], required: list[str] | None = None
) -> ElicitResult:
    return await context.session.elicit_form(message, _form(fields, required or []), context.request_id)


def _form(fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, **({"required": required} if required else {})}


def _told(found: ElicitResult) -> Any:
    return [text(f"Elicitation completed: action={found.action}, content={json.dumps(found.content)}")]


# Tools that ask by answering "input required": the 2026 era.


def ask(message: str, field: str, kind: str = "string") -> ElicitRequest:
    """A form of one field."""
    schema = _form({field: {"type": kind}}, [field])
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(words: str, tokens: int = 100) -> CreateMessageRequest:
    """A question to the client's model."""
    message = SamplingMessage(role="user", content=text(words))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=tokens))


def answers(params: InputResponseRequestParams, asked: Mapping[str, type[Any]]) -> list[Any] | None:
    """The responses to what was asked, in that order; None if one is missing or of another kind."""
    given = params.input_responses or {}
    found = [given.get(name) for name in asked]
    fits = all(isinstance(one, kind) for one, kind in zip(found, asked.values(), strict=True))
    return found if fits else None


def required(state: str = "", **requests: InputRequest) -> InputRequiredResult:
    """A result that asks; the state is sealed on its way out."""
    return InputRequiredResult(input_requests=requests, request_state=state or None)


NAME = ask("What is your name?", "name")


@tool("test_input_required_result_elicitation")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    found = answers(params, {"user_name": ElicitResult})
    name = (found[0].content or {}).get("name") if found else None
    return [text(f"Hello, {name}!")] if name else required(user_name=NAME)


@tool("test_streaming_elicitation")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    await context.session.report_progress(1, 2, "about to ask")
    return required(user_name=NAME)


@tool("test_input_required_result_sampling")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    found = answers(params, {"capital_question": CreateMessageResult})
    if found is None:
        return required(capital_question=sample("What is the capital of France?"))
    return [text(found[0].content.text)]


@tool("test_input_required_result_list_roots")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    found = answers(params, {"client_roots": ListRootsResult})
    if found is None:
        return required(client_roots=ListRootsRequest())
    return [text(", ".join(f"{root.name} {root.uri}" for root in found[0].roots))]


@tool("test_input_required_result_request_state")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    if answers(params, {"confirm": ElicitResult}) and params.request_state == "asked":
        return [text("state-ok")]
    return required("asked", confirm=ask("Please confirm", "ok", "boolean"))


@tool("test_input_required_result_tampered_state")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    if answers(params, {"confirm": ElicitResult}) and params.request_state == "asked":
        return [text("state-ok")]
    return required("asked", confirm=ask("Please confirm", "ok", "boolean"))


@tool("test_input_required_result_multiple_inputs")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    kinds = {"user_name": ElicitResult, "greeting": CreateMessageResult, "client_roots": ListRootsResult}
    if answers(params, kinds) and params.request_state == "asked":
        return [text("all there")]
    return required(
        "asked", user_name=NAME, greeting=sample("Generate a greeting", 50), client_roots=ListRootsRequest()
    )


@tool("test_input_required_result_multi_round")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    if answers(params, {"step2": ElicitResult}) and params.request_state == "second":
        return [text("both steps done")]
    if answers(params, {"step1": ElicitResult}) and params.request_state == "first":
        return required("second", step2=ask("Step 2: What is your favorite color?", "color"))
    return required("first", step1=ask("Step 1: What is your name?", "name"))


@tool("test_input_required_result_capabilities")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    can = context.session.client_capabilities or ClientCapabilities()
    wanted: dict[str, InputRequest] = {}
    if can.sampling is not None:
        wanted["greeting"] = sample("Generate a greeting")
    if can.elicitation is not None:
        wanted["user_name"] = NAME
    return required("", **wanted) if wanted else [text("nothing to ask")]


@tool("test_missing_capability")
async def _(context: Context, params: CallToolRequestParams) -> Any:
    needed = ClientCapabilities(sampling=SamplingCapability())
    if context.session.check_client_capability(needed):
        return [text("the client can sample")]
    data = MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
    raise MCPError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        "This tool needs sampling.",
        data.model_dump(by_alias=True, exclude_none=True),
    )


# Prompts.


def messages(*items: Any) -> GetPromptResult:
    """A prompt's result: each item as the user's."""
    return GetPromptResult(messages=[PromptMessage(role="user", content=item) for item in items])


@prompt("test_simple_prompt")
async def _(context: Context, params: GetPromptRequestParams) -> Any:
    return messages(text("This is a simple prompt for testing."))


@prompt("test_prompt_with_arguments", "arg1", "arg2")
async def _(context: Context, params: GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    return messages(text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"))


@prompt("test_prompt_with_embedded_resource", "resourceUri")
async def _(context: Context, params: GetPromptRequestParams) -> Any:
    uri = (params.arguments or {}).get("resourceUri", "")
    words = "Embedded resource content for testing."
    return messages(embedded(uri, "text/plain", words), text("Please process the embedded resource above."))


@prompt("test_prompt_with_image")
async def _(context: Context, params: GetPromptRequestParams) -> Any:
    return messages(image(), text("Please analyze the image above."))


@prompt("test_input_required_result_prompt")
async def _(context: Context, params: GetPromptRequestParams) -> Any:
    found = answers(params, {"user_context": ElicitResult})
    if found is None:
        return required(user_context=ask("What context should the prompt use?", "context"))
    return messages(text(f"With the context: {(found[0].content or {}).get('context')}"))


# Resources.

STATIC, BINARY, WATCHED = "test://static-text", "test://static-binary", "test://watched-resource"
TEMPLATE = "test://template/{id}/data"
RESOURCES = {
    STATIC: Resource(uri=STATIC, name="static-text", description="A text.", mime_type="text/plain"),
    BINARY: Resource(uri=BINARY, name="static-binary", description="A picture.", mime_type="image/png"),
    WATCHED: Resource(uri=WATCHED, name="watched-resource", description="To subscribe to.", mime_type="text/plain"),
}
TEMPLATES = (
    ResourceTemplate(
        uri_template=TEMPLATE, name="template", description="Data of an id.", mime_type="application/json"
    ),
)


def contents(uri: str) -> ReadResourceResult | None:
    """A fixture's contents; None for any other address."""
    if uri == BINARY:
        return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=png())])
    texts = {STATIC: "This is the content of the static text resource.", WATCHED: "Watched."}
    head, tail = TEMPLATE.split("{id}")
    if uri in texts:
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="text/plain", text=texts[uri])])
    if not (uri.startswith(head) and uri.endswith(tail)):
        return None
    name = uri[len(head) : -len(tail)]
    data = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="application/json", text=data)])
