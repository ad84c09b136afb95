"""The errors of the bus: one tree, public codes, and a hint that says what to do next.

A code is part of the public contract (docs/protocol.md lists them with their HTTP status). `BusError` is a caller's
mistake or a state of the world; anything else that escapes a verb is a fault of ours and becomes `internal`.
"""

from __future__ import annotations

HTTP_STATUS: dict[str, int] = {
    "invalid": 400,
    "unauthorized": 401,
    "refused": 403,
    "not_yours": 403,
    "not_found": 404,
    "conflict": 409,
    "not_your_turn": 409,
    "debate_not_active": 409,
    "bad_handle": 400,
    "bad_content": 400,
    "no_recipient": 400,
    "outsider_mentioned": 400,
    "bad_token": 401,
    "host_only": 403,
    "eliminated": 403,
    "unknown_recipient": 404,
    "room_exists": 409,
    "path_exists": 409,
    "handle_taken": 409,
    "ambiguous_room": 409,
    "not_started": 409,
    "wrong_phase": 409,
    "recipient_left": 409,
    "closed": 409,
    "too_large": 413,
    "stopped": 423,
    "corrupt": 500,
    "internal": 500,
    "busy": 503,
    "timeout": 504,
    "unavailable": 507,
}
"""Every public code and the HTTP status it is sent with."""


class BusError(Exception):
    """A refusal in words.

    Args:
        code: one of `HTTP_STATUS`.
        message: what was wrong, naming the parameter or the document.
        hint: what would be right, or what to do next; may be empty.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        if code not in HTTP_STATUS:
            raise ValueError(f"unknown error code {code!r}")
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.hint}".rstrip()

    def as_dict(self) -> dict[str, str]:
        """The error as the faces send it: `{code, message, hint}`."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


def invalid(name: str, rule: str, good: str = "") -> BusError:
    """The error for a parameter that breaks a rule: its name, the rule, and a good value."""
    return BusError("invalid", f"{name} {rule}.", good)


def too_large(name: str, size: int, limit: int, unit: str = "characters") -> BusError:
    """The error for something over a limit, with both numbers."""
    return BusError("too_large", f"{name} has {size} {unit}, the limit is {limit}.", f"Shorten {name}.")
