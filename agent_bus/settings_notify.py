"""`[notify.NAME]`: what people are told, and where. NAME is a notifier's module, or `discord.team` for a
further one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

SEED_URL = "DISCORD_WEBHOOK_URL"
_TIME = r"([01]\d|2[0-3]):[0-5]\d"


class ChannelSettings(BaseModel):
    """`[notify.NAME]`: what one channel is told, and how it is reached. `url` and `urls` are secrets."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    enabled: bool = True
    level: Literal["info", "need", "alarm"] = "need"
    events: list[str] = []
    agents: list[str] = []
    language: Literal["auto", "en", "ja"] = "auto"
    quiet: str = Field("", pattern=rf"^({_TIME}-{_TIME})?$")
    coalesce_s: int = Field(5, ge=0, le=3600)
    keep_h: int = Field(24, ge=1, le=8760)
    url: SecretStr = SecretStr("")
    urls: list[SecretStr] = []
    argv: list[str] = []

    def secrets(self) -> list[str]:
        """The values that must be shown nowhere, whole and by their last part (a webhook's token)."""
        found = [s.get_secret_value() for s in (self.url, *self.urls) if s.get_secret_value()]
        return [part for url in found for part in (url, url.rstrip("/").rpartition("/")[2])]

    def fingerprint(self) -> str:
        """Twelve hex characters that change with any of these settings, the secret ones too."""
        return hashlib.sha256("\n".join((self.model_dump_json(), *self.secrets())).encode()).hexdigest()[:12]


def with_channels(given: Any, environ: Mapping[str, str]) -> Any:
    """The tables below `[notify]` as one mapping by channel: `[notify.discord.team]` is the channel `discord.team`.

    Args:
        given: what the file has; what is no table is left for the check to name.
        environ: the seed's DISCORD_WEBHOOK_URL is the url of `discord`, unless the file gives one.
    """
    if not isinstance(given, dict):
        return given
    found: dict[str, Any] = {}
    for kind, table in given.items():
        if not isinstance(table, dict):
            found[kind] = table
            continue
        own = {key: value for key, value in table.items() if not isinstance(value, dict)}
        further = {f"{kind}.{key}": value for key, value in table.items() if isinstance(value, dict)}
        found |= ({kind: own} if own or not further else {}) | further
    if environ.get(SEED_URL):
        found["discord"] = {"url": environ[SEED_URL], **found.get("discord", {})}
    return found
