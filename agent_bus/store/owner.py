"""Which host may write to a bus folder: the one that format.json and the Dashboard name (docs/vault-format.md
"The owner host").
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from agent_bus import host
from agent_bus.errors import BusError
from agent_bus.store import atomic, claim
from agent_bus.store.format import epoch_of, is_owner, label, new_format, noted_state, place_hash, short

if TYPE_CHECKING:
    from agent_bus.store.layout import Layout


def check(layout: Layout) -> None:
    """Whether this host may write.

    Raises:
        BusError: `refused`, naming the owner and the ways out; `invalid` for another state folder than noted.
    """
    found = layout.read_format()
    owner = found.get("owner", {})
    if not is_owner(owner):
        raise _refused(f"{owner.get('name', '?')} ({owner['host']})")
    if rival := rival_of(layout, found):
        raise _refused(f"{rival.host} (named by the Dashboard, epoch {rival.epoch})")
    check_state(layout)
    if owner.get("host") == host.host_id() and owner.get("boot") != host.boot_id():
        _note_boot(layout)


def rival_of(layout: Layout, found: dict[str, Any]) -> claim.Claim | None:
    """What the Dashboard says, if that is another owner than format.json's at its epoch or a higher one."""
    said, owner = claim.read(layout.root), found.get("owner", {})
    if said is None or not owner.get("host") or said.epoch < epoch_of(found):
        return None
    return said if said.host.rpartition("-")[2] != short(owner["host"]) else None


def check_state(layout: Layout) -> None:
    """Two clients of a host that used two lock folders would undo one another's work.

    Raises:
        BusError: `invalid`, with the hash of the folder that format.json has and that of the setting.
    """
    try:
        found = layout.read_format()
    except BusError:
        return  # whoever writes is told
    mine = place_hash(layout.state)
    noted = noted_state(found, place_hash(layout.root / ".bus"))
    if noted not in ("", mine):
        rule = f"must be the same for all programs of this host: format.json has {noted}, the setting gives {mine}"
        hint = 'Use one state_dir everywhere; docs/vault-format.md "The owner host" says how to move the folder.'
        raise BusError("invalid", f"state_dir {rule}.", hint)


def take_over(layout: Layout, now: datetime) -> dict[str, Any]:
    """Makes this host the owner, at a higher epoch than any seen, in format.json and on the Dashboard; former owners
    are kept in the record. Returns the new content of format.json.

    A format.json that cannot be read is kept in quarantine and made anew.

    Raises:
        BusError: `refused` for a newer format than this version knows; `unavailable`.
    """
    with atomic.InWords(str(layout.root)), layout.lock():
        try:
            old = layout.read_format()
        except BusError as error:
            if error.code != "corrupt":
                raise
            old = {}
            kept = layout.state / "quarantine" / f"format.{now:%Y%m%d-%H%M%S}.json"
            layout.put_over(kept, layout.format_file.read_bytes())
        said = claim.read(layout.root)
        fresh = new_format(now, max(epoch_of(old), said.epoch if said else 0) + 1)
        fresh |= {k: v for k, v in old.items() if k in ("bus_id", "created_at", "state_dirs")}
        fresh["former_owners"] = [*old.get("former_owners", []), *([old["owner"]] if "owner" in old else [])][-20:]
        fresh = layout.with_state(fresh)
        layout.put_over(layout.format_file, to_json(fresh, indent=2) + b"\n")
        # A kill here leaves an older epoch on the Dashboard, which counts for nothing.
        claim.write(layout.root, str(layout.temp), claim.Claim(label(fresh["owner"]), epoch_of(fresh)))
    return fresh


def _note_boot(layout: Layout) -> None:
    with suppress(OSError), layout.lock():  # of a read-only folder the write itself will tell
        found = layout.read_format()
        owner = found.get("owner", {})
        if owner.get("host") == host.host_id():  # still: nobody took over meanwhile
            fresh = found | {"owner": owner | {"boot": host.boot_id()}}
            layout.put_over(layout.format_file, to_json(fresh, indent=2) + b"\n")


def _refused(name: str) -> BusError:
    hint = (
        "Work there, use its HTTP address, or make this host the owner: agent-bus vault takeover. Reading works here."
    )
    return BusError("refused", f"only the owner host {name} writes to this bus.", hint)
