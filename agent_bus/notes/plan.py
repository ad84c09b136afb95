"""What `vault install` would do, as data: one step a file. Nothing that a person or the bus has changed is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_bus.notes.template import Template, digest

CREATE, UPDATE, OFFER, HELD, KEEP = "create", "update", "offer", "held", "keep"


@dataclass(frozen=True)
class Step:
    """What becomes of one file of the template.

    Args:
        path: the file in the bus folder, with slashes.
        act: CREATE it, UPDATE a shipped version, OFFER ours beside somebody's as `X.new.md`, HELD: ours cannot stand
            there either, KEEP.
        data: what is written.
        digest: of our version, for the record.
        was: what an update replaces.
    """

    path: str
    act: str
    data: bytes
    digest: str
    was: bytes = b""

    @property
    def target(self) -> str:
        """The path that is written."""
        return beside(self.path) if self.act == OFFER else self.path


def plan(template: Template, root: Path, language: str, record: Mapping[str, str]) -> list[Step]:
    """A step for each file of the template.

    Args:
        root: the bus folder, whether or not it is there.
        language: of the texts.
        record: by path the digest of the version that was last written or offered, so that a file changed since then is
            left in peace until there is a newer version.
    """
    wanted = template.files(language, root.name)
    return [_step(template, root, path, data, record.get(path, "")) for path, data in wanted.items()]


def recorded(steps: list[Step]) -> dict[str, str]:
    """The record after these steps."""
    return {step.path: step.digest for step in steps}


def beside(path: str) -> str:
    """Where our version of a changed file goes: `Tasks.base` → `Tasks.new.base`."""
    stem, _, suffix = path.rpartition(".")
    return f"{stem}.new.{suffix}"


def older(template: Template, root: Path, language: str) -> Iterator[str]:
    """The paths of files that are an older shipped version."""
    for path, data in template.files(language, root.name).items():
        found = _read(root / path)
        if found is not None and found != data and template.knows(path, found, root.name):
            yield path


def _step(template: Template, root: Path, path: str, data: bytes, last: str) -> Step:
    mine, found = digest(data, root.name), _read(root / path)
    if found is None:
        return Step(path, CREATE, data, mine)
    if found == data or (last == mine and not template.knows(path, found, root.name)):
        return Step(path, KEEP, data, mine)
    if template.knows(path, found, root.name):
        return Step(path, UPDATE, data, mine, found)
    offered = _read(root / beside(path))
    if offered == data:
        return Step(path, KEEP, data, mine)
    free = offered is None or template.knows(path, offered, root.name)
    return Step(path, OFFER if free else HELD, data, mine, offered or b"")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
