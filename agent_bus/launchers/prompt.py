"""The prompt of a run: who the worker is, how it reports, its order, and data that is none (docs/launcher.md "Prompt").

The parts are told apart by markers that hold a random word of this run which stands in none of the texts, so no text
can end its part or begin another one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent_bus.locale.messages import LANGUAGES
from agent_bus.locale.prompts import PROMPTS

WHOLE_BYTES = 32 * 1024
"""A longer text is cut to its first SHOWN characters."""
SHOWN = 4000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_KINDS = {"result": "result", "rework": "rework", "crash": "reason of the last end", "answer": "answer"}


@dataclass(frozen=True)
class Previous:
    """Something that went before: the result of the step before, a comment of a rework, the reason of the last end, an
    answer to a question. A rework's comment is an order too."""

    kind: Literal["result", "rework", "crash", "answer"]
    author: str
    text: str


@dataclass(frozen=True)
class Brief:
    """What a prompt is made of.

    Args:
        agent, role, worker: who works; the role is worker, orchestrator or reviewer.
        root: the bus folder.
        sender: whose order it is.
        minutes: how long the run may last.
        instruction: the order, unchanged.
        context: as JSON text, "" = none.
        language: en or ja.
        resumed: whether the session knows the rules already.
        nudge: the last turn ended without a report.
        cli_first: the last run made no call of the bus.
    """

    agent: str
    role: str
    root: str
    task_id: str
    lease_id: str
    worker: str
    work_dir: str
    sender: str
    minutes: int
    instruction: str
    context: str = ""
    previous: Sequence[Previous] = field(default_factory=tuple)
    language: str = "en"
    resumed: bool = False
    nudge: bool = False
    cli_first: bool = False


@dataclass(frozen=True)
class Prompt:
    """The text, and what is to be written to the file of the whole order, "" if nothing was cut."""

    text: str
    whole: str = ""


def compose(brief: Brief, token: Callable[[], str], whole_path: str) -> Prompt:
    """The prompt of a run.

    Args:
        brief: what it is made of.
        token: gives 16 random hex characters; it is asked until none of the texts holds them.
        whole_path: where the whole order will lie if it is cut.
    """
    texts = [brief.instruction, brief.context, *(one.text for one in brief.previous)]
    mark = fresh_mark(token, [*texts, *(one.author for one in brief.previous)])
    cut = _too_long(brief.instruction)
    say = _Say(brief, mark)
    order = visible(brief.instruction)
    if cut:
        note = say("cut.order", size=len(brief.instruction), shown=SHOWN, path=visible(whole_path))
        order = f"{visible(brief.instruction[:SHOWN])}\n{note}"
    blocks = [f"ORDER {mark}\n{order}\nEND {mark}", *_data(brief, mark, say)]
    return Prompt("\n\n".join((*_rules(brief, say), *blocks)) + "\n", brief.instruction if cut else "")


def visible(text: str) -> str:
    """The text with LF newlines, and control characters other than these and tabs shown as `\\u00XX`."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def fresh_mark(token: Callable[[], str], texts: Sequence[str]) -> str:
    """A word that stands in none of the texts; `token` is asked until one does not."""
    while any((mark := token()) in text for text in texts):
        pass
    return mark


def data_part(mark: str, title: str, text: str) -> str:
    """A text between the marks that say that it is data; title and text hold no mark and no control characters."""
    return f"DATA {mark} {title}\n{text}\nEND {mark}"


def one_line(text: str) -> str:
    """A text in one line, with nothing in it that a terminal obeys."""
    return visible(text).replace("\n", "\\n").replace("\t", " ")


def report_command(brief: Brief) -> str:
    """The command line that reports without bus tools."""
    options = f'--lease {brief.lease_id} --worker "{brief.worker}" --status completed --summary-file -'
    return f"agent-bus report {brief.task_id} {options}"


class _Say:
    """The messages in the brief's language, with its values filled in."""

    def __init__(self, brief: Brief, mark: str) -> None:
        self._column = LANGUAGES.index(brief.language) if brief.language in LANGUAGES else 0
        facts = ("agent", "root", "task_id", "lease_id", "worker", "work_dir", "sender")
        self._facts = {name: one_line(getattr(brief, name)) for name in facts}
        self._facts |= {"mark": mark, "minutes": str(brief.minutes), "cli": one_line(report_command(brief))}

    def __call__(self, key: str, **more: object) -> str:
        return PROMPTS[key][self._column].format(**{**self._facts, **more})


def _rules(brief: Brief, say: _Say) -> Iterator[str]:
    if brief.cli_first:
        yield say("cli.first")
    role = brief.role if f"role.{brief.role}" in PROMPTS else "worker"
    yield say("frame", role=say(f"role.{role}"))
    if brief.nudge:
        yield say("nudge")
    yield say("rules.short" if brief.resumed else "rules")
    reviewed = say("rules.reviewed") if any(one.kind == "rework" for one in brief.previous) else ""
    yield say("rules.data", reviewed=reviewed)


def _data(brief: Brief, mark: str, say: _Say) -> Iterator[str]:
    """Every piece in a part of its own: its author stands in the marker, where no text can forge it."""
    if brief.context:
        yield data_part(mark, "context", _shown(brief.context, say))
    for one in brief.previous:
        yield data_part(mark, f"previous {_KINDS[one.kind]}, by {one_line(one.author)}", _shown(one.text, say))


def _shown(text: str, say: _Say) -> str:
    if not _too_long(text):
        return visible(text)
    return f"{visible(text[:SHOWN])}\n{say('cut.data', size=len(text), shown=SHOWN)}"


def _too_long(text: str) -> bool:
    return len(text.encode("utf-8", "replace")) > WHOLE_BYTES
