"""`[debate]` and `[slots]`: how debates go, and what may sit in a seat."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class DebateSettings(BaseModel):
    """`[debate]`: how long a turn may be, and the language of what speakers are told."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    language: Literal["en", "ja", "zh"] = "en"
    max_turn_chars: int = Field(20_000, ge=1, le=200_000)


class SlotSettings(BaseModel):
    """`[slots.NAME]`: what whoever starts the agents of a debate may start for a seat with this slot."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    client: str = ""
    model: str = ""
    effort: str = ""
