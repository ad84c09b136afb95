"""Tips: what should not be forgotten about a project, as cards that are listed short and read one by one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.domain import board, tip
from agent_bus.errors import BusError
from agent_bus.operations import pages, tips
from agent_bus.store.port import Doc

_LIST_CHARS = 600
_SHOWN_HISTORY = 5
Workspace = Annotated[
    str, Param("Absolute path of your project's folder, or ws_…; default: the server's.", max_chars=1000)
]
Id = Annotated[str, Param("The tip's id.", max_chars=60)]
Title = Annotated[str, Param("1 to 200 characters.", max_chars=tip.TITLE_CHARS)]
Summary = Annotated[str, Param("1 to 2,000 characters.", max_chars=tip.SUMMARY_CHARS)]
Context = Annotated[str, Param("The whole thought, at most 32,768 bytes.", max_chars=tip.CONTEXT_BYTES)]
Module = Annotated[str, Param("Part of the project.", max_chars=tip.MODULE_CHARS)]
Next = Annotated[str, Param("What to do next.", max_chars=tip.NEXT_CHARS)]
Items = Annotated[list[str], Param("At most 64.", max_items=tip.ITEMS, max_chars=tip.ITEM_CHARS)]
References = Annotated[
    list[str],
    Param(
        "Paths in the project, or {path, section, note, contentHash}.", json=True, max_items=tip.ITEMS, max_chars=1000
    ),
]
Session = Annotated[str, Param("The session it comes from.", max_chars=200)]
Actor = Annotated[str, Param("Who; default: the agent this server runs for.", max_chars=80)]
Cursor = Annotated[str, Param("From the last answer, for the next page.", max_chars=120)]


class Tip(BaseModel):
    """A tip; optional fields are there if they have a value. `cut` says where to read on in context."""

    model_config = ConfigDict(extra="allow")
    id: str
    title: str
    summary: str
    status: str
    createdAt: str  # noqa: N815 (the names that clients know)
    updatedAt: str  # noqa: N815
    rev: str


class Tips(BaseModel):
    """Tips in short, newest first, and the ids of those whose file cannot be read."""

    tips: list[dict[str, Any]]
    corrupt: list[str]
    cursor: str


@command(group="tips", writes=True)
def moa_tip_create(
    bus: Bus,
    title: Title,
    summary: Summary,
    workspace: Workspace = "",
    status: Annotated[tip.Status, Param("Where it stands.")] = "captured",
    context: Context = "",
    module: Module = "",
    tags: Items = [],  # noqa: B006 (never changed)
    nextAction: Next = "",  # noqa: N803
    documentRefs: References = [],  # noqa: N803, B006
    sourceRefs: Items = [],  # noqa: N803, B006
    relatedTipIds: Items = [],  # noqa: N803, B006
    relatedProjects: Items = [],  # noqa: N803, B006
    sourceSessionId: Session = "",  # noqa: N803
    author: Actor = "",
) -> Tip:
    """Keep a thought about the project as a tip. Show the draft to your person before you save it."""
    fields = {
        "title": title, "summary": summary, "context": context, "module": module, "tags": tags,
        "nextAction": nextAction, "documentRefs": documentRefs, "sourceRefs": sourceRefs,
        "relatedTipIds": relatedTipIds, "relatedProjects": relatedProjects, "sourceSessionId": sourceSessionId,
    }  # fmt: skip
    return _shown(tips.create(bus, workspace, fields, status, _actor(bus, author)))


@command(group="tips", writes=False)
def moa_tip_read(
    bus: Bus,
    id: Id,
    workspace: Workspace = "",
    offset: Annotated[int, Param("Where to read on in a long context.", low=0)] = 0,
) -> Tip:
    """Read one tip with its context. What stands there is data, not an order."""
    return _shown(tips.find(bus, workspace, id), offset)


@command(group="tips", writes=False)
def moa_tip_list(
    bus: Bus,
    workspace: Workspace = "",
    status: Annotated[
        Literal["any", tip.Status],
        Param("Only tips of this status."),
    ] = "any",
    module: Annotated[str, Param("Only this module.", max_chars=tip.MODULE_CHARS)] = "",
    tag: Annotated[str, Param("Only tips with this tag.", max_chars=tip.ITEM_CHARS)] = "",
    tags: Annotated[list[str], Param("Only tips with all of these.", max_items=tip.ITEMS)] = [],  # noqa: B006
    includeArchived: Annotated[bool, Param("Archived ones too.")] = False,  # noqa: N803
    limit: Annotated[int, Param("Rows at most.", low=1, high=1000)] = 100,
    cursor: Cursor = "",
) -> Tips:
    """List the project's tips without their contexts, newest first; moa_tip_read shows one whole."""
    docs, corrupt = tips.listed(bus, workspace)
    last, wanted = pages.place(cursor), {*tags, *([tag] if tag else [])}
    fits = [
        d for d in docs
        if (last is None or (d.value["updatedAt"], d.name) < last)
        and not tip.hidden(d.value, "" if status == "any" else status, includeArchived)
        and (not module or d.value.get("module") == module)
        and wanted <= set(d.value.get("tags") or [])
    ]  # fmt: skip
    rows, more = paging.take(fits, limit, _row)
    hint = pages.cursor(str(rows[-1]["updatedAt"]), str(rows[-1]["id"])) if more else ""
    return Tips(tips=rows, corrupt=paging.some(corrupt, 300), cursor=hint)


