"""The settings of the launcher: `[launcher]`, `[agents.NAME]`, and the seed's three variables (docs/settings.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_DAY = 86_400
SEED_AGENT = "claude-code"
_WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class LauncherSettings(BaseModel):
    """`[launcher]`: the bounds of all runs on this host; times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    enabled: bool = True
    max_runs: int = Field(3, ge=1, le=64)
    launches_per_minute: int = Field(12, ge=1, le=120)
    start_s: int = Field(120, ge=1, le=_DAY)
    idle_warn_s: int = Field(600, ge=1, le=_DAY)
    runtime_s: int = Field(7200, ge=1, le=_DAY)
    runtime_max_s: int = Field(28_800, ge=1, le=7 * _DAY)
    grace_s: int = Field(10, ge=0, le=600)
    log_max_bytes: int = Field(268_435_456, ge=65_536)
    log_keep_bytes: int = Field(8_388_608, ge=65_536)
    log_days: int = Field(30, ge=1, le=3650)
    max_launches: int = Field(6, ge=1, le=1000)
    nudges: int = Field(1, ge=0, le=3)
    parked_default_s: int = Field(900, ge=1, le=_DAY)
    day_cost_usd: float = Field(0, ge=0)
    hook: bool = True


class AgentSettings(BaseModel):
    """`[agents.NAME]`: whose orders an agent takes, which inboxes it works for, and how it is started."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    pools: list[str] = []
    orders_from: list[str] = ["*"]
    max_concurrent: int = Field(1, ge=1, le=64)
    launcher: str = Field("", pattern=r"^[a-z0-9_]{0,40}$")
    auto_launch: bool = True
    command: str | list[str] = ""
    work_dir: str = ""
    work_dirs: list[str] = []
    session: Literal["continue", "new"] = "continue"
    permission: Literal["read", "edit", "full"] = "edit"
    allowed_tools: list[str] = []
    model: str = Field("", pattern=r"^([A-Za-z0-9][A-Za-z0-9._:/-]{0,99})?$")
    args: list[str] = []
    env: dict[str, str] = Field({}, repr=False)
    env_pass: list[str] = []
    launches_per_minute: int = Field(4, ge=1, le=120)
    account: str = Field("", max_length=100)
    runtime_s: int = Field(0, ge=0, le=7 * _DAY)
    cost_usd: float = Field(0, ge=0)
    tokens: int = Field(0, ge=0)
    day_cost_usd: float = Field(0, ge=0)
    day_runs: int = Field(0, ge=0)
    role: Literal["worker", "orchestrator", "reviewer"] = "worker"
    language: Literal["auto", "en", "ja"] = "auto"
    mcp: Literal["own", "client"] = "own"


def folder_fault(key: str, text: str, root: str) -> str:
    """Why runs cannot work in a folder, in words; "" if they can.

    Args:
        key: the setting it stands in, for the words.
        text: the folder as it was written.
        root: the bus folder.
    """
    if not text:
        return f"{key} is missing: write an absolute path of a folder"
    path = Path(text)
    if not path.is_absolute():
        return f"{key} {text!r} must be an absolute path"
    if not path.is_dir():
        return f"{key} {text!r} is no folder"
    real = path.resolve()
    if root and real == Path(root).expanduser().resolve():
        return f"{key} {text!r} is the bus folder itself"
    return f"{key} {text!r} is the root of the file system" if real == real.parent else ""


def seed_values(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """What the seed's variables say of `[agents.claude-code]`, and what is wrong with them.

    AUTO_LAUNCH_CLAUDE, CLAUDE_CMD (a path, or a JSON array) and CLAUDE_WORK_DIR.
    """
    found: dict[str, Any] = {}
    problems = []
    if switch := environ.get("AUTO_LAUNCH_CLAUDE", "").strip():
        if switch.lower() in _WORDS:
            found["auto_launch"] = _WORDS[switch.lower()]
        else:
            problems.append(f"AUTO_LAUNCH_CLAUDE is {switch[:20]!r}; it must be true or false, and is ignored")
    if command := environ.get("CLAUDE_CMD", "").strip():
        found["command"] = _command(command)
    if folder := environ.get("CLAUDE_WORK_DIR", "").strip():
        found["work_dir"] = folder
    return found | ({"launcher": "claude"} if found else {}), problems


def _command(text: str) -> str | list[str]:
    if text.startswith("["):
        try:
            words = json.loads(text)
        except ValueError:
            return text
        if isinstance(words, list) and words and all(isinstance(w, str) for w in words):
            return words
    return text


def with_seed(agents: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The agents' tables with the seed's variables below them: a key of the file wins, and one notice says so."""
    seed, problems = seed_values(environ)
    if not seed:
        return dict(agents), problems
    table = agents.get(SEED_AGENT, {})
    if not isinstance(table, dict):
        return dict(agents), problems
    beaten = sorted(k for k in seed.keys() & table.keys() if seed[k] != table[k])
    if beaten:
        problems.append(
            f"AUTO_LAUNCH_CLAUDE, CLAUDE_CMD or CLAUDE_WORK_DIR: agents.{SEED_AGENT} has "
            f"{', '.join(beaten)} in the settings file, which wins"
        )
    return {**agents, SEED_AGENT: seed | table}, problems
