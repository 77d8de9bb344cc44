"""Other wordings of a query: acronyms and initials, identifiers as words, synonyms, keywords of a known error category.

The words are data (``vocabulary.yaml``). Phrases match by whole words; text in quotation marks or back-quotes stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

import yaml

from nornweave.ask.search.pasted import SEARCHED_CHARACTERS
from nornweave.ask.search.records import Filters, Switch
from nornweave.core.text.function_words import FUNCTION_WORDS
from nornweave.disagree.facts.names import words_of

MAX_VARIANTS, MAX_CHARACTERS = 3, SEARCHED_CHARACTERS  # the query itself counts; a variant is a query like any other
MAX_WORDS, ENOUGH_CANDIDATES, MANY_CANDIDATES = 10, 20, 100

_QUOTED = r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]+'(?!\w)"
_COMPOUND = re.compile(rf"{_QUOTED}|\b((?=[A-Za-z])[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Za-z]_+[A-Za-z])\w*)")
# Names are three to ten capitalised words with small ones between them; initials of two letters mean too many things.
_SMALL = r"(?:(?:a|and|at|by|for|in|of|on|or|the|to|with) ){0,2}"
_FUNCTION_WORD = rf"(?:{'|'.join(sorted(word.capitalize() for word in FUNCTION_WORDS))})(?![\w-])"
_CAPITALISED = rf"(?!{_FUNCTION_WORD})[A-Z][a-z][\w-]{{0,40}}(?![\w-])"
_NAME = re.compile(rf"{_QUOTED}|(?<![\w-])({_CAPITALISED}(?: {_SMALL}{_CAPITALISED}){{2,9}})")
_INITIAL = re.compile(r"(?<![^\W_])[^\W_]")  # also of the second half of "Multi-Factor"

_Forms: TypeAlias = Callable[[re.Match[str]], Sequence[str]]


class _Phrases:
    """Phrases and their replacements, best first. If several phrases match, the longest counts; plurals match too."""

    def __init__(self, entries: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Compile the phrases. If a phrase occurs twice, its first entry is used."""
        self._forms = {_normal(phrase): forms for phrase, forms in reversed(entries)}
        longest_first = sorted(self._forms, key=len, reverse=True)
        phrases = "|".join(phrase.replace(" ", r"(?:\s+|[-‐‑])") for phrase in longest_first)
        self.pattern = re.compile(rf"{_QUOTED}|(?<!\w)({phrases})(?:(?<=\w{{3}})s)?(?!\w)", re.IGNORECASE)

    def forms(self, match: re.Match[str]) -> Sequence[str]:
        """Return the replacements of a match; empty for a quotation."""
        return self._forms.get(_normal(match[1] or ""), ())


class _Vocabulary(NamedTuple):
    acronyms: _Phrases
    synonyms: _Phrases
    keywords: Mapping[str, Sequence[str]]
    ordinary: frozenset[str]
    spellings: re.Pattern[str]
    spelled: Mapping[str, str]


