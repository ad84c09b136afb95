"""One entry of ours: its program, its bus, its limits, its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_bus import ids
from agent_bus.clients import PROJECT, base_name
from agent_bus.clients.found import Entry, FoundFile, options
from agent_bus.clients.installation import Installation, is_temporary
from agent_bus.commands import commands
from agent_bus.doctor import Finding, fail, good, warn
from agent_bus.doctor.ground import Ground

LEAST_S = 60.0
"""The longest wait of a verb is 50 s (setting `wait_max_s`); its call must outlast it."""
_NEEDED = {"default_tools_approval_mode": "approval", "alwaysLoad": "always_load"}
"""Keys without which a client offers or runs our tools late or not at all, with the case that says so."""
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|WEBHOOK", re.IGNORECASE)
"""What a variable that holds a secret is called."""
_REFERENCE = re.compile(r"^(?:Bearer\s+)?(?:\$\{?[\w:.-]+\}?|\{env:\w+\}|%\w+%)$")
_WEBHOOK = re.compile(r"https?://[^\s\"']*(?:/api/webhooks/|hooks\.slack\.com/|/webhook)[^\s\"']*", re.IGNORECASE)
_BEARER = re.compile(r"^Bearer\s+\S+$", re.IGNORECASE)


def look(ground: Ground, file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """All checks of one entry that need no program to be started."""
    if file.client.started(entry.value):
        yield command(ground, file, entry)
        yield root(ground, file, entry)
    yield from limits(ground, file, entry)
    yield from secret(file, entry)


def seed(file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """An entry of the server that ours took the place of."""
    yield warn("entry.command", "seed", file.client.name, path=file.path, key=entry.key)


def command(ground: Ground, file: FoundFile, entry: Entry) -> Finding:
    """Whether the entry's program is this installation, and will be for long."""
    client, words = file.client.name, file.client.started(entry.value)
    program = words[0]
    values = {"program": program, "path": file.path, "ours": ground.installation.program}
    case = _fault_of(program, words, ground)
    return fail("entry.command", case, client, **values) if case else good("entry.command", program, client)


def _fault_of(program: str, words: tuple[str, ...], ground: Ground) -> str:
    if not os.path.isabs(program):
        return "relative"
    if not os.path.isfile(program):
        return "gone"
    if not os.access(program, os.X_OK):
        return "unrunnable"
    if is_temporary(Path(program), ground.temp):
        return "temporary"
    return "" if _is_this(program, words, ground.installation) else "other"


def _is_this(program: str, words: tuple[str, ...], ours: Installation) -> bool:
    """A link that leads to our program, or an interpreter of our environment that runs our package."""
    if base_name(program) == "agent-bus":
        return os.path.realpath(program) == os.path.realpath(ours.program)
    runs_us = any("agent_bus" in word for word in words[1:])
    return runs_us and os.path.realpath(Path(program).parent) == os.path.realpath(ours.program.parent)


def is_trusted(ground: Ground, file: FoundFile, entry: Entry) -> bool:
    """Whether its program may be started to look at it: what came with somebody's project may not, unless it is ours.

    Clients ask their user before they start a project's server; a command that only looks must not start it unasked.
    An environment, or a package found in the folder, would make another program of ours.
    """
    if file.scope != PROJECT:
        return True
    words = file.client.started(entry.value)
    own = any(entry.value.get(key) for key in ("env", "environment", "cwd"))
    return not own and base_name(words[0]) == "agent-bus" and _is_this(words[0], words, ground.installation)


def root(ground: Ground, file: FoundFile, entry: Entry) -> Finding:
    """Whether the entry means the bus that is looked at."""
    client, named = file.client.name, options(file.client, entry.value).get("root", "")
    here = ground.layout.root if ground.layout else None
    values = {"root": named, "here": here or "?", "path": file.path}
    if not named:
        return warn("entry.root", "unnamed", client, **values)
    if not os.path.isdir(named):
        return fail("entry.root", "gone", client, **values)
    if here is not None and os.path.realpath(named) != os.path.realpath(here):
        return warn("entry.root", "other", client, **values)
    return good("entry.root", named, client)


def limits(ground: Ground, file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """What the client would cut short, hide or refuse."""
    found = [*_timeout(file, entry), *_needed(file, entry), *_trust(ground, file, entry), *_names(file, entry)]
    yield from found or [good("entry.limits", "", file.client.name)]


def _timeout(file: FoundFile, entry: Entry) -> Iterator[Finding]:
    known, client = file.client.limits, file.client
    if not known.timeout_key:
        return
    value = entry.value.get(known.timeout_key)
    value = value.get("request") if isinstance(value, dict) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    seconds = value * known.timeout_unit_s if is_number and value is not None else known.default_timeout_s
    if seconds and (seconds < LEAST_S or (not is_number and seconds <= LEAST_S)):
        yield warn("entry.limits", "timeout", client.name, key=known.timeout_key, seconds=f"{seconds:.0f}",
                   path=file.path, title=client.title)  # fmt: skip


def _needed(file: FoundFile, entry: Entry) -> Iterator[Finding]:
    client = file.client
    wanted = client.url_extras if client.address(entry.value) else client.extras
    for key, case in _NEEDED.items():
        if key in wanted and entry.value.get(key) != wanted[key]:
            yield warn("entry.limits", case, client.name, key=key, path=file.path)


def _trust(ground: Ground, file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """A client that hides tools of servers it does not trust, for an agent that is started without a person."""
    client, agent = file.client, options(file.client, entry.value).get("agent", "")
    launched = any(a.launcher and ids.same_name(name, agent) for name, a in ground.settings.agents.items() if agent)
    if launched and any(entry.value.get(key) != value for key, value in client.approving.items()):
        yield warn("entry.limits", "trust", client.name, agent=agent, path=file.path)


def _names(file: FoundFile, entry: Entry) -> Iterator[Finding]:
    most, longest = file.client.limits.name_chars, max(map(len, commands()), default=0)
    length = len(entry.key) + 1 + longest
    if most and length > most:
        yield warn("entry.limits", "names", file.client.name, key=entry.key, chars=length, most=most)  # fmt: skip


def secret(file: FoundFile, entry: Entry) -> Iterator[Finding]:
    """Secrets where others read along: in a project's file at all, elsewhere in the environment of the entry."""
    client = file.client
    names = list(_in_environment(entry.value))
    if file.scope == PROJECT:
        names += [name for name, text in _texts(entry.value) if _is_secret(name, text)]
    for name in dict.fromkeys(names):
        yield fail("entry.secret", "shown", client.name, name=name, path=file.path, key=entry.key)
    if not names:
        yield good("entry.secret", "", client.name)


def _in_environment(value: Mapping[str, Any]) -> Iterator[str]:
    block = value.get("env", value.get("environment"))
    for name, text in block.items() if isinstance(block, dict) else ():
        if _is_secret(str(name), str(text)):
            yield str(name)


def _is_secret(name: str, text: str) -> bool:
    if not text or _REFERENCE.match(text):
        return False
    return bool(SECRET_NAME.search(name) or _WEBHOOK.search(text) or _BEARER.match(text))


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of an entry with the name of the key above it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, "")
    elif isinstance(value, str) and name != "bearer_token_env_var":
        yield name, value
