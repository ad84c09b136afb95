"""Whether a text that is found in a file is one that we have put there, or was edited since."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cache

from agent_bus.clients.roles import render


def digest(text: str) -> str:
    """The SHA-256 of a text in hex; line ends and a byte order mark do not count, as editors and git change them."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def shipped() -> frozenset[str]:
    """The digests of all texts of this release, in every language, for every role and client."""
    return frozenset(
        digest(text)
        for form in render.FORMS
        for role in ("", *render.ROLES)
        for language in render.LANGUAGES
        for _, text in render.texts(form, role, language)
        if text
    )


def unchanged(text: str, recorded: Collection[str] = ()) -> bool:
    """Whether nobody has edited a file or block of ours.

    Args:
        text: the whole file, or the block with its marks.
        recorded: digests that an installation wrote down: so a text of an earlier release is known.
    """
    return digest(text) in shipped() or digest(text) in recorded
