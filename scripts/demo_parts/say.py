"""The demo's sentences in one language."""

from __future__ import annotations

from agent_bus.locale.demo import DEMO
from agent_bus.locale.messages import LANGUAGES


class Say:
    """`say("done.read", task=…)` is the sentence of that key with its placeholders filled.

    Args:
        language: one of LANGUAGES.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._column = LANGUAGES.index(language)

    def __call__(self, key: str, **values: object) -> str:
        return DEMO[key][self._column].format(**values)
