"""What is said to people, in their language. Codes, ids, state words and JSON are the same in every language.

A new language is one more column of `locale/messages.py` and its name in `LANGUAGES`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from agent_bus.locale.messages import LANGUAGES, MESSAGES

_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
_WINDOWS_PRIMARY = {0x11: "ja"}
"""Primary language ids of Windows (winnt.h, LANG_JAPANESE)."""


class Texts:
    """The messages in one language.

    Args:
        language: one of `LANGUAGES`; another one is taken as English.
    """

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else LANGUAGES[0]
        self._column = LANGUAGES.index(self.language)

    def say(self, key: str, /, **values: object) -> str:
        """The message of a key with its placeholders filled.

        Raises:
            KeyError: there is no such message, or a placeholder has no value.
        """
        return MESSAGES[key][self._column].format(**values)

    def label(self, name: str) -> str:
        """A field's name for people: its message `label.<name>`, else the name in words."""
        found = MESSAGES.get(f"label.{name}")
        return found[self._column] if found else name.replace("_", " ")


def choose_language(setting: str, environ: Mapping[str, str]) -> str:
    """The language to speak.

    Args:
        setting: the setting `language`; `auto` or "" asks the system.
        environ: the environment; the first of LC_ALL, LC_MESSAGES and LANG that is set decides (POSIX).
    """
    if setting not in ("", "auto"):
        return setting
    said = next((environ[name] for name in _VARIABLES if environ.get(name)), "")
    language = said[:2].lower() if said else _windows_language()
    return language if language in LANGUAGES else LANGUAGES[0]


def _windows_language() -> str:
    """The language of the user's Windows; "" elsewhere."""
    if sys.platform != "win32":
        return ""
    import ctypes

    return _WINDOWS_PRIMARY.get(ctypes.windll.kernel32.GetUserDefaultUILanguage() & 0x3FF, "")
