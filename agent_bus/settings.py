"""Settings: `bus.toml` of the user's configuration folder, AGENT_BUS_* variables, and what the command line said.

They can open the gate and, later, start programs: so they live outside the vault, and a `bus.toml` in the bus folder is
ignored and reported. A wrong line costs that line only: it is named in `problems`, the rest works.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent_bus.settings_debate import DebateSettings, SlotSettings
from agent_bus.settings_launch import AgentSettings, LauncherSettings, folder_fault, with_seed
from agent_bus.settings_notify import SEED_URL, ChannelSettings, with_channels
from agent_bus.settings_vault import VaultSettings

FILE_NAME = "bus.toml"
_DAY = 86_400


class GateSettings(BaseModel):
    """`[gate]`: words added to the categories, words taken out, further categories."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    money: list[str] = []
    deletion: list[str] = []
    extra: dict[str, list[str]] = {}
    off: list[str] = []


class ApprovalSettings(BaseModel):
    """`[approval]`: what a person may approve without a terminal, through the client of an agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    elicitation: Literal["on", "off"] = "on"
    protected: list[str] = ["money", "deletion"]


class HttpToken(BaseModel):
    """`[[http.tokens]]`: a token bound to an identity; the file holds only its SHA-256."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    agent: str = ""
    role: Literal["worker", "orchestrator", "reviewer", "operator"] = "worker"
    tools: str = ""


class HttpSettings(BaseModel):
    """`[http]`: where the HTTP face listens and who may call."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    host: str = "127.0.0.1"
    port: int = Field(8200, ge=0, le=65_535)
    allowed_hosts: list[str] = []
    allowed_origins: list[str] = []
    tokens: list[HttpToken] = []


class Settings(BaseModel):
    """All settings; times in seconds. Frozen: a change means a new bus."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    root: str = ""
    language: Literal["auto", "en", "ja"] = "auto"
    order: Literal["priority", "fifo"] = "priority"
    ageing_s: int = Field(1800, ge=0, le=_DAY)
    lease_s: int = Field(600, ge=10, le=_DAY)
    start_s: int = Field(120, ge=10, le=_DAY)
    silent_after_s: int = Field(3600, ge=10, le=_DAY)
    silent_release_s: int = Field(0, ge=0, le=_DAY)
    max_attempts: int = Field(3, ge=1, le=20)
    backoff_s: int = Field(30, ge=1, le=_DAY)
    backoff_max_s: int = Field(3600, ge=1, le=_DAY)
    approval_expiry_s: int = Field(_DAY, ge=60, le=30 * _DAY)
    dedupe_s: int = Field(_DAY, ge=60, le=30 * _DAY)
    cancel_grace_s: int = Field(60, ge=0, le=3600)
    durability: Literal["full", "none"] = "full"
    journal_days: int = Field(90, ge=1, le=3650)
    state_dir: str = ""
    archive_dir: str = ""
    wait_max_s: int = Field(50, ge=1, le=50)
    timezone: str = ""
    workspace: str = ""
    gate: GateSettings = GateSettings()
    approval: ApprovalSettings = ApprovalSettings()
    http: HttpSettings = Field(default_factory=lambda: HttpSettings())
    launcher: LauncherSettings = LauncherSettings()
    agents: dict[str, AgentSettings] = {}
    notify: dict[str, ChannelSettings] = {}
    vault: VaultSettings = VaultSettings()
    debate: DebateSettings = DebateSettings()
    slots: dict[str, SlotSettings] = {}
    problems: tuple[str, ...] = ()
    source: str = ""

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name:
            from zoneinfo import ZoneInfo  # wanted only where a zone is named

            try:
                ZoneInfo(name)
            except (OSError, ValueError, KeyError):
                raise ValueError("must be an IANA time zone such as Asia/Tokyo") from None
        return name

    def fingerprint(self) -> str:
        """Twelve hex characters that change with any setting."""
        return hashlib.sha256(self.model_dump_json(exclude={"problems"}).encode()).hexdigest()[:12]


_FLAT = {name for name, field in Settings.model_fields.items() if field.annotation in (str, int)} | {
    "language",
    "order",
    "durability",
}


def config_path(environ: Mapping[str, str]) -> Path:
    """Where the settings file is looked for: AGENT_BUS_CONFIG, else the user's configuration folder."""
    named = environ.get("AGENT_BUS_CONFIG", "")
    return Path(named) if named else Path(platformdirs.user_config_dir("agent-bus", appauthor=False)) / FILE_NAME


