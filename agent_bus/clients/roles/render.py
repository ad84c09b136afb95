"""The neutral texts in the forms that clients read. Pure but for reading the package's own files, once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from agent_bus.clients.roles.block import BEGIN, END
from agent_bus.locale.messages import LANGUAGES as LANGUAGES

ROLES = ("worker", "orchestrator", "reviewer")
SKILL, AGENT = "using-agent-bus", "bus-worker"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "worker": ("bus-work",),
    "orchestrator": ("bus-dispatch", "bus-status", "bus-review", "bus-stop"),
    "reviewer": ("bus-review",),
    "": ("bus-work", "bus-dispatch", "bus-status", "bus-review", "bus-stop"),
}
"""The commands of each role."""
_ARGUMENTS = "{{arguments}}"
_AFTER = {"en": "(what stands after the command)", "ja": "（コマンドの後に書かれた言葉）"}
_ABOUT_RULE = {
    "en": "How to work with the tasks of the agent bus",
    "ja": "エージェントバスのタスクの扱い方",
}
_ABOUT_AGENT = {
    "en": "Takes tasks from the agent bus (MCP server bus), does them and reports each once. Use it to work off the "
    "inbox without filling this conversation.",
    "ja": "エージェントバス（MCP サーバー bus）からタスクを受け取り、作業し、一つずつ報告する。"
    "この会話を埋めずに受信箱を片付けるときに使う。",
}


@dataclass(frozen=True)
class Source:
    """A neutral text.

    Args:
        description: what it is for, in one line; "" for a role text.
        hint: what may stand after a command.
        body: Markdown; `{{arguments}}` stands where a command's arguments go.
    """

    description: str
    hint: str
    body: str


@cache
def source(name: str, language: str) -> Source:
    """The neutral text of a name: lines `key: value` and an empty line, if it has any, then the body."""
    text = files(__package__).joinpath("texts", language, f"{name}.md").read_text(encoding="utf-8")
    head, _, body = text.partition("\n\n") if text.startswith("description: ") else ("", "", text)
    said = dict(line.split(": ", 1) for line in head.splitlines())
    return Source(said.get("description", ""), said.get("hint", ""), body.strip("\n") + "\n")


def role_text(role: str, language: str) -> str:
    """What holds for everybody, then what a role does; every role for ""."""
    names = ("common", *((role,) if role else ROLES))
    return "\n".join(source(name, language).body for name in names)


def texts(form: str, role: str, language: str) -> list[tuple[str, str]]:
    """All texts of a form for a role: (name, text), where the name is a command's, else the text's own.

    Args:
        form: one of FORMS.
        role: one of ROLES, or "" for all.
        language: one of LANGUAGES.
    """
    if form in _COMMAND_FORMS:
        return [(name, _COMMAND_FORMS[form](name, language)) for name in COMMANDS[role]]
    if form == "agent" and role not in ("", "worker"):
        return []
    return [(SKILL, _ROLE_FORMS[form](role, language))]


def _front(body: str, **keys: str) -> str:
    lines = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in keys.items())
    return f"---\n{lines}---\n\n{body}"


def _skill(role: str, language: str) -> str:
    text = source(SKILL, language)
    return _front(text.body, name=SKILL, description=text.description)


def _agent(role: str, language: str) -> str:
    return _front(role_text("worker", language), name=AGENT, description=_ABOUT_AGENT[language])


def _block(role: str, language: str) -> str:
    return f"{BEGIN}\n{role_text(role, language)}{END}"


def _mdc(role: str, language: str) -> str:
    return _front(role_text(role, language), description=_ABOUT_RULE[language], alwaysApply="true")


def _rule(role: str, language: str) -> str:
    return _front(role_text(role, language), trigger="always_on", description=_ABOUT_RULE[language])


def _hook(role: str, language: str) -> str:
    return ""


def _body(name: str, language: str, arguments: str = "") -> str:
    return source(name, language).body.replace(_ARGUMENTS, arguments or _AFTER[language])


def _command(name: str, language: str) -> str:
    """Claude Code's. It lets its model call commands by itself; a stop is a person's to ask for."""
    text = source(name, language)
    people = {"disable_model_invocation": "true"} if name == "bus-stop" else {}
    keys = {"description": text.description, "argument_hint": json.dumps(text.hint, ensure_ascii=False), **people}
    return _front(_body(name, language, "$ARGUMENTS"), **keys)


def _described(name: str, language: str, arguments: str = "") -> str:
    return _front(_body(name, language, arguments), description=source(name, language).description)


def _skill_command(name: str, language: str) -> str:
    return _front(_body(name, language), name=name, description=source(name, language).description)


def _prompt(name: str, language: str) -> str:
    return _front(_body(name, language), agent="agent", description=source(name, language).description)


def _toml(name: str, language: str) -> str:
    about = json.dumps(source(name, language).description, ensure_ascii=False)
    return f"description = {about}\nprompt = '''\n{_body(name, language, '{{args}}')}'''\n"


_ROLE_FORMS: Mapping[str, Callable[[str, str], str]] = {
    "skill": _skill,
    "agent": _agent,
    "block": _block,
    "mdc": _mdc,
    "rule": _rule,
    "hook": _hook,
}
_COMMAND_FORMS: Mapping[str, Callable[[str, str], str]] = {
    "command": _command,
    "described": partial(_described, arguments="$ARGUMENTS"),
    "workflow": _described,
    "skill_command": _skill_command,
    "prompt": _prompt,
    "plain": _body,
    "toml": _toml,
}
FORMS = (*_ROLE_FORMS, *_COMMAND_FORMS)
