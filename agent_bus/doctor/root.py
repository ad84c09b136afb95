"""The bus folder: there, readable, writable, of this machine; and room on its disk."""

from __future__ import annotations

from collections.abc import Iterator

from agent_bus import host
from agent_bus.doctor import Finding, fail, good, info, warn
from agent_bus.doctor.ground import Ground, missing
from agent_bus.errors import BusError
from agent_bus.operations.health import LOW_DISK
from agent_bus.store import atomic
from agent_bus.store.layout import Layout

LITTLE_DISK = 1024 * 1024 * 1024
_MIB = 1024 * 1024


def look(ground: Ground) -> Iterator[Finding]:
    """All checks of the folder itself; what does not exist is not looked into."""
    layout = ground.layout
    if layout is None:
        yield fail("root.exists", "unnamed")
        return
    found = _exists(layout)
    yield found
    if found.case:
        return
    yield from _format(layout)
    yield _write(layout)
    yield _disk(layout)


def _exists(layout: Layout) -> Finding:
    if not layout.root.is_dir():
        return fail("root.exists", "gone", root=layout.root)
    if not layout.format_file.exists():
        return fail("root.exists", "unmade", root=layout.root)
    if lacking := missing(layout):
        return fail("root.exists", "incomplete", root=layout.root, names=", ".join(lacking[:5]))
    return good("root.exists", layout.root)


def _format(layout: Layout) -> Iterator[Finding]:
    try:
        found = layout.read_format()
    except BusError as error:
        yield fail("root.format", "unreadable", reason=error.message, fix=error.hint)
        return
    yield good("root.format", found.get("schema", ""))
    yield _owner(found.get("owner", {}))


def _owner(owner: dict[str, str]) -> Finding:
    """As `Layout.check_owner`, without noting this machine's boot there."""
    ours = {known_host(), ""} if not owner.get("host") else {known_host()}
    if owner.get("host", "") in ours or owner.get("boot") == host.boot_id():
        return good("root.owner", owner.get("name", ""))
    return warn("root.owner", "other", name=owner.get("name", "?"))


def known_host() -> str:
    """This machine's id, "" if it has none yet: reading makes none."""
    try:
        return (host.state_folder() / "host-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _write(layout: Layout) -> Finding:
    try:
        temp, _ = atomic.write_temp(str(layout.state / "tmp"), b"agent-bus doctor\n", True)
    except OSError as error:
        return fail("root.write", "refused", path=layout.state / "tmp", reason=error.strerror or error)
    atomic.discard(temp)
    return good("root.write")


def _disk(layout: Layout) -> Finding:
    free = layout.free_bytes()
    if free >= LITTLE_DISK:
        return good("disk", f"{free // (_MIB * 1024)} GiB")
    kind = fail if free < LOW_DISK else warn
    return kind("disk", "little", mib=free // _MIB)


def stop(ground: Ground) -> Iterator[Finding]:
    """Whether the bus is stopped, by whom and since when."""
    from agent_bus.operations import stop as stops

    assert ground.bus is not None
    found = stops.read(ground.bus)
    if found is None:
        yield good("stop")
        return
    yield info(
        "stop", "stopped", by=found.get("by") or "?", at=found.get("at") or "?", reason=found.get("reason") or "–"
    )
