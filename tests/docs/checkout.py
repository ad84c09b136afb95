"""The checkout that the tests of documents read, and Python processes that have the package under test."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import agent_bus

ROOT = Path(os.environ.get("AGENT_BUS_CHECKOUT") or Path(__file__).resolve().parents[2])
SCRIPTS = ROOT / "scripts"
PACKAGE = Path(agent_bus.__file__).parent


def read(name: str) -> str:
    """A text of the checkout."""
    return (ROOT / name).read_text(encoding="utf-8")


def pages() -> list[Path]:
    """Every Markdown page that we publish."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def environ(folder: Path) -> dict[str, str]:
    """An environment without anything of this machine's own bus, in which the package can be imported."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_BUS_", "LC_", "LANG"))}
    config = folder / "bus.toml"
    config.write_text("", encoding="utf-8")
    return kept | {
        "AGENT_BUS_STATE_HOME": str(folder / "state"),
        "AGENT_BUS_CONFIG": str(config),
        "PYTHONPATH": str(PACKAGE.parent),
        "PYTHONIOENCODING": "utf-8",
    }


def python(code: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process of its own, in that folder, with the scripts importable."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n{code}"],
        cwd=folder,
        env=environ(folder) | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=170,
        check=False,
    )


def ask(code: str, folder: Path) -> Any:
    """What the code prints, as JSON."""
    done = python(code, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
