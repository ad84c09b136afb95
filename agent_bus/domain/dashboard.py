"""The two notes about the whole bus: Dashboard and Problems. Complete as plain text, without tables of the app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_bus.domain import inert
from agent_bus.domain.inert import Plain, flat
from agent_bus.domain.mirrors import Mirror, Say, callout, head

SHOWN = 20
_IN_LINKS = str.maketrans({"[": "(", "]": ")", "|": "¦", "`": "'", "<": "‹", ">": "›", "%": "％", "$": "＄"})


@dataclass(frozen=True)
class Row:
    """A task in one line."""

    task_id: str
    title: str
    status: str
    to: str


@dataclass(frozen=True)
class Overview:
    """What the Dashboard shows.

    Args:
        needs_you, running, queued, ended: tasks, in the order to show.
        counts: how many tasks there are of each of those lists.
        agents: name and state.
        problems: how many lines Problems has.
        stop: the stop's document, None if the bus runs.
        changed: local time of the last change.
        host: the owner host's name; `epoch` how often the owner changed.
    """

    needs_you: Sequence[Row] = ()
    running: Sequence[Row] = ()
    queued: Sequence[Row] = ()
    ended: Sequence[Row] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    agents: Sequence[tuple[str, str, str]] = ()
    problems: int = 0
    stop: Mapping[str, Any] | None = None
    changed: str = ""
    host: str = ""
    epoch: int = 0
    language: str = "en"
    req: str = ""
    """The nonce for the end of the stop."""
    paused: str = ""
    """Why nothing that is written in the vault is taken, "" if it is."""
    chains: Sequence[Row] = ()
    """The first tasks of the latest chains."""
    rooms: Sequence[tuple[str, int, str]] = ()
    """The rooms that were spoken in last: the note's name, how many messages, the time of the last."""


def dashboard(over: Overview, say: Say) -> Mirror:
    """The Dashboard."""
    language, req = Plain(over.language), Plain(over.req)
    own = (("ab_host", over.host), ("ab_epoch", over.epoch), ("ab_lang", language), ("ab_req", req))
    parts = [_first(over, say)]
    for name in ("needs_you", "running", "queue", "done"):
        rows: Sequence[Row] = getattr(over, {"queue": "queued", "done": "ended"}.get(name, name))
        parts.append(_list(name, rows, over.counts.get(name, len(rows)), say))
    parts.append(f"\n{say('mirror.agents')}\n" + ("".join(_agent(one, say) for one in over.agents) or _nothing(say)))
    if over.rooms:
        said = (say("mirror.room", stem=stem, n=n, at=at[:16].replace("T", " ")) for stem, n, at in over.rooms)
        parts.append(f"\n{say('mirror.rooms')}\n" + "".join(f"- {line}\n" for line in said))
    if over.chains:
        drawn = "".join(f"- {link(row, '.canvas')}\n" for row in over.chains)
        parts.append(f"\n{say('mirror.chains')}\n{drawn}")
    title = say("mirror.dashboard")
    return Mirror("dashboard", "dashboard", "Dashboard", head("dashboard", "dashboard", title, *own),
                  {"status": "".join(parts)},
                  f"\n{say('mirror.controls')}\n\n## {say('mirror.notes').lstrip('# ')}\n")  # fmt: skip


def problems_note(problems: Sequence[str], say: Say) -> Mirror:
    """Problems, one line each."""
    rows = "".join(f"- {flat(one, 400)}\n" for one in problems[:100]) or f"{say('mirror.no_problems')}\n"
    return Mirror("problems", "problems", "notes/Problems", head("problems", "problems", say("mirror.problems")),
                  {"problems": rows}, f"\n{say('mirror.notes')}\n")  # fmt: skip


def _first(over: Overview, say: Say) -> str:
    facts = say("mirror.changed", at=over.changed.replace("T", " ")[:16] or "–", host=flat(over.host))
    you, problems = over.counts.get("needs_you", 0), over.problems
    counts = say("mirror.counts", you=you, waiting=over.counts.get("queue", 0), running=over.counts.get("running", 0),
                 problems=problems)  # fmt: skip
    if over.paused:
        facts = f"{facts}\n> **{say('mirror.paused', why=flat(over.paused, 200))}**"
    if over.stop is not None:
        reason = flat(str(over.stop.get("reason") or over.stop.get("by") or "–"), 300)
        return callout("danger", say("mirror.stopped", reason=reason), [counts, say("mirror.resume_how"), facts])
    links = [say("mirror.problems_link", n=problems)] if problems else []
    return callout("warning" if you or problems else "success", counts, [*links, facts])


def _list(name: str, rows: Sequence[Row], count: int, say: Say) -> str:
    shown = [f"- {say(f'mirror.state.{row.status}')} · {link(row)} · {flat(row.to)}\n" for row in rows[:SHOWN]]
    if count > len(shown):
        shown.append(f"- {say('mirror.and_more', n=count - len(shown))}\n")
    return f"\n{say(f'mirror.{name}')}\n" + ("".join(shown) or _nothing(say))


def _nothing(say: Say) -> str:
    return f"- {say('mirror.nothing')}\n"


def _agent(agent: tuple[str, str, str], say: Say) -> str:
    name, stem, state = agent
    shown = flat(name).replace("|", "")
    return (
        f"- [[{stem}|{shown}]] · {flat(state) or '–'}\n" if stem != name else f"- [[{stem}]] · {flat(state) or '–'}\n"
    )


def link(row: Row, ending: str = "") -> str:
    """A link to a task's note, or its chain's canvas, with its title. No escape works there, so signs are changed."""
    return f"[[{row.task_id}{ending}|{row.title.translate(_IN_LINKS)}]]"


def row_of(task_id: str, instruction: str, status: str, to: str) -> Row:
    """A task in one line."""
    return Row(task_id, inert.title(instruction), status, to)
