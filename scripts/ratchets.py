"""Sizes, broad handlers and undeclared imports of the code we ship: `python3 scripts/ratchets.py`.

The limits are those of docs/architecture.md. A number may go down, never up: a file at the limit is a sign
that a concept is missing.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import _env

FOLDERS = ("agent_bus", "daemons")
FUNCTION_MAX, FUNCTION_P90, FUNCTION_MEDIAN = 60, 30, 9
FILE_MAX, FILE_MEDIAN = 300, 150
# Where a failure of any kind may be turned into words, and how often: the job loop and one place a face.
BROAD_ALLOWED = {
    "agent_bus/clients/registry.py": 1,  # a third party's module may fail in any way
    "agent_bus/jobs/loop.py": 1,
    "agent_bus/notifiers/__init__.py": 1,
    "agent_bus/faces/answers.py": 1,
    "agent_bus/faces/cli.py": 1,
    "agent_bus/faces/http.py": 1,
}
BROAD = {"Exception", "BaseException"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    """Prints the numbers and each problem; 1 if there are any."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources(_env.ROOT)}
    found = [
        *file_problems(trees),
        *function_problems(trees),
        *handler_problems(trees),
        *import_problems(trees),
    ]
    for problem in found:
        print(problem)
    return 1 if found else 0


def sources(root: Path) -> list[Path]:
    """The Python files that count, empty ones left out."""
    files = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py")))
    return [path for path in files if path.read_text(encoding="utf-8").strip()]


def file_problems(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Files that are too long, alone or as a whole."""
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in trees}
    yield from (f"{shown(path)}: {n} lines, at most {FILE_MAX}" for path, n in sizes.items() if n > FILE_MAX)
    yield from summary("files", list(sizes.values()), FILE_MEDIAN, None)


def function_problems(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Functions that are too long, alone or as a whole; a docstring counts."""
    sizes = [(path, node, length(node)) for path, tree in trees.items() for node in functions(tree)]
    for path, node, lines in sizes:
        if lines > FUNCTION_MAX:
            yield f"{shown(path)}:{node.lineno}: {node.name} has {lines} lines, at most {FUNCTION_MAX}"
    yield from summary("functions", [lines for _, _, lines in sizes], FUNCTION_MEDIAN, FUNCTION_P90)


def summary(what: str, sizes: list[int], median: int, p90: int | None) -> Iterator[str]:
    """Prints what was measured and yields what is over the limit."""
    if len(sizes) < 2:
        return
    middle, ninth = statistics.median(sizes), statistics.quantiles(sizes, n=10, method="inclusive")[-1]
    print(f"{len(sizes)} {what}: median {middle:g}, p90 {ninth:g}, longest {max(sizes)} lines", file=sys.stderr)
    if middle > median:
        yield f"{what}: median {middle:g} lines, at most {median}"
    if p90 is not None and ninth > p90:
        yield f"{what}: p90 {ninth:g} lines, at most {p90}"


def handler_problems(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Places that swallow every failure, beyond those of BROAD_ALLOWED."""
    for path, tree in trees.items():
        lines = [getattr(node, "lineno", 0) for node in ast.walk(tree) if swallows(node)]
        allowed = BROAD_ALLOWED.get(shown(path), 0)
        if len(lines) > allowed:
            where = ", ".join(map(str, lines))
            yield f"{shown(path)}: broad handlers in line {where}, allowed here: {allowed}"


def swallows(node: ast.AST) -> bool:
    """Whether the node catches everything; a handler that ends in a bare `raise` only cleans up."""
    if isinstance(node, ast.ExceptHandler):
        last = node.body[-1]
        return is_broad(node.type) and not (isinstance(last, ast.Raise) and last.exc is None)
    called = node.func if isinstance(node, ast.Call) else None
    name = getattr(called, "attr", getattr(called, "id", ""))
    return isinstance(node, ast.Call) and name == "suppress" and any(map(is_broad, node.args))


def is_broad(caught: ast.expr | None) -> bool:
    """Whether an except clause with that expression catches everything."""
    if isinstance(caught, ast.Tuple):
        return any(map(is_broad, caught.elts))
    return caught is None or (isinstance(caught, ast.Name) and caught.id in BROAD)


def import_problems(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Imports of packages that pyproject.toml, its extras included, does not declare."""
    owners = metadata.packages_distributions()
    declared = {plain(re.split(r"[^\w.-]", line)[0]) for line in metadata.requires("agent-bus") or []}
    known = set(FOLDERS) | sys.stdlib_module_names
    for path, tree in trees.items():
        for name, line in sorted(imports(tree)):
            if name not in known and not declared & {plain(owner) for owner in owners.get(name, [name])}:
                yield f"{shown(path)}:{line}: imports {name}, which pyproject.toml does not declare"


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The top-level packages that a module imports, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0], node.lineno


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a module, methods and inner ones too."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(node: Function) -> int:
    """Lines from `def` to the end."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def plain(name: str) -> str:
    """A distribution's name in its one normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def shown(path: Path) -> str:
    """The path as people write it, from the checkout's top."""
    return path.relative_to(_env.ROOT).as_posix()


if __name__ == "__main__":
    _env.enter()
    sys.exit(main())