def load_settings(
    config: str = "", environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of this process: defaults < file < environment < overrides (the command line).

    Args:
        config: path of the file; "" = `config_path`.
        environ: the environment; None = that of the process.
        overrides: values by key.

    Returns:
        Settings whose `problems` name every line that was wrong; wrong lines are left out.
    """
    env = os.environ if environ is None else environ
    path = Path(config) if config else config_path(env)
    values, text, problems = _read_file(path, bool(config) or "AGENT_BUS_CONFIG" in env)
    for key in sorted(_FLAT - {"problems", "source"}):
        if f"AGENT_BUS_{key.upper()}" in env:
            values[key] = env[f"AGENT_BUS_{key.upper()}"]
    values |= {k: v for k, v in (overrides or {}).items() if v not in (None, "")}
    if isinstance(values.get("agents", {}), dict):
        values["agents"], notices = with_seed(values.get("agents", {}), env)
        problems = [*problems, *notices]
    if "notify" in values or SEED_URL in env:
        values["notify"] = with_channels(values.get("notify", {}), env)
    values, wrong = _drop_wrong(values, text, path)
    found = Settings(**values, source=str(path) if text else "")
    faults = _agent_faults(found, text, path)
    return found.model_copy(update={"problems": (*problems, *wrong, *faults)})


def _agent_faults(settings: Settings, text: str, path: Path) -> list[str]:
    """Agents that cannot be launched because of their work folders, each with its line."""
    found = []
    for name, agent in settings.agents.items():
        if not agent.launcher:
            continue
        folders = [("work_dir", agent.work_dir), *(("work_dirs", d) for d in agent.work_dirs)]
        for key, folder in folders:
            if fault := folder_fault(key, folder, settings.root):
                line = _line(text, ["agents", name, key] if key in text else ["agents", name])
                found.append(f"{path.name}{line}: agents.{name}: {fault}; this agent is not launched")
    return found


def _read_file(path: Path, named: bool) -> tuple[dict[str, Any], str, list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        return tomllib.loads(text), text, []
    except FileNotFoundError:
        return {}, "", [f"the settings file {path} is not there; the defaults are used"] if named else []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, "", [f"{path} cannot be read ({error}); the defaults are used"]


def _drop_wrong(values: dict[str, Any], text: str, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Takes out what does not validate, until the rest does; each with its line and the rule."""
    problems = []
    for _ in range(200):  # each round takes at least one value out
        try:
            Settings(**values)
            break
        except ValidationError as error:
            for fault in error.errors():
                place = [p for p in fault["loc"] if p not in ("[key]",)]
                problems.append(f"{path.name}{_line(text, place)}: {'.'.join(map(str, place))}: {_rule(fault)}")
                _take_out(values, place)
    return values, problems


def _rule(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return "unknown key; it is ignored"
    secret = fault["loc"][0] == "notify" or "env" in fault["loc"]  # an address, a run's variable: however wrong
    got = "" if secret else f", got {str(fault['input'])[:40]!r}"
    return f"{fault['msg'][0].lower()}{fault['msg'][1:]}{got}; the default is used"


def _take_out(values: dict[str, Any], place: list[Any]) -> None:
    here: Any = values
    for step in place[:-1]:
        nested = here[step]
        if isinstance(nested, list) or not isinstance(nested, dict):
            break
        here = nested
    else:
        here.pop(place[-1], None)
        return
    here.pop(place[place.index(step)], None)


def _line(text: str, place: list[Any]) -> str:
    """The line of the last named key, within its table if that has a header, as ` line 7`; "" if it is elsewhere."""
    names = [re.escape(str(p)) for p in place if isinstance(p, str)]
    for name in reversed(names):
        start = 0
        for table in names[: names.index(name)]:
            header = re.search(rf'^\s*\[.*?["\']?{table}["\']?\s*[\].]', text[start:], re.MULTILINE)
            start += header.start() if header else 0
        match = re.compile(rf'^\s*(?:\[.*?)?["\']?{name}["\']?\s*[=\].]', re.MULTILINE).search(text, start)
        if match:
            return f" line {text.count(chr(10), 0, match.start()) + 1 + len(match[0]) - len(match[0].lstrip(chr(10)))}"
    return ""
