"""What is wrong with the notes of a bus, with the vault around them, and with how it is carried. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from agent_bus import host
from agent_bus.doctor import Finding, fail, good, vault_files, vault_services, vault_settings, warn
from agent_bus.doctor.ground import Ground
from agent_bus.doctor.root import known_host
from agent_bus.doctor.seen import ADVICE, ERROR, LEVELS, Seen
from agent_bus.errors import BusError
from agent_bus.notes.place import vault_of
from agent_bus.store import claim, owner
from agent_bus.store.format import epoch_of, label
from agent_bus.store.layout import Layout


@dataclass(frozen=True)
class Examined:
    """The answer of `vault doctor`: this host and the owner, what carries the vault, and what was seen."""

    host_id: str
    owner: str
    epoch: int
    services: list[str]
    seen: list[Seen]


def is_installed(layout: Layout) -> bool:
    """Whether notes were put beside this bus."""
    return (layout.root / claim.DASHBOARD).is_file()


def examine(layout: Layout, authority: str = "") -> Examined:
    """Everything that is worth a word, the worst first.

    Args:
        authority: the setting `vault.authority`, "" if it does not matter.

    Raises:
        BusError: `not_found` if no notes are installed.
    """
    if not is_installed(layout):
        hint = "Put them there: agent-bus vault install PATH, with the folder of your vault."
        raise BusError("not_found", f"there are no notes in {layout.root}.", hint)
    vault = vault_of(layout.root)
    services = vault_services.services(vault, layout.root)
    seen = [
        *vault_services.look(services, layout),
        *_owner(layout),
        *vault_settings.look(vault, layout.root),
        *vault_files.look(layout.root),
        *([Seen("authority", ADVICE, str(layout.root / "commands"))] if authority == "all" else []),
    ]
    found = _format(layout)
    seen.sort(key=lambda one: LEVELS.index(one.level))
    return Examined(known_host(), label(found.get("owner", {})), epoch_of(found), services, seen)


def look(ground: Ground) -> Iterator[Finding]:
    """One line for all of it in `agent-bus doctor`; nothing for a bus without notes."""
    if ground.layout is None or not is_installed(ground.layout):
        return
    bad = [one for one in examine(ground.layout).seen if one.level != ADVICE]
    ids = ", ".join(dict.fromkeys(one.id for one in bad))
    if any(one.level == ERROR for one in bad):
        yield fail("vault", "errors", ids=ids, root=ground.layout.root)
    elif bad:
        yield warn("vault", "warnings", ids=ids, root=ground.layout.root)
    else:
        yield good("vault")


def _format(layout: Layout) -> dict[str, dict[str, str]]:
    with suppress(BusError):
        return layout.read_format()
    return {}


def _owner(layout: Layout) -> Iterator[Seen]:
    """As `owner.check`, without noting anything."""
    found, where = _format(layout), claim.DASHBOARD
    its = found.get("owner", {})
    if its.get("host", known_host()) != known_host() and its.get("boot") != host.boot_id():
        yield Seen("not_owner", ERROR, ".bus/format.json", values={"name": label(its)})
        return
    if rival := owner.rival_of(layout, found):
        same = rival.epoch == epoch_of(found)
        yield Seen("two_hosts" if same else "not_owner", ERROR, where, values={"name": rival.host})
    try:
        owner.check_state(layout)
    except BusError as error:
        yield Seen("state_dir", ERROR, ".bus/format.json", values={"reason": error.message, "hint": error.hint})
