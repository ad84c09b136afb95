"""`[vault]`: the notes that show the bus in the vault."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class VaultSettings(BaseModel):
    """`[vault]`: whether notes are written, how soon, how many, and what may be decided in them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    mirror: Literal["auto", "on", "off"] = "auto"
    authority: Literal["none", "normal", "all"] = "normal"
    sender: str = Field("human", pattern=r"^[\w][\w.\-]{0,63}$")
    quiet_read_s: int = Field(3, ge=1, le=60)
    line_quiet_s: int = Field(10, ge=5, le=120)
    max_acts: int = Field(30, ge=1, le=1000)
    quiet_write_s: int = Field(10, ge=5, le=120)
    min_interval_s: int = Field(60, ge=10, le=3600)
    room_interval_s: int = Field(5, ge=2, le=60)
    scan_s: int = Field(30, ge=5, le=600)
    keep_days: int = Field(14, ge=1, le=365)
    max_notes: int = Field(500, ge=50, le=1000)
    lang: Literal["auto", "en", "ja"] = "auto"
