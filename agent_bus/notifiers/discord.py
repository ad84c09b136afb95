"""Discord by webhook: one POST a notice. The webhook's address is its password, so only its host is ever named.

Source: Discord's developer documentation, "Execute Webhook" and "Rate Limits".
"""

from __future__ import annotations

import logging
import math
from typing import Any
from urllib.parse import urlsplit

import requests

from agent_bus.domain.notice import Notice, cut_to
from agent_bus.errors import BusError
from agent_bus.notifiers import Dropped, Later, Outcome, Sent
from agent_bus.settings_notify import ChannelSettings

CHARS = 2000
TITLE_CHARS = 256
TIMEOUT_S = 10
PER_MINUTE = 25
_BODY_BYTES = 16_384
_COLOURS = {"info": 0x3498DB, "need": 0xF1C40F, "alarm": 0xE74C3C}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

logging.getLogger("urllib3").setLevel(logging.WARNING)  # its debug lines name the path, which holds the token


class Discord:
    """One webhook.

    Args:
        url: its address.
        language: of the line that says that a text was cut.
    """

    per_minute = PER_MINUTE

    def __init__(self, url: str, language: str) -> None:
        self._url = url
        self._language = language
        self._shown = f"{urlsplit(url).hostname}/…"

    async def send(self, notice: Notice) -> Outcome:
        return self._post(
            self._body(notice)
        )  # each sender has a thread; one of our own would hold up the process's end

    def _body(self, notice: Notice) -> dict[str, Any]:
        title, _, rest = cut_to(notice, CHARS, self._language).partition("\n")
        embed = {"title": title[:TITLE_CHARS], "description": rest, "color": _COLOURS.get(notice.level, 0)}
        return {"embeds": [embed], "allowed_mentions": {"parse": []}}

    def _post(self, body: dict[str, Any]) -> Outcome:
        try:
            with requests.post(self._url, json=body, timeout=TIMEOUT_S, allow_redirects=False, stream=True) as response:
                return self._judge(response)
        except requests.Timeout:
            return Later(0.0, f"{self._shown} did not answer in {TIMEOUT_S} s")
        except (requests.RequestException, OSError, ValueError) as error:  # their words hold the address
            return Later(0.0, f"{self._shown} cannot be reached ({type(error).__name__})")

    def _judge(self, response: requests.Response) -> Outcome:
        code = response.status_code
        reason = f"{self._shown} answered {code}"
        if code < 300:
            return Sent()
        if code == 429:
            return Later(_retry_after_s(response), reason)
        if code in (401, 403, 404):
            return Later(math.inf, reason)
        return Later(0.0, reason) if code >= 500 or code in (408, 425) or code < 400 else Dropped(reason)


def create(settings: ChannelSettings) -> Discord:
    """The webhook that the settings name.

    Raises:
        BusError: `invalid` without an https address.
    """
    url = settings.url.get_secret_value()
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in ("https", "http"):
        raise BusError("invalid", "url is no https address.", "Copy the webhook's URL from Discord.")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise BusError(
            "invalid", "url must begin with https, as it is a secret.", "Copy the webhook's URL from Discord."
        )
    return Discord(url, settings.language)


def _retry_after_s(response: requests.Response) -> float:
    """How long Discord wants us to wait: header or body, whichever is longer; a second if it says neither."""
    said = [_seconds(response.headers.get("Retry-After"))]
    try:
        import json

        found = json.loads(response.raw.read(_BODY_BYTES, decode_content=True))
        said.append(_seconds(found.get("retry_after")) if isinstance(found, dict) else 0.0)
    except (requests.RequestException, OSError, ValueError):
        pass
    return max(said) or 1.0


def _seconds(value: object) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < math.inf else 0.0
