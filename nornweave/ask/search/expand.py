"""Other wordings of a query: acronyms and initials, identifiers as words, synonyms, keywords of an error category.

The words are data (``vocabulary.yaml``). Phrases are found by whole words. Text in quotation marks or back-quotes is
left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

import yaml

from nornweave.ask.search.records import Filters, Switch
from nornweave.core.text.analyzer import FUNCTION_WORDS
from nornweave.disagree.facts.names import singular, words_of

# The query itself included; a variant is a query like any other.
MAX_VARIANTS, MAX_CHARACTERS = 3, 4096
MAX_WORDS, ENOUGH_CANDIDATES, MANY_CANDIDATES = 10, 20, 100

# Either names the error category of what is looked for.
_CATEGORY_FILTERS = ("error_category", "category")
_QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]+'(?!\w)")
_WORD = re.compile(r"\w+")
# Words with only spaces or one hyphen between them.
_SIDE_BY_SIDE = re.compile(r"\w+(?:(?:\s+|[-‐‑])\w+)*")
_COMPOUND = re.compile(r"\b(?=[A-Za-z])[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Za-z]_+[A-Za-z])\w*")
# Initials of two letters stand for too many things.
_FEWEST_CAPITALS = 3
_SMALL = r"(?:(?:a|and|at|by|for|in|of|on|or|the|to|with) ){0,2}"
_CAPITALISED = r"[A-Z][a-z][\w-]{0,40}(?![\w-])"
_NAME = re.compile(rf"(?<![\w-]){_CAPITALISED}(?: {_SMALL}{_CAPITALISED}){{2,9}}")
# The first letter of each word, and of each half of "Multi-Factor".
_INITIAL = re.compile(r"(?<![^\W_])[^\W_]")

_Table: TypeAlias = Mapping[tuple[str, ...], Sequence[str]]


class Phrase(NamedTuple):
    """A place of a text, by characters, and what may stand there instead, best first."""

    start: int
    end: int
    alternatives: Sequence[str]


class _Vocabulary(NamedTuple):
    """Phrases (words in lower case) with their alternatives; an ``ordinary`` word is an acronym only in capitals."""

    acronyms: _Table
    synonyms: _Table
    cues: _Table
    categories: Mapping[str, Sequence[str]]
    ordinary: frozenset[str]


@cache
def _vocabulary() -> _Vocabulary:
    stored = yaml.safe_load(resources.files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
    pairs: list[tuple[str, str]] = [*stored["acronyms"].items()]
    lines: list[list[str]] = stored["synonyms"]
    keywords: dict[str, list[str]] = {name: category["keywords"] for name, category in stored["categories"].items()}
    both_ways = [(text, [other]) for text, other in (*pairs, *((long, short) for short, long in pairs))]
    # Each line's first word with the others; where no line starts with them, the others with the rest.
    synonyms = [(words[0], words[1:]) for words in lines]
    synonyms += [(word, [other for other in words if other != word]) for words in lines for word in words]
    cues = [(cue, keywords[name]) for name in keywords for cue in (name, *stored["categories"][name]["cues"])]
    # Of a phrase that comes twice the first counts.
    tables = [{_words(text): others for text, others in reversed(table)} for table in (both_ways, synonyms, cues)]
    return _Vocabulary(tables[0], tables[1], tables[2], keywords, frozenset(stored["ordinary_words"]))


def stated_category(filters: Filters) -> str | None:
    """Return the error category that is filtered by, if it is one of the vocabulary's and the only one."""
    for key in _CATEGORY_FILTERS:
        match filters.get(key):
            case str(name) | [str(name)] if name.strip().upper() in _vocabulary().categories:
                return name.strip().upper()
    return None


