"""docs/settings.md, from the models of the settings."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import _env
from _docwords import MADE, SETTINGS

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

FLAT_HEAD = "| key | type, range | default | environment | |\n|---|---|---|---|---|"


def settings_page() -> str:
    """docs/settings.md: the flat settings, then each table of the file under the name in its model's docstring."""
    from agent_bus.settings import Settings

    return "".join(
        (
            MADE,
            "# Settings\n\n`--config FILE`, else AGENT_BUS_CONFIG, else `bus.toml` in your configuration folder"
            " (Linux `~/.config/agent-bus/`, macOS `~/Library/Application Support/agent-bus/`, Windows"
            " `%LOCALAPPDATA%\\agent-bus\\`). They lie outside the bus folder because they can open the gate: a"
            " `bus.toml` in the bus folder is ignored and reported. Later wins: defaults, file, environment, command"
            " line. A wrong line costs that line only: `system_health` names it, the rest works. Times are seconds.\n",
            *settings_tables(Settings, ""),
            "\nOther variables: AGENT_BUS_AGENT (who calls, as `--agent`), AGENT_BUS_RUN_ID and AGENT_BUS_LEASE_ID (set"
            " by whatever starts a worker for one task), AGENT_BUS_SESSION_ID (the session that"
            " `moa_status_agents` shows), AGENT_BUS_STATE_HOME (the folder of host id and tokens). Of"
            " the seed: AUTO_LAUNCH_CLAUDE, CLAUDE_CMD, CLAUDE_WORK_DIR for `[agents.claude-code]`, DISCORD_WEBHOOK_URL"
            " for `[notify.discord]`; the file wins.\n",
        )
    )


def settings_tables(model: type[BaseModel], path: str) -> Iterator[str]:
    """A model's own settings as a table, then those of the models in it; `path` is where it stands in the file."""
    own: dict[str, FieldInfo] = {}
    inner: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        if name not in ("problems", "source"):
            (inner if inner_model(field) else own)[name] = field
    if path:
        title, _, text = inspect.cleandoc(model.__doc__ or "").replace("\n", " ").partition(": ")
        yield f"\n{'#' * (path.count('.') + 2)} {title.strip('`')}\n\n{text[:1].upper()}{text[1:]}\n"
    else:
        own = {n: f for n, f in own.items() if is_flat(f)}
    rows = "".join(setting_row(name, field, path) for name, field in own.items())
    head = "| key | type, range | default | |\n|---|---|---|---|" if path else FLAT_HEAD
    yield f"\n{head}\n{rows}"
    for name, field in inner.items():
        yield from settings_tables(inner_model(field) or model, f"{path}.{name}".lstrip("."))


def inner_model(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a setting that is a table, or holds tables."""
    for part in (field.annotation, *typing.get_args(field.annotation)):
        if inspect.isclass(part) and hasattr(part, "model_fields"):
            return typing.cast("type[BaseModel]", part)
    return None


def is_flat(field: FieldInfo) -> bool:
    """Whether a setting can come from the environment."""
    return field.annotation in (str, int) or typing.get_origin(field.annotation) is typing.Literal


def setting_row(name: str, field: FieldInfo, path: str) -> str:
    """One setting as a row."""
    key = f"{path}.{name}".lstrip(".")
    if key not in SETTINGS:
        _env.fail(f"scripts/_docwords.py does not say what the setting {key} does.")
    value = field.get_default(call_default_factory=True, validated_data={})
    said = value is False or (str(value) not in ("", "[]", "{}") and not str(value).startswith("*"))
    shown = "needed" if field.is_required() else f"`{str(value).lower() if value in (True, False) else value}`"
    variable = "" if path else f" | AGENT_BUS_{name.upper()}"
    return f"| `{name}` | {setting_type(field)} | {shown if said else '–'}{variable} | {SETTINGS[key]} |\n"


def setting_type(field: FieldInfo) -> str:
    """A setting's type and range in words."""
    kind: Any = field.annotation
    if typing.get_origin(kind) is typing.Literal:
        return " \\| ".join(map(str, typing.get_args(kind)))
    limits = {k: getattr(m, k) for m in field.metadata for k in ("ge", "le") if hasattr(m, k)}
    if limits:
        numbers = [f"{limits[k]:,}" if k in limits else "" for k in ("ge", "le")]
        return f"{'integer' if kind is int else 'number'} {' … '.join(numbers)}".rstrip()
    words: dict[Any, str] = {str: "text", bool: "true \\| false", str | list[str]: "text or array"}
    return words.get(kind) or ("table" if "dict" in str(kind) else "array" if "list" in str(kind) else "text")
