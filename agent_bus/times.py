"""Texts of time: how moments stand in documents, and how they are read back. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_bus.errors import invalid

_GOOD = "Write it as 2026-03-07T10:15:00Z."


def stamp(moment: datetime) -> str:
    """A moment as it stands in documents: UTC with Z and milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_stamp(text: str) -> datetime:
    """A stored time; a naive one (the seed writes such) is read as local time.

    Raises:
        ValueError: no ISO 8601 time.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"outside the years 1 to 9999 in UTC: {text[:40]!r}") from None


def read_stamp(text: str, name: str) -> datetime:
    """A time given as a parameter.

    Raises:
        BusError: `invalid`, if it is no ISO 8601 time or has no zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(name, f"must be an ISO 8601 time with a zone, got {text[:40]!a}", _GOOD) from None
    if moment.tzinfo is None:
        raise invalid(name, f"needs a time zone, got {text[:40]!a}", _GOOD)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise invalid(name, f"must lie in the years 1 to 9999 of UTC, got {text[:40]!a}", _GOOD) from None


def from_local(text: str, zone: str = "") -> str:
    """A time as people at this host write it, with its zone added if it has none; what is no time stays as it is.

    Args:
        zone: an IANA time zone; "" = this host's.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is not None:
        return text
    if zone:
        from zoneinfo import ZoneInfo  # wanted only where a zone is named

        return moment.replace(tzinfo=ZoneInfo(zone)).isoformat()
    return moment.astimezone().isoformat()


def local_text(text: str, zone: str = "") -> str:
    """A stored time for people who sit at this host: `2026-12-01T18:30:00`, no offset; "" for what is no time.

    Args:
        zone: an IANA time zone; "" = this host's.
    """
    try:
        moment = parse_stamp(text)
    except ValueError:
        return ""
    if zone:
        from zoneinfo import ZoneInfo  # wanted only where a zone is named

        return moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S")
    return moment.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