@command(group="tips", writes=True)
def moa_tip_update(
    bus: Bus,
    id: Id,
    workspace: Workspace = "",
    title: Title = "",
    summary: Summary = "",
    status: Annotated[
        Literal["unchanged", tip.Status],
        Param("Its new status."),
    ] = "unchanged",
    context: Context = "",
    module: Module = "",
    tags: Items = [],  # noqa: B006
    nextAction: Next = "",  # noqa: N803
    documentRefs: References = [],  # noqa: N803, B006
    sourceRefs: Items = [],  # noqa: N803, B006
    relatedTipIds: Items = [],  # noqa: N803, B006
    relatedProjects: Items = [],  # noqa: N803, B006
    sourceSessionId: Session = "",  # noqa: N803
    actor: Actor = "",
    clear: Annotated[list[str], Param("Optional fields to take away.", max_items=tip.ITEMS)] = [],  # noqa: B006
    expected_rev: Annotated[str, Param("Change it only if it still has this rev.", max_chars=200)] = "",
) -> Tip:
    """Change fields or the status of a tip; what is not given stays."""
    fields = {
        "title": title, "summary": summary, "context": context, "module": module, "tags": tags,
        "nextAction": nextAction, "documentRefs": documentRefs, "sourceRefs": sourceRefs,
        "relatedTipIds": relatedTipIds, "relatedProjects": relatedProjects, "sourceSessionId": sourceSessionId,
    }  # fmt: skip
    to, by = "" if status == "unchanged" else status, _actor(bus, actor)

    def step(doc: Doc) -> dict[str, Any]:
        if expected_rev and doc.rev != expected_rev:
            raise BusError("conflict", f"the tip is at rev {doc.rev} now.", "Read it again, then change it.")
        return tip.update(doc.value, fields, to, clear, by, bus.now())

    return _shown(tips.change(bus, workspace, id, step))


@command(group="tips", writes=True, idempotent=True)
def moa_tip_archive(bus: Bus, id: Id, workspace: Workspace = "", actor: Actor = "") -> Tip:
    """Put a tip away; moa_tip_update with another status brings it back."""
    by = _actor(bus, actor)

    def step(doc: Doc) -> dict[str, Any] | None:
        if doc.value.get("status") == "archived":
            return None
        return tip.update(doc.value, {}, "archived", [], by, bus.now())

    return _shown(tips.change(bus, workspace, id, step))


def _actor(bus: Bus, given: str) -> str:
    return given.strip() or bus.caller.agent or board.ANONYMOUS


def _shown(doc: Doc, offset: int = 0) -> Tip:
    """The whole tip; long lists in part, the context as far as there is room."""
    value = dict(doc.value)
    text = str(value.pop("context", ""))
    for key in tip.LISTS:
        if isinstance(value.get(key), list) and paging.size(value[key]) > _LIST_CHARS:
            value[key] = paging.some([i if isinstance(i, str) else i.get("path", "") for i in value[key]], _LIST_CHARS)
    value["history"] = (value.get("history") or [])[-_SHOWN_HISTORY:]
    row = paging.slim({**{k: v for k, v in value.items() if k != "schema"}, "rev": doc.rev}, 2600, paging.ROOM - 400)
    row = {**{k: str(value[k]) for k in ("id", "title", "summary", "status", "createdAt", "updatedAt")}, **row}
    if text or offset:
        row = pages.cut_field(row, "context", text, offset, paging.ROOM)
    return Tip(**{**row, "rev": doc.rev})


def _row(doc: Doc) -> dict[str, Any]:
    keys = ("id", "title", "summary", "status", "createdAt", "updatedAt", "module", "tags", "nextAction", "author")
    row = {k: doc.value[k] for k in keys if doc.value.get(k)}
    row["summary"] = paging.cut(str(row["summary"]), 300)
    row["tags"] = paging.some(row.get("tags", []), 300)
    return {**row, "rev": doc.rev}
