"""What runs on this bus: jobs, channels, tasks."""

from __future__ import annotations

from collections.abc import Iterator

from agent_bus import notifiers
from agent_bus.bus import Bus
from agent_bus.doctor import Finding, good, info, warn
from agent_bus.doctor.ground import Ground
from agent_bus.domain.run import seconds_since
from agent_bus.errors import BusError
from agent_bus.operations import health, launchable, outbox, quarantine

OLD_S = 600
"""A notice that has waited so long is worth a word: retries of a channel that works take less."""
_MOST = 40


_ALWAYS = ("reaper", "orchestrator")
"""They are missed only while there are tasks; a launcher or a notifier was asked for."""


def jobs(ground: Ground) -> Iterator[Finding]:
    """The jobs that this bus needs: some always, some by its settings."""
    bus = ground.bus
    assert bus is not None
    alive = {job["job"]: job for job in health.jobs_alive(ground.layout)}
    lacking = [name for name in _needed(bus) if name not in alive]
    if lacking:
        names = ", ".join(lacking)
        wanted = _has_open_tasks(bus) or len(_needed(bus)) > len(_ALWAYS)
        yield warn("jobs", "gone", names=names) if wanted else info("jobs", "idle", names=names)
    broken = [job for job in alive.values() if job["error"]]
    for job in broken:
        yield warn("jobs", "failing", name=job["job"], error=job["error"], tick=job["last_tick"])
    if not lacking and not broken:
        yield good("jobs", ", ".join(f"{name} {job['last_tick']}" for name, job in sorted(alive.items())))


def _has_open_tasks(bus: Bus) -> bool:
    folders = ("waiting", "reports/pending", *(f"inbox/{name}" for name in bus.store.folders("inbox")))
    return any(bus.store.keys(folder) for folder in folders)


def _needed(bus: Bus) -> list[str]:
    wanted = list(_ALWAYS)
    wanted += ["launcher"] if launchable.names(bus) and bus.settings.launcher.enabled else []
    return wanted + (["notify"] if outbox.channels(bus) else [])


def notify(ground: Ground, send: bool) -> Iterator[Finding]:
    """Each channel that is on; a test notice goes out only if that was asked for."""
    bus = ground.bus
    assert bus is not None
    rows = [row for row in outbox.overview(bus) if row["enabled"]]
    if not rows:
        yield info("notify", "none")
    for row in rows:
        name = str(row["channel"])
        found = [*_channel(bus, name, row), *(_sent(bus, name) if send else [])]
        yield from found or [good("notify", name)]


def _channel(bus: Bus, name: str, row: dict[str, object]) -> Iterator[Finding]:
    try:
        notifiers.load(name)(bus.settings.notify[name])
    except BusError as error:
        yield warn("notify", "wrong", channel=name, reason=error.message, fix=error.hint)
    if row["off"]:
        yield warn("notify", "off", channel=name, reason=row["off"])
    oldest = max((_age_s(bus, key) for key in bus.store.keys(f"{outbox.OUTBOX}/{name}")[:_MOST]), default=0.0)
    if oldest > OLD_S:
        reason = row["last_error"] or "–"
        yield warn("notify", "old", channel=name, count=row["waiting"], minutes=int(oldest // 60), reason=reason)


def _age_s(bus: Bus, key: str) -> float:
    doc = bus.store.get(key)
    queued = str(doc.value.get("queued_at", "")) if doc else ""
    try:
        return seconds_since(queued, bus.now())
    except ValueError:
        return 0.0


def _sent(bus: Bus, name: str) -> Iterator[Finding]:
    try:
        create = notifiers.load(name)
        outcome = notifiers.deliver(create(bus.settings.notify[name]), outbox.test_notice(bus, name))
    except BusError:
        return  # that it is set up wrongly has been said
    if reason := getattr(outcome, "reason", ""):
        yield warn("notify", "unsent", channel=name, reason=reason)
    else:
        yield good("notify", f"{name}: test notice sent")


def tasks(ground: Ground) -> Iterator[Finding]:
    """What system_health says, but for what has checks of its own here."""
    bus = ground.bus
    assert bus is not None
    problems = [*health.about_tasks(bus, health.Facts(quarantine=quarantine.count(bus))), *ground.settings.problems]
    yield from (warn("tasks", "problem", problem=problem) for problem in problems[:_MOST])
    if len(problems) > _MOST:
        yield warn("tasks", "more", count=len(problems) - _MOST)
    if not problems:
        yield good("tasks")
