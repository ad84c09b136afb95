"""`[vault]`: the notes that show the bus in the vault."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class VaultSettings(BaseModel):
    """`[vault]`: whether notes are written, how soon, and how many."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    mirror: Literal["auto", "on", "off"] = "auto"
    quiet_write_s: int = Field(10, ge=5, le=120)
    min_interval_s: int = Field(60, ge=10, le=3600)
    scan_s: int = Field(30, ge=5, le=600)
    max_notes: int = Field(500, ge=50, le=1000)
    lang: Literal["auto", "en", "ja"] = "auto"
