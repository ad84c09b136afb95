"""The approval gate: finds talk of money and deletion in an instruction, and keeps the record. Pure.

A tripwire, not a wall. Source: docs/protocol.md, "The gate". Rules, in the order they are applied:

1. Default-ignorable and control characters go, then NFKC, then accents go; case is folded.
2. Fenced code (fences that are closed) is skipped for money, never for anything else.
3. Latin script: whole words with their inflections, a verb with a fitting object in its clause (`prose.py`).
   Identifiers (snake_case, camelCase, Format-Table, a/path, dotted.name) are no prose.
4. Japanese and Chinese by substring; commands ("rm -rf", "DROP TABLE") anywhere (`patterns.py`).
5. Words added in the settings count alone, with regular endings.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_WORD = re.compile(r"[a-z\u00df-\u024f]+")
_CJK = re.compile("[\u3040-\u9fff]")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")


@dataclass(frozen=True)
class Hit:
    """A risky term as the lists spell it ("delete database", "rm -rf", "削除データ"), and its category."""

    term: str
    category: str


@dataclass(frozen=True)
class WordLists:
    """The lists of one set of settings, compiled once by `build`."""

    plain: Mapping[str, tuple[Hit, ...]]  # forms of added words
    patterns: tuple[tuple[str, str, re.Pattern[str]], ...]  # category, term ("": from the match), pattern
    off: frozenset[str]

    @classmethod
    def build(cls, added: Mapping[str, Sequence[str]] = _NOTHING, off: Sequence[str] = ()) -> "WordLists":
        """Compile the shipped lists with the settings' own words.

        `added`: category ("money", "deletion" or a new name) -> words. `off`: terms taken away, case folded:
        a lemma ("delete"), a pair as a hit names it ("delete database"), a command, an added word.
        """
        from agent_bus.domain import prose  # its tables take longer to make than most verbs to run

        plain: dict[str, tuple[Hit, ...]] = {}
        more: list[tuple[str, str, re.Pattern[str]]] = []
        for category, word in ((name, prose.fold(w).strip()) for name, ws in added.items() for w in ws):
            if _WORD.fullmatch(word):
                for form in _inflected(word):
                    plain[form] = (*plain.get(form, ()), Hit(word, category))
            elif word:
                more.append((category, word, _literal(word)))
        return cls(plain, (*_shipped(), *more), frozenset(prose.fold(term).strip() for term in off))


@cache
def _shipped() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """The patterns that come with the package: category, term ("": from the match), pattern."""
    from agent_bus.domain import patterns

    cjk = [(category, "", pattern) for category, listed in patterns.CJK.items() for pattern in listed]
    phrases = [(category, *pair) for category, by_term in patterns.PHRASES.items() for pair in by_term.items()]
    return tuple((category, term, re.compile(pattern)) for category, term, pattern in (*cjk, *phrases))


def _inflected(word: str) -> tuple[str, ...]:
    stem = word[:-1] if word[-1] in "ey" else word
    return (
        word,
        *(word + end for end in ("s", "es", "d", "ed", "ing")),
        *(stem + e for e in ("ing", "ies", "ied")),
    )


def _literal(word: str) -> re.Pattern[str]:
    """A pattern for an added word that is no single Latin word: bounded on the sides that are Latin."""
    before = r"(?<![a-z\u00df-\u024f0-9_])" if _WORD.match(word[0]) else ""
    after = r"(?![a-z\u00df-\u024f0-9_])" if _WORD.match(word[-1]) else ""
    return re.compile(before + re.escape(word) + after)


def scan(text: str, lists: WordLists) -> tuple[Hit, ...]:
    """The risky terms of a text by category, then term; each (category, term) once. Never raises."""
    from agent_bus.domain import prose

    clean = prose.clean(text)
    outside = _without_fences(clean)
    found = set(_hits(clean, lists))
    if outside != clean:
        found = {hit for hit in found if hit.category != "money"}
        found |= {hit for hit in _hits(outside, lists) if hit.category == "money"}
    kept = (hit for hit in found if prose.fold(hit.term) not in lists.off)
    return tuple(sorted(kept, key=lambda hit: (hit.category, hit.term)))


def _without_fences(text: str) -> str:
    """The text without its closed fences; an open one hides nothing."""
    kept: list[str] = []
    mark, start = "", 0
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if not mark and fence:
            mark, start = fence[1], len(kept)
        elif fence and fence[1].startswith(mark) and not fence[2].strip():
            del kept[start:]
            mark = ""
            continue
        kept.append(line)
    return "\n".join(kept)


def _hits(text: str, lists: WordLists) -> Iterator[Hit]:
    from agent_bus.domain import prose

    folded = text.casefold()
    cjk = "\n".join(line for line in folded.split("\n") if _CJK.search(line))
    for category, term, pattern in lists.patterns:
        if term.split()[0] in folded if term else cjk:
            for match in pattern.finditer(folded if term else cjk):
                parts = [part for part in match.groups() if part and not term]
                if lists.off.isdisjoint(parts):
                    yield Hit(term or "".join(parts), category)
    if not prose.speaks_of(folded, lists.plain):
        return
    tokens = prose.tokens(text)
    for token in tokens:
        if token.kind == "word":
            yield from lists.plain.get(token.text, ())
    for category, lemma, found in set(prose.acts(tokens, folded)):
        if lists.off.isdisjoint((prose.fold(lemma), prose.fold(found))):
            yield Hit(f"{lemma} {found}".strip(), category)


def fingerprint(instruction: str, context: object, target: str) -> str:
    """sha256 (hex) of the canonical JSON of [instruction, context, target]: what an approval is given for.

    Raises:
        TypeError: the context is no JSON value.
    """
    text = json.dumps([instruction, context, target], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def requested(hits: Sequence[Hit], at: str) -> dict[str, Any]:
    """The `approval` of a task that waits for a person; `at` is a timestamp as documents write it."""
    terms = list(dict.fromkeys(hit.term for hit in hits))
    categories = list(dict.fromkeys(hit.category for hit in hits))
    return {"state": "requested", "terms": terms, "categories": categories, "at": at}


def granted(approval: Mapping[str, Any], by: str, at: str, channel: str, sha256: str) -> dict[str, Any]:
    """The approval with a person's yes to exactly the text whose `fingerprint` is `sha256`."""
    return {**approval, "state": "granted", "sha256": sha256, "by": by, "at": at, "channel": channel}


def denied(approval: Mapping[str, Any], by: str, at: str, channel: str, sha256: str) -> dict[str, Any]:
    """The approval with a person's no to the text whose `fingerprint` is `sha256`."""
    return {**approval, "state": "denied", "sha256": sha256, "by": by, "at": at, "channel": channel}


def still_valid(approval: Mapping[str, Any] | None, sha256: str) -> bool:
    """Whether a task may run: the approval was granted, for the text that has this fingerprint now."""
    return approval is not None and approval.get("state") == "granted" and approval.get("sha256") == sha256