def variants(text: str, *, category: str | None = None, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Return other wordings of a query, at most ``limit - 1`` (the query itself counts), none over 4,096 characters.

    The first variant of each kind comes before the second of any: acronyms (one replaced at a time), the keywords of a
    category that is known, identifiers as words, synonyms (all words of a variant at once), the keywords of a category
    that the query shows. What replaces a plural stands in the singular; retrieval stems anyway.
    """
    kinds = [_acronyms(text), _identifiers(text), _synonyms(text)]
    if category:
        kinds.insert(1, _with_keywords(text, _vocabulary().categories[category]))
    # Error lines quote, and name the cause first.
    elif cue := next(_phrases(text, _vocabulary().cues, protected=frozenset(), capitals=frozenset()), None):
        kinds.append(_with_keywords(text, cue.alternatives))
    return _distinct(text, (variant for turn in zip_longest(*kinds) for variant in turn if variant is not None), limit)


def acronym_variants(text: str, is_said: Callable[[str], bool], *, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Return wordings with the other form of an acronym, short or long, one in each variant.

    Both forms mean the same, so every query is searched this way, if the corpus contains the other form (``is_said``).
    After the known acronyms, names that the vocabulary lacks ("Web Content Accessibility Guidelines") are replaced by
    their initials.
    """
    return _distinct(text, (*_acronyms(text, is_said), *_initials(text, is_said)), limit)


def should_expand(text: str, *, candidates: Mapping[str, int], switch: Switch = "auto") -> bool:
    """Say whether a query is worth putting in other words; ``on`` and ``off`` decide alone.

    ``auto`` expands when a source found fewer than 20 candidates (before the first retrieval there are none), and not
    when the query has more than 10 words or a source found more than 100.
    """
    if switch != "auto":
        return switch == "on"
    counts = candidates.values()
    few = min(counts, default=0) < ENOUGH_CANDIDATES and max(counts, default=0) <= MANY_CANDIDATES
    return few and len(text.split()) <= MAX_WORDS


def capitalised_names(text: str) -> Iterator[Phrase]:
    """Yield names of three to ten words with capitals, left to right, none over another, with their initials.

    Small words between them are not counted. A function word that begins the sentence ("The", "How") is no part of the
    name; a capitalised one further on makes the whole a headline and no name. Linear in the length of the text.
    """
    for match in _NAME.finditer(text):
        words = list(re.finditer(r"\S+", match[0]))
        while words and words[0][0].lower() in FUNCTION_WORDS:
            words.pop(0)
        capitalised = [word[0] for word in words if word[0][0].isupper()]
        if len(capitalised) < _FEWEST_CAPITALS or any(word.lower() in FUNCTION_WORDS for word in capitalised):
            continue
        start = match.start() + words[0].start()
        letters = _INITIAL.findall(text[start : match.end()])
        forms = ("".join(filter(str.isupper, letters)), "".join(letters).upper())
        yield Phrase(start, match.end(), tuple(dict.fromkeys(forms)))


def _phrases(text: str, table: _Table, *, protected: frozenset[int], capitals: frozenset[str]) -> Iterator[Phrase]:
    """Yield the phrases of a text, the longest at each place, left to right, none over another; plurals, too."""
    matches = list(_WORD.finditer(text))
    words = [match[0].casefold() for match in matches]
    longest = max(map(len, table))
    at = 0
    while at < len(words):
        for count in range(min(longest, len(words) - at), 0, -1):
            *first, last = words[at : at + count]
            alternatives = table.get((*first, last)) or table.get((*first, singular(last)))
            start, end = matches[at].start(), matches[at + count - 1].end()
            if not alternatives or start in protected or not _SIDE_BY_SIDE.fullmatch(text, start, end):
                continue
            if first or capitals.isdisjoint((last, singular(last))) or matches[at][0].removesuffix("s").isupper():
                yield Phrase(start, end, alternatives)
                break
        at += count


def _acronyms(text: str, is_said: Callable[[str], bool] = bool) -> Iterator[str]:
    """Replace one acronym, wherever it stands; then the next one."""
    places: dict[str, list[Phrase]] = {}
    known = _vocabulary()
    for phrase in _phrases(text, known.acronyms, protected=_quoted(text), capitals=known.ordinary):
        places.setdefault(phrase.alternatives[0], []).append(phrase)
    return (_replaced(text, phrases) for other, phrases in places.items() if is_said(other))


def _initials(text: str, is_said: Callable[[str], bool]) -> Iterator[str]:
    """Replace a name in capitals by its initials: a corpus that says ``WCAG`` may spell it out nowhere."""
    protected = _quoted(text)
    for name in capitalised_names(text):
        initials = next(filter(is_said, name.alternatives), None)
        if initials and name.start not in protected:
            yield _replaced(text, [name._replace(alternatives=[initials])])


def _identifiers(text: str) -> Iterator[str]:
    """Write ``handlePaymentError`` and ``handle_payment_error`` as words."""
    protected = _quoted(text)
    places = [match for match in _COMPOUND.finditer(text) if match.start() not in protected]
    yield _replaced(text, [Phrase(*match.span(), [" ".join(words_of(match[0]))]) for match in places])


def _synonyms(text: str) -> Iterator[str]:
    """Replace every word that has synonyms by its first, then by its second, and so on."""
    phrases = list(_phrases(text, _vocabulary().synonyms, protected=_quoted(text), capitals=frozenset()))
    turns = max((len(phrase.alternatives) for phrase in phrases), default=0)
    return (_replaced(text, phrases, turn) for turn in range(turns))


def _with_keywords(text: str, keywords: Sequence[str]) -> Iterator[str]:
    """Add one keyword that the query does not have; then the next one."""
    words = set(_words(text))
    return (f"{text.rstrip()} {keyword}" for keyword in keywords if not words.issuperset(_words(keyword)))


def _distinct(text: str, others: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the first variants that differ from the query and from each other, but for case and spaces."""
    distinct = {" ".join(text.casefold().split()): text}
    for other in others:
        if len(distinct) >= limit:
            break
        if len(other) <= MAX_CHARACTERS:
            distinct.setdefault(" ".join(other.casefold().split()), other)
    return tuple(distinct.values())[1:]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(text))


def _quoted(text: str) -> frozenset[int]:
    """Return the places of a text between quotation marks or back-quotes."""
    return frozenset(place for match in _QUOTED.finditer(text) for place in range(*match.span()))


def _replaced(text: str, phrases: Sequence[Phrase], turn: int = 0) -> str:
    """Return the text with the alternatives of this turn in these places (the last ones where there are fewer)."""
    pieces: list[str] = []
    done = 0
    for start, end, alternatives in phrases:
        pieces += [text[done:start], alternatives[: turn + 1][-1]]
        done = end
    return "".join([*pieces, text[done:]])
