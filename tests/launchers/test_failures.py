"""The words of failures, and when a quota ends."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agent_bus.launchers import Failure, failures

NOW = datetime(2026, 3, 7, 10, 15, tzinfo=UTC).timestamp()
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Not logged in · Please run /login", "login"),
        ("Invalid API key · Fix external API key", "login"),
        ("unexpected status 401 Unauthorized", "login"),
        ("Please set an Auth method in your settings.json", "login"),
        ("OAuth token has expired", "login"),
        ("You've hit your usage limit. Try again later.", "quota"),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", "quota"),
        ("API Error: 429 rate_limit_error", "quota"),
        ("Resource has been exhausted (e.g. check quota). code: 429", "quota"),
        ("529 Overloaded", "quota"),
        ("Error: Session ID 4f0c is already in use.", "session_in_use"),
        ('Session ID "4f0c" already exists. Use --resume to resume it', "session_in_use"),
        ("No conversation found with session ID: 4f0c", "session_unknown"),
        ("thread/resume failed: no rollout found for thread id 01a2", "session_unknown"),
        ('Error resuming session: Invalid session identifier "4f0c".', "session_unknown"),
        ("Session abc-1 not found", "session_unknown"),
        ("error: unknown option '--disallowedTools'", "unknown_option"),
        ("user cancelled MCP tool call", "not_approved"),
        ("Claude Code cannot be launched inside another Claude Code session", "nested"),
        ("--dangerously-skip-permissions cannot be used with root/sudo privileges", "config"),
        ("required MCP servers failed to initialize: bus", "config"),
        ("API Error: Connection refused", ""),
        ("port 8200 is already in use", ""),
        ("tests took 429 ms, 401 passed", ""),
        ("write: disk quota exceeded", ""),
        ("", ""),
    ],
)
def test_words_of_clis_are_known(text: str, failure: Failure) -> None:
    assert failures.find([text], NOW).failure == failure


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("error: unknown option '--disallowedTools'", "--disallowedTools"),
        ("error: unexpected argument '--nonsuch' found", "--nonsuch"),
        ("Unknown argument: nonsuch", "--nonsuch"),
        ("Unknown arguments: skip-trust, skipTrust", "--skip-trust"),
        ("Error: No such option: --auto", "--auto"),
        ("unrecognized arguments: -z", "-z"),
        ("Unknown argument: z", "-z"),
        ("unknown option", ""),
        ("Not logged in", ""),
    ],
)
def test_the_option_that_was_refused_is_named_with_its_dashes(text: str, option: str) -> None:
    assert failures.find([text], NOW).option == option


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("usage limit reached|1772886000", 1772886000),
        ("usage limit reached|1772886000000", 1772886000),
        ('{"resets_at":1772886000}', 1772886000),
        ("limit resets at 2026-03-07T12:00:00Z", datetime(2026, 3, 7, 12, tzinfo=UTC).timestamp()),
        ("limit resets at 2026-03-07T12:00:00.5+01:00", datetime(2026, 3, 7, 11, 0, 0, 500000, UTC).timestamp()),
        ("Retry-After: 120", NOW + 120),
        ('"retryDelay": "34s"', NOW + 34),
        ("Please retry in 34.5s", NOW + 34.5),
        ("Please try again in 20ms", NOW + 0.02),
        ("your quota will reset after 12h30m15s", NOW + 45015),
        ("try again in 3 days 4 hours 5 minutes.", NOW + 3 * 86400 + 4 * 3600 + 300),
        ("try again in 1 hour and 30 minutes", NOW + 5400),
        ("resets 3pm (Europe/Berlin)", datetime(2026, 3, 7, 15, tzinfo=BERLIN).timestamp()),
        ("resets 3:30am (Europe/Berlin)", datetime(2026, 3, 8, 3, 30, tzinfo=BERLIN).timestamp()),
        ("resets at 12am (UTC)", datetime(2026, 3, 8, 0, tzinfo=UTC).timestamp()),
        ("resets 15:30 (UTC)", datetime(2026, 3, 7, 15, 30, tzinfo=UTC).timestamp()),
        ("resets Mar 9 at 3pm (UTC)", datetime(2026, 3, 9, 15, tzinfo=UTC).timestamp()),
        ("resets 3pm (No/Where)", datetime(2026, 3, 7, 15, tzinfo=UTC).timestamp()),
        ("resets Feb 30 at 3pm (UTC)", 0),
        ("resets at 99:99", 0),
        ("you have hit your limit", 0),
        ("try again later", 0),
        ("rate limited, resets " + "9" * 300, 0),
    ],
)
def test_the_end_of_a_quota_is_read(text: str, then: float) -> None:
    assert failures.reset_at(text, NOW) == pytest.approx(then)


def test_a_clock_time_without_a_zone_is_this_machines() -> None:
    local = datetime.fromtimestamp(NOW).astimezone()
    then = datetime.fromtimestamp(failures.reset_at("try again at 3:05 PM.", NOW)).astimezone()
    assert (then.hour, then.minute) == (15, 5)
    assert 0 < (then - local).total_seconds() <= 25 * 3600


def test_the_time_may_stand_in_another_text_than_the_words() -> None:
    found = failures.find(["usage limit reached", "Retry-After: 60"], NOW)
    assert (found.failure, found.until) == ("quota", NOW + 60)


def test_the_detail_holds_the_words_and_is_bounded() -> None:
    found = failures.find(["x" * 5000 + " not logged in " + "y" * 5000], NOW)
    assert "not logged in" in found.detail
    assert len(found.detail) <= 300
    assert failures.find(["z" * 5000], NOW).detail == "z" * 300
