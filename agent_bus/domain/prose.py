"""The approval gate's reading of Latin-script prose: clean text, words, and verbs with their objects. Pure.

Not a parser: a verb of `words.VERBS` is taken with the first fitting noun near it, in its own clause.
Languages are not told apart. At most `_REACH` words around a verb are looked at, so the cost is linear.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from agent_bus.domain import patterns, words

_IGNORABLE = re.compile(f"[{patterns.IGNORABLE}]")
_ACCENT = re.compile("[\u0300-\u036f]+")
_CHUNK = re.compile(r"[A-Za-z\u00df-\u024f0-9_./\\:@#$~*%{}<>()=&+-]+|[,;!?\n\u2013\u2014\u3001\u3002]")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]{2}")
_AMOUNT = re.compile(patterns.AMOUNT)
_DATA_NAME, _CODE_NAME = re.compile(patterns.IDENTIFIER_DATA), re.compile(patterns.CODE_FILE)
_REACH = 9


class Token(NamedTuple):
    """A piece of a text: `kind` is "word", "name" (an identifier) or "end" (of a clause)."""

    text: str
    kind: str
    at: int


def clean(text: str) -> str:
    """The text without ignorable characters, widths, accents and runs of blanks."""
    if text.isascii():  # nothing to normalise: the usual case, and half the cost
        return re.sub(r"[^\S\n]+", " ", _IGNORABLE.sub("", text))
    bare = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", _IGNORABLE.sub("", text)))
    whole = unicodedata.normalize("NFC", _ACCENT.sub("", bare))
    return re.sub(r"[^\S\n]+", " ", _IGNORABLE.sub("", whole))


def fold(text: str) -> str:
    """The form in which words are compared."""
    return clean(text).casefold()


def _forms(entries: str) -> Iterator[tuple[str, str]]:
    for entry in entries.split(","):
        yield from ((form, entry.split()[0]) for form in fold(entry).split())


_VERBS = {
    form: (category, kind, lemma)
    for category, kinds in words.VERBS.items()
    for kind, entries in kinds.items()
    for form, lemma in _forms(entries)
}
_LATIN = re.compile("[a-z\u00df-\u024f]+")
_PASSIVE = {fold(form): fold(verb) for form, verb in words.PASSIVE.items()}
_TRIGGERS = frozenset(part for form in (*_VERBS, *_PASSIVE) for part in _LATIN.findall(form))
_NOUNS = {name: dict(_forms(entries)) for name, entries in words.NOUNS.items()}
_ONLY_WEAK = frozenset(_NOUNS["weak"].values()) - frozenset(_NOUNS["strong"].values())
_SAID = {name: frozenset(fold(listed).split()) for name, listed in words.MENTION.items()}
_W = {name: frozenset(fold(listed).split()) for name, listed in words.WORDS.items()}
_FILLER = _W["filler"] | _W["all"]
_CODE = _W["code"] | _W["code first"]
_MAKER = _SAID["maker"] | (_CODE - _W["runnable"])
_BEFORE_MENTION = _SAID["not"] | _SAID["noun"] | _SAID["when"] | _W["code first"]
_AFTER_ACT = _W["stop"] | _FILLER | _W["of"] | _W["join"]


def speaks_of(folded: str, more: Mapping[str, object]) -> bool:
    """Whether any word of a folded text is a verb of the lists, or one of `more`: if not, reading on finds nothing."""
    seen = set(_LATIN.findall(folded))
    return not (seen.isdisjoint(_TRIGGERS) and seen.isdisjoint(more))


def tokens(text: str) -> list[Token]:
    """The words, identifiers and ends of clauses of a cleaned text, in order."""
    return [Token(*piece, match.start()) for match in _CHUNK.finditer(text) for piece in _split(match[0])]


@lru_cache(4096)
def _split(raw: str) -> tuple[tuple[str, str], ...]:
    """The (text, kind) of a chunk: mostly one."""
    core = raw.lstrip("(<{*~#=&+:.").rstrip(")>}*~=&+:.-")
    folded = core.casefold()
    pieces = re.split("[-/]", folded)
    found: tuple[tuple[str, str], ...] = ()
    if core.isalnum() and (folded in _VERBS or not _CAMEL.search(core)):
        found = ((folded, "word"),)
    elif len(pieces) > 1 and _is_prose(pieces):
        found = tuple((piece, "word") for piece in pieces)
    elif core.strip("-#*~"):
        found = ((folded, "name"),)
    return (*found, (raw[-1], "end")) if not core or raw[-1] in ".:" else found


def _is_prose(pieces: Sequence[str]) -> bool:
    """Whether a joined word is prose all the same: "supprime-la", "hard-delete", "delete/remove"."""
    clitics = _W["clitic"].issuperset(pieces[1:])
    return clitics or pieces[0] in _W["force"] or all(piece in _VERBS for piece in pieces)


def acts(found: Sequence[Token], folded: str) -> Iterator[tuple[str, str, str]]:
    """The risky acts in a text: (category, verb's lemma, object's lemma or ""); `folded` is the text."""
    for i, token in enumerate(found):
        if token.kind == "word" and (token.text in _VERBS or token.text in _PASSIVE):
            category, _, lemma = _VERBS[_PASSIVE.get(token.text, token.text)]
            thing = None if _mentioned(found, i) else _thing(found, i, folded)
            if thing is not None:
                yield category, lemma, thing


def _mentioned(found: Sequence[Token], i: int) -> bool:
    """Whether the words before a verb, or a "not" after it, make it one that is only spoken of."""
    before: list[str] = []
    for token in reversed(found[max(i - 6, 0) : i]):
        if token.kind == "end":
            break
        before.append(token.text)
    p1, p2, p3 = (*before, "", "", "")[:3]
    actor, linked = p1 in _SAID["actor"], p1 in _SAID["link"]
    return (
        p1 in _BEFORE_MENTION
        or (p1 == "zu" and "ohne" in before)
        or not _SAID["why"].isdisjoint(before)
        or (actor and (p2 in _SAID["not"] or p2 in _SAID["when"] or p3 in _SAID["when"] or p2 in _SAID["let"]))
        or (p2 in _FILLER and p3 in _SAID["when"])
        or (linked and (p2 in _MAKER or p3 in _SAID["let"]))
        or any(token.text in _W["none"] for token in found[i + 1 : i + 2])
    )


def _thing(found: Sequence[Token], i: int, folded: str) -> str | None:
    """What the verb at `i` acts on ("" for a verb of buying alone), None if nothing that matters."""
    form = found[i].text
    before, after = found[max(i - _REACH, 0) : i], found[i + 1 : i + 1 + _REACH]
    if form in _PASSIVE:
        signed = any(token.text in _W["sign"] for token in (*before[-1:], *after[:1]))
        return _object_before(before, _VERBS[_PASSIVE[form]][1]) if signed else None
    category, kind, lemma = _VERBS[form]
    if lemma in _W["needs filler"] and not (after and (after[0].text in _FILLER or after[0].text.isdigit())):
        after = []
    thing = _object(after, kind)
    if thing is None and form in _W["late"]:
        thing = _object_before(before, kind)
    if thing is None and category == "money" and kind != "act":
        thing = _amount(after, kind, folded)
    return thing


def _noun(token: Token | None, kind: str) -> str | None:
    """The lemma of a noun that the kind of verb is about."""
    return _lemma(token.text, kind) if token is not None and token.kind == "word" else None


@lru_cache(4096)
def _lemma(text: str, kind: str) -> str | None:
    endings = [lemma for ending, lemma in words.SUFFIXES.items() if text.endswith(ending)]
    for nouns in (_NOUNS[name] for name in words.OBJECTS[kind]):
        for form in (text, *endings):
            if form in nouns:
                return nouns[form]
    return None


def _code(token: Token | None) -> bool:
    """Whether what stands behind a noun makes it code: "file parser", "data fetching", "file a.py"."""
    if token is None or token.kind != "word":
        return token is not None and token.kind == "name" and _CODE_NAME.search(token.text) is not None
    return token.text in _CODE or (token.text.endswith("ing") and token.text not in _W["not code"])


def _object(after: Sequence[Token], kind: str) -> str | None:
    """The object behind a verb: the lemma of the first noun that fits, or None."""
    every = benign = False
    for k, token in enumerate(after):
        following = after[k + 1] if k + 1 < len(after) else None
        every = every or token.text in _W["all"]
        benign = benign or token.text in _W["benign"]
        lemma = None if _code(following) else _noun(token, kind)
        spared = benign or (following is not None and following.text in _W["benign"])
        if lemma is not None and _counts(lemma, following, kind, every, spared):
            return lemma
        if lemma is None and token.kind == "name" and kind == "hard" and _names_data(token):
            return None if _code(following) else token.text
        if _ends_phrase(after, k, kind):
            return _at_end(after[:k], kind) or (_in_production(after[k:]) if kind == "hard" else None)
    return _at_end(after, kind)


def _counts(lemma: str, following: Token | None, kind: str, every: bool, benign: bool) -> bool:
    if kind == "act":
        return following is None or following.kind != "word" or following.text in _AFTER_ACT
    if lemma in _ONLY_WEAK and kind == "mild" and not every and _noun(following, kind) is None:
        return False
    return not (benign and (lemma in _ONLY_WEAK or kind in ("buy", "pay")))


def _names_data(token: Token) -> bool:
    return _DATA_NAME.search(token.text) is not None and _CODE_NAME.search(token.text) is None


def _ends_phrase(after: Sequence[Token], k: int, kind: str) -> bool:
    """Whether the noun phrase that began behind the verb is over at `k`."""
    token = after[k]
    if token.text in _W["join"]:
        following = after[k + 1] if k + 1 < len(after) else None
        return following is None or not (following.text in _FILLER or _noun(following, kind))
    if token.text in _W["of"]:
        return k > 0 and after[k - 1].text not in _W["quantity"] | _W["all"]
    if token.text == "\n":
        return any(earlier.text not in _FILLER for earlier in after[:k])
    ends = token.text in _W["none"] or token.text in _W["code first"] or token.text in _W["stop"]
    return ends or token.kind == "end"


def _at_end(phrase: Sequence[Token], kind: str) -> str | None:
    """ "delete all": the word for everything, where a phrase ends with it."""
    if not phrase or phrase[-1].text not in _W["whole"] or kind not in ("hard", "mild"):
        return None
    return "all" if len(phrase) < 2 or phrase[-2].text != "the" else None


def _in_production(rest: Sequence[Token]) -> str | None:
    """ "delete the old pods in production": the place makes it matter, within the clause."""
    for token, following in zip(rest, (*rest[1:], None), strict=True):
        if token.kind == "end" or token.text in _W["none"]:
            return None
        if token.text in ("production", "prod") and not _code(following):
            return "production"
    return None


def _object_before(before: Sequence[Token], kind: str) -> str | None:
    """The object before a verb that ends its clause, as German has it and the passive."""
    for token in reversed(before):
        lemma = _noun(token, kind)
        if token.kind == "end" or token.text in _W["none"] or _code(token):
            return None
        if lemma is not None:
            return None if any(t.text in _W["none"] or t.text in _W["benign"] for t in before) else lemma
    return None


def _amount(after: Sequence[Token], kind: str, folded: str) -> str | None:
    """ "amount" for a sum of money behind a verb, "" for any object of a verb of buying, else None."""
    clause: list[Token] = []
    for token in after:
        if token.text == "\n" or token.text in _W["benign"] or token.text in _W["none"]:
            return None
        if token.kind == "end":
            break
        clause.append(token)
    phrase = takewhile(lambda token: token.text not in _W["stop"], clause)
    if not clause or (kind == "buy" and any(_code(token) for token in phrase)):
        return None
    if _AMOUNT.search(folded, clause[0].at, clause[-1].at + 12):
        return "amount"
    alone = kind == "buy" and (clause[0].text not in _W["stop"] or clause[0].text in ("for", "with"))
    return "" if alone else None
