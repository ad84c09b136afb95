"""Starts to give to launchers."""

from pathlib import Path
from typing import Any

from agent_bus.launchers import Launcher, Start

SESSION = "4f0c2d1e-0000-4000-8000-00000000000a"
SERVER = ("/opt/agent bus/bin/agent-bus", "mcp", "--root", "/home/a/My Vault")


def make_start(launcher: Launcher, folder: Path, **changes: Any) -> Start:
    """A start with all optional flags known, and its prompt file written."""
    folder.mkdir(parents=True, exist_ok=True)
    prompt = folder / "1.prompt"
    prompt.write_text("the prompt: 始める\n", encoding="utf-8", newline="\n")
    values: dict[str, Any] = {
        "agent": "coder",
        "run_id": "r-t-20260307-101500-001-1",
        "executable": ("/bin/x",),
        "work_dir": Path("/w"),
        "permission": "edit" if "edit" in launcher.permissions else "full",
        "session_id": SESSION if launcher.mints_session else "",
        "resume": False,
        "prompt_file": prompt,
        "run_folder": folder,
        "flags": launcher.optional_flags | launcher.required_flags,
    }
    return Start(**{**values, **changes})
