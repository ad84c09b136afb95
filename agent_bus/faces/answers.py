"""Results and failures in words, the same for every face; no heavy imports, the command line uses it too."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable
from typing import Any, TypeVar

from pydantic import BaseModel

from agent_bus.errors import BusError

log = logging.getLogger(__name__)
T = TypeVar("T")


def as_object(result: BaseModel) -> dict[str, Any]:
    """A verb's result as the JSON object that all faces send."""
    return result.model_dump(mode="json")


def as_text(answer: Any) -> str:
    """The same object as compact JSON, in the characters it was written in."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


async def settled(act: Awaitable[T]) -> T:
    """What an act gives; whatever it raises is a BusError.

    Raises:
        BusError: its own, or `internal` for a fault of ours.
    """
    try:
        return await act
    except BusError:
        raise
    except Exception as error:
        raise fault(error) from error


def fault(error: Exception) -> BusError:
    """A fault of ours in words: the caller gets an id, the log the traceback under that id.

    Args:
        error: what escaped a verb and is no BusError.
    """
    number = secrets.token_hex(3)
    log.error("fault %s", number, exc_info=error)
    return BusError(
        "internal", f"something went wrong here (id {number});", "The log in the state folder has it under this id."
    )