@cache
def _vocabulary() -> _Vocabulary:
    stored = yaml.safe_load(resources.files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
    acronyms, lines = stored["acronyms"].items(), stored["synonyms"]
    # The first word of a line has the others as synonyms; words that begin no line have the others of theirs.
    synonyms = [(words[0], words[1:]) for words in lines]
    synonyms += [(word, [other for other in words if other != word]) for words in lines for word in words]
    spelled = {text: other for pair in stored["spellings"].items() for text, other in (pair, pair[::-1])}
    beginnings = "|".join(sorted(spelled, key=len, reverse=True))
    return _Vocabulary(
        _Phrases([(text, [other]) for pair in acronyms for text, other in (pair, pair[::-1])]),
        _Phrases(synonyms),
        stored["categories"],
        frozenset(stored["ordinary_words"]),
        re.compile(rf"{_QUOTED}|(?<!\w)(?P<begins>{beginnings})(?P<ends>[a-z]{{0,7}})(?!\w)", re.IGNORECASE),
        spelled,
    )


def stated_category(filters: Filters) -> str | None:
    """Return the error category in the filters if it is the only one and in the vocabulary; else ``None``."""
    for key in ("error_category", "category"):
        match filters.get(key):
            case str(name) | [str(name)] if name.strip().upper() in _vocabulary().keywords:
                return name.strip().upper()
    return None


def should_expand(text: str, *, candidates: Mapping[str, int], switch: Switch = "auto") -> bool:
    """Tell whether variants of a query should be searched. The modes ``on`` and ``off`` decide alone.

    ``auto`` says yes if a retriever found fewer than 20 candidates, and also before the first retrieval; but no if the
    query has more than 10 words or a retriever found more than 100 candidates.
    """
    if switch != "auto":
        return switch == "on"
    counts = candidates.values()
    few = min(counts, default=0) < ENOUGH_CANDIDATES and max(counts, default=0) <= MANY_CANDIDATES
    return few and len(text.split()) <= MAX_WORDS


def variants(text: str, *, category: str | None = None, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Return at most ``limit - 1`` other wordings of a query, none longer than 4,096 characters.

    The first variant of each kind comes before the second of any: acronyms (one replaced at a time), the keywords of
    a known error category, identifiers as words, synonyms (all words of a variant at once).
    """
    known, words = _vocabulary(), set(_normal(text).split())
    kinds = (
        _acronyms(text),
        (
            f"{text.rstrip()} {word}"
            for word in known.keywords.get(category or "", ())
            if not words >= {*_normal(word).split()}
        ),
        (_COMPOUND.sub(lambda match: " ".join(words_of(match[1])) if match[1] else match[0], text),),
        _synonyms(text),
    )
    return _distinct(text, (variant for turn in zip_longest(*kinds) for variant in turn if variant is not None), limit)


def acronym_variants(text: str, is_said: Callable[[str], bool], *, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Return variants that replace one acronym by its long form or the reverse, or British spelling by American.

    Both forms mean the same, so every query is searched with them if the corpus contains the other form (``is_said``).
    A name that the vocabulary lacks ("Web Content Accessibility Guidelines") is replaced by its initials.
    """
    spelled = _in_turn(text, _vocabulary().spellings, _other_spelling, is_said)
    return _distinct(text, (*_acronyms(text, is_said), *_in_turn(text, _NAME, _initials, is_said), *spelled), limit)


def other_spellings(word: str) -> Sequence[str]:
    """Return a word in lower case as it is spelt in Britain or America, whichever it is not; empty for most words."""
    match = _vocabulary().spellings.fullmatch(word)
    return _other_spelling(match) if match else ()


def _other_spelling(match: re.Match[str]) -> Sequence[str]:
    begins = (match["begins"] or "").lower()
    return (_vocabulary().spelled[begins] + match["ends"].lower(),) if begins else ()


def _acronyms(text: str, is_said: Callable[[str], bool] = bool) -> Iterator[str]:
    known = _vocabulary()

    def forms(match: re.Match[str]) -> Sequence[str]:
        is_word = (match[1] or "").lower() in known.ordinary and not match[1].isupper()
        return () if is_word else known.acronyms.forms(match)

    return _in_turn(text, known.acronyms.pattern, forms, is_said)


def _initials(match: re.Match[str]) -> Sequence[str]:
    """Return the initials of a name, without and with those of its small words."""
    letters = _INITIAL.findall(match[1] or "")
    return tuple(filter(None, dict.fromkeys(("".join(filter(str.isupper, letters)), "".join(letters).upper()))))


def _in_turn(text: str, pattern: re.Pattern[str], forms: _Forms, is_said: Callable[[str], bool]) -> Iterator[str]:
    """Yield one text for each replacement, made wherever it is the first of ``forms`` that ``is_said`` accepts."""
    said = {match.start(): next(filter(is_said, forms(match)), None) for match in pattern.finditer(text)}
    for form in filter(None, dict.fromkeys(said.values())):
        yield _replace_matches(text, pattern, {start: form for start, other in said.items() if other == form})


def _synonyms(text: str) -> Iterator[str]:
    """Yield a text with the first synonym of every word, then one with the second, and so on."""
    known = _vocabulary().synonyms
    places = {match.start(): forms for match in known.pattern.finditer(text) if (forms := known.forms(match))}
    for turn in range(1, 1 + max(map(len, places.values()), default=0)):
        yield _replace_matches(text, known.pattern, {start: forms[:turn][-1] for start, forms in places.items()})


def _replace_matches(text: str, pattern: re.Pattern[str], forms: Mapping[int, str]) -> str:
    return pattern.sub(lambda match: forms.get(match.start(), match[0]), text)


def _distinct(text: str, others: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the first variants that differ from the query and from each other, ignoring case and spaces."""
    distinct = {" ".join(text.casefold().split()): text}
    for other in others:
        if len(distinct) >= limit:
            break
        if len(other) <= MAX_CHARACTERS:
            distinct.setdefault(" ".join(other.casefold().split()), other)
    return tuple(distinct.values())[1:]


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
