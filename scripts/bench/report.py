"""The table for people, and the same for programs."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Row

HEAD = ("what", "ours", "other", "ratio", "goal", "", "against")


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table, and how many goals are met."""
    cells = [HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [_line(line, widths) for line in cells]
    rule = "|".join("-" * (width + 2) for width in widths)
    judged = [row for row in rows if row.is_met is not None]
    met = sum(bool(row.is_met) for row in judged)
    return "\n".join([lines[0], f"|{rule}|", *lines[1:], "", f"{met} of {len(judged)} goals met. {machine()}"])


def machine() -> str:
    """Where this was measured, as far as it matters."""
    cores, load = os.cpu_count(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return f"{platform.system()}, {cores} cores, Python {platform.python_version()}, load {load:.1f} at the end."


def write(path: Path, rows: Sequence[Row], size: str) -> None:
    """Writes {size, machine, python, rows: [{what, ours, unit, theirs, against, goal, ratio, met}]} as JSON."""
    listed = [
        {
            "what": row.what,
            "ours": row.ours,
            "unit": row.unit,
            "theirs": row.theirs,
            "against": row.against,
            "goal": f"{row.sense} {row.limit:g}" if row.sense else "",
            "ratio": row.ratio,
            "met": row.is_met,
        }
        for row in rows
    ]
    value = {"size": size, "machine": machine(), "python": sys.version, "rows": listed}
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _cells(row: Row) -> tuple[str, ...]:
    absolute = row.theirs is None
    goal = f"{row.sense} {row.limit:g}{_unit(row.unit) if absolute else 'x'}" if row.sense else ""
    met = {None: "", True: "ok", False: "MISSED"}[row.is_met]
    other = "" if row.theirs is None else _number(row.theirs) + _unit(row.unit)
    ratio = "" if absolute else f"{row.ratio:.3g}x"
    return (row.what, _number(row.ours) + _unit(row.unit), other, ratio, goal, met, row.against)


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
