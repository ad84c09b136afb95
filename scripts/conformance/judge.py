"""What was found against what docs/conformance.md admits: `exceptions.toml` holds each exception with its reason."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from conformance.inspector import Seen
from conformance.suite import LEGS, Ran

FILE = Path(__file__).resolve().parent / "exceptions.toml"
BAD = ("WARNING", "FAILURE")
"""The suite takes a warning, which is an unmet SHOULD, for a failure too."""


@dataclass(frozen=True)
class Failing:
    """Checks that are not passed, in some legs, for a reason."""

    legs: list[str]
    checks: list[str]
    reason: str


@dataclass(frozen=True)
class NotRun:
    """Scenarios that no leg runs, for a reason; the names may hold `*`."""

    package: str
    scenarios: list[str]
    reason: str


@dataclass(frozen=True)
class Exceptions:
    """The whole file."""

    failing: list[Failing]
    not_run: list[NotRun]


@dataclass(frozen=True)
class Findings:
    """What one run of this script found: the scenarios there are by package, the legs, the inspector's calls."""

    known: dict[str, set[str]]
    legs: list[Ran]
    inspector: list[Seen]


def read_exceptions() -> Exceptions:
    """The file's contents; an entry with another key, or without one, raises TypeError."""
    data = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Exceptions(
        [Failing(**entry) for entry in data.pop("failing", [])], [NotRun(**entry) for entry in data.pop("not_run", [])]
    )


def problems(found: Findings, exceptions: Exceptions, complete: bool) -> list[str]:
    """All that is not as the exceptions say; `complete` also asks whether each scenario was run."""
    return [
        *(problem for ran in found.legs for problem in leg_problems(ran, exceptions)),
        *(list(unrun_problems(found, exceptions)) if complete else []),
        *(f"inspector: {one.what} ({one.way}): {fault}" for one in found.inspector if (fault := fault_of(one))),
    ]


def leg_problems(ran: Ran, exceptions: Exceptions) -> Iterator[str]:
    """Failures that nobody expects, exceptions that are stale, and fixtures that are missing."""
    name = ran.leg.name
    failing = set(bad_checks(ran))
    expected = {check for entry in exceptions.failing if name in entry.legs for check in entry.checks}
    yield from (f"{name}: {check}: {ran.told.get(check, '')}" for check in sorted(failing - expected))
    yield from (f"{name}: {check} passes: take it out of {FILE.name}" for check in sorted(expected - failing))
    yield from (f"{name}: {line}" for line in dict.fromkeys(ran.missing))


def bad_checks(ran: Ran) -> Iterator[str]:
    """The checks of a leg that failed or warned, as `scenario:check`."""
    for scenario, checks in ran.checks.items():
        yield from (f"{scenario}:{check}" for check, status in checks.items() if status in BAD)


def unrun_problems(found: Findings, exceptions: Exceptions) -> Iterator[str]:
    """Scenarios that neither a leg ran nor an entry explains, and entries that explain nothing."""
    for package, scenarios in found.known.items():
        ran = {scenario for leg in found.legs if leg.leg.package == package for scenario in leg.checks}
        entries = [entry for entry in exceptions.not_run if entry.package == package]
        for scenario in sorted(scenarios - ran):
            if not any(covers(entry, scenario) for entry in entries):
                yield f"{package}: {scenario} was not run"
        for pattern in (pattern for entry in entries for pattern in entry.scenarios):
            if not any(fnmatchcase(scenario, pattern) for scenario in scenarios - ran):
                yield f"{package}: {pattern} covers nothing: take it out of {FILE.name}"


def covers(entry: NotRun, scenario: str) -> bool:
    """Whether an entry names a scenario."""
    return any(fnmatchcase(scenario, pattern) for pattern in entry.scenarios)


def fault_of(one: Seen) -> str:
    """What was wrong with a call of the inspector, "" if nothing."""
    return f"exit code {one.got}, not {one.wanted}" if one.got != one.wanted else one.wrong


def form_problems(exceptions: Exceptions) -> Iterator[str]:
    """What is wrong with the file itself, whatever a run finds."""
    reasons = [*(entry.reason for entry in exceptions.failing), *(entry.reason for entry in exceptions.not_run)]
    yield from (f"no sentence for a reason: {reason!r}" for reason in reasons if not _is_sentence(reason))
    seen: set[tuple[str, str]] = set()
    for entry in exceptions.failing:
        yield from (f"there is no leg {leg}" for leg in entry.legs if leg not in LEGS)
        yield from (f"{check} is not scenario:check" for check in entry.checks if check.count(":") != 1)
        pairs = [(leg, check) for leg in entry.legs for check in entry.checks]
        yield from (f"{check} stands twice for {leg}" for leg, check in pairs if (leg, check) in seen)
        seen.update(pairs)
    packages = {leg.package for leg in LEGS.values()}
    yield from (f"there is no package {entry.package}" for entry in exceptions.not_run if entry.package not in packages)


def _is_sentence(reason: str) -> bool:
    return len(reason) > 20 and reason.endswith(".")
