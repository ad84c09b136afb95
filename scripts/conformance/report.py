"""The tables of docs/conformance.md, which are also what the script prints."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import _env

from conformance.judge import BAD, Exceptions, Failing, Findings, NotRun, bad_checks, fault_of
from conformance.node import NPM
from conformance.suite import Ran

PAGE = _env.ROOT / "docs" / "conformance.md"
MARKED = re.compile(r"(<!-- results:begin -->\n).*?(<!-- results:end -->)", re.DOTALL)


def write(found: Findings, exceptions: Exceptions) -> None:
    """Puts the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    new = MARKED.sub(lambda marks: f"{marks[1]}{text(found, exceptions)}\n{marks[2]}", page)
    PAGE.write_text(new, encoding="utf-8", newline="\n")


def text(found: Findings, exceptions: Exceptions) -> str:
    """All tables."""
    return "\n".join((*_legs(found), *_failing(found, exceptions), *_not_run(exceptions), *_inspector(found)))


def _legs(found: Findings) -> Iterator[str]:
    versions = _versions()
    yield "| leg | suite | revision | over | scenarios | passed | skipped | exceptions |"
    yield "|---|---|---|---|---|---|---|---|"
    for ran in found.legs:
        counts = Counter(map(_verdict, ran.checks.values()))
        cells = (
            ran.leg.name,
            versions[ran.leg.package],
            ran.leg.revision or "its own",
            ran.leg.server,
            str(len(ran.checks)),
            str(counts["passed"]),
            str(counts["skipped"]),
            str(len(list(bad_checks(ran)))),
        )
        yield _row(cells)
    yield from _skipped(found.legs)


def _verdict(checks: dict[str, str]) -> str:
    """A scenario's: one without a single passed check was skipped."""
    if any(status in BAD for status in checks.values()):
        return "failed"
    return "passed" if "SUCCESS" in checks.values() else "skipped"


def _skipped(legs: list[Ran]) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for ran in legs:
        for scenario, checks in ran.checks.items():
            if _verdict(checks) == "skipped":
                words = [ran.told[key] for check in checks if ran.told.get(key := f"{scenario}:{check}")]
                lines.setdefault(f"`{scenario}`: {words[0] if words else 'no check applied'}", []).append(ran.leg.name)
    if lines:
        yield "\nSkipped by the suite itself:\n"
        yield from (f"- {words} ({', '.join(names)})" for words, names in lines.items())


def reasons(exceptions: Exceptions) -> list[str]:
    """The lines of the tables that say why something is not passed or not run."""
    return [*map(_failing_row, exceptions.failing), *map(_not_run_row, exceptions.not_run)]


def _failing(found: Findings, exceptions: Exceptions) -> Iterator[str]:
    ran = {leg.leg.name for leg in found.legs}
    yield "\n### Exceptions\n\n| checks | legs | reason |\n|---|---|---|"
    yield from (_failing_row(entry) for entry in exceptions.failing if ran & set(entry.legs))


def _failing_row(entry: Failing) -> str:
    checks = "<br>".join(f"`{check}`" for check in entry.checks)
    return _row((checks, ", ".join(entry.legs), entry.reason))


def _not_run(exceptions: Exceptions) -> Iterator[str]:
    yield "\n### Not run\n\n| scenarios | suite | reason |\n|---|---|---|"
    yield from map(_not_run_row, exceptions.not_run)


def _not_run_row(entry: NotRun) -> str:
    return _row((", ".join(f"`{name}`" for name in entry.scenarios), _versions()[entry.package], entry.reason))


def _inspector(found: Findings) -> Iterator[str]:
    if not found.inspector:
        return
    yield f"\n### Inspector {_versions()['@modelcontextprotocol/inspector']}\n"
    yield "| what | over, era | exit code | as expected |\n|---|---|---|---|"
    for one in found.inspector:
        yield _row((one.what, one.way, str(one.got), fault_of(one) or "yes"))


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _versions() -> dict[str, str]:
    wanted = json.loads((NPM / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return {name: str(version).rpartition("@")[2] for name, version in wanted.items()}
