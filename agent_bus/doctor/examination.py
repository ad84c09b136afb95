"""All checks of one examination, as probes, and what they found in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from agent_bus.clients.found import FoundFile
from agent_bus.doctor import FAIL, LEVELS, Finding, entries, entry, http, launch, life, root, server, sync, talk, vault
from agent_bus.doctor.catalog import IDS
from agent_bus.doctor.ground import Ground
from agent_bus.doctor.running import Probe, run_all
from agent_bus.operations import launchable

MOST_HEAVY = 4


def examine(ground: Ground, with_launch: bool = False, send: bool = False) -> list[Finding]:
    """Runs every check and gives what was found in the order of the catalog.

    Args:
        with_launch: look at the agents that the bus starts.
        send: send a test notice to each channel.
    """
    heavy = max(2, min(MOST_HEAVY, os.cpu_count() or 2))
    try:
        found = run_all(list(probes(ground, with_launch, send)), ground.deadline, heavy)
    finally:
        talk.end_all()
    clients = [client.name for client in ground.clients]
    return sorted(found, key=lambda f: (clients.index(f.client) if f.client in clients else -1, IDS.index(f.id)))


def probes(ground: Ground, with_launch: bool, send: bool) -> Iterator[Probe]:
    """The probes that make sense on this ground: no bus, no look at what is in it."""
    yield Probe("root.exists", partial(root.look, ground))
    yield Probe("entry.found", partial(entries.look, ground))
    yield from _of_entries(ground)
    if ground.bus is None:
        return
    yield Probe("root.sync", partial(sync.look, ground))
    yield Probe("vault", partial(vault.look, ground))
    yield Probe("stop", partial(root.stop, ground))
    yield Probe("jobs", partial(life.jobs, ground))
    yield Probe("tasks", partial(life.tasks, ground))
    yield Probe("notify", partial(life.notify, ground, send))
    yield Probe("http", partial(http.look, ground))
    for name in launchable.names(ground.bus) if with_launch else ():
        yield Probe("launch.program", partial(launch.look, ground, name), heavy=True)


def _of_entries(ground: Ground) -> Iterator[Probe]:
    for file in ground.files:
        for one in file.entries:
            if one.whose == "seed":
                yield Probe("entry.command", partial(entry.seed, file, one), file.client.name)
    for file, one in ground.ours():
        client = file.client.name
        yield Probe("entry.command", partial(_in_scope, file, partial(entry.look, ground, file, one)), client)
        if file.client.started(one.value):
            yield Probe(
                "server.start", partial(_in_scope, file, partial(server.look, ground, file, one)), client, heavy=True
            )
        elif ground.layout is not None:
            yield Probe("http", partial(http.entry, ground, file, one), client)


def _in_scope(file: FoundFile, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings, each with the scope of the file that it is about: its fix must name that."""
    for finding in look():
        yield replace(finding, values={**finding.values, "scope": file.scope})


def exit_code(findings: list[Finding], strict: bool) -> int:
    """0 if nothing is wrong: no fail, with `strict` no warning either; else 1."""
    worst = max((LEVELS.index(f.level) for f in findings), default=0)
    return 1 if worst >= LEVELS.index(FAIL) - (1 if strict else 0) else 0
