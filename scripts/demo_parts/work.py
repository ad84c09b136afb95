"""The demo's work: small jobs on real files, as a coding agent would do them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NOTES = {
    "monday.txt": ("Monday: the queue", "Two programs must never get the same task.", "A lock file is not enough."),
    "tuesday.txt": ("Tuesday: crashes", "Power fails at the worst moment.", "So every write is one step or none."),
    "wednesday.txt": ("Wednesday: people", "A person reads the folder in an editor.", "Files stay plain and small."),
    "thursday.txt": ("Thursday: risk", "Some words deserve a second look.", "A tripwire is not a wall.", "Say so."),
    "friday.txt": ("Friday: rest", "Nothing runs while the bus is stopped."),
}
DRAFTS = {"draft-1.txt": "An old idea.\n", "draft-2.txt": "An older idea.\n"}


def prepare(folder: Path) -> None:
    """Writes the input: notes/ and drafts/; results/ is for what the workers make."""
    for name in ("notes", "drafts", "results", "logs"):
        (folder / name).mkdir()
    for name, lines in NOTES.items():
        (folder / "notes" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, text in DRAFTS.items():
        (folder / "drafts" / name).write_text(text, encoding="utf-8")


def words_in_notes() -> int:
    """What the count must give."""
    return sum(len(line.split()) for lines in NOTES.values() for line in lines)


def do(job: str, folder: Path) -> tuple[dict[str, Any], list[Path]]:
    """Does one job; what its report can say, and the files it made.

    Args:
        job: count, summary, list, remove or check.
        folder: as `prepare` made it.
    """
    return _JOBS[job](folder)


def _count(folder: Path) -> tuple[dict[str, Any], list[Path]]:
    counts = {path.name: len(_read(path).split()) for path in sorted((folder / "notes").glob("*.txt"))}
    made = folder / "results" / "counts.json"
    made.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    return {"words": sum(counts.values()), "files": len(counts)}, [made]


def _summary(folder: Path) -> tuple[dict[str, Any], list[Path]]:
    counts = _counts(folder)
    longest = max(counts, key=lambda name: counts[name])
    rows = "".join(f"| {name} | {words} |\n" for name, words in counts.items())
    made = folder / "results" / "summary.md"
    made.write_text(f"| note | words |\n|---|---|\n{rows}\nTotal: {sum(counts.values())}\n", encoding="utf-8")
    return {"longest": longest}, [made]


def _list(folder: Path) -> tuple[dict[str, Any], list[Path]]:
    titles = [_read(path).splitlines()[0] for path in sorted((folder / "notes").glob("*.txt"))]
    made = folder / "results" / "titles.txt"
    made.write_text("\n".join(titles) + "\n", encoding="utf-8")
    return {"files": len(titles)}, [made]


def _remove(folder: Path) -> tuple[dict[str, Any], list[Path]]:
    old = list((folder / "drafts").glob("*.txt"))
    for path in old:
        path.unlink()
    return {"files": len(old)}, []


def _check(folder: Path) -> tuple[dict[str, Any], list[Path]]:
    total = int(_read(folder / "results" / "summary.md").rpartition("Total: ")[2])
    if total != sum(_counts(folder).values()):
        raise ValueError("the summary does not fit the counts")
    return {"words": total}, []


def _counts(folder: Path) -> dict[str, int]:
    return {str(k): int(v) for k, v in json.loads(_read(folder / "results" / "counts.json")).items()}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


_JOBS = {"count": _count, "summary": _summary, "list": _list, "remove": _remove, "check": _check}
