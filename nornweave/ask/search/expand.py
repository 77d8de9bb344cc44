"""Other ways to put a query: acronyms, identifiers as words, synonyms, keywords of an error category.

The words are data (``vocabulary.yaml``). Phrases are found by whole words and never inside quotation marks or
back-quotes: what is quoted is meant as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import NamedTuple

import yaml

from nornweave.ask.search.initials import capitalised_names
from nornweave.ask.search.records import Filters, Switch
from nornweave.disagree.facts.names import singular, words_of

MAX_VARIANTS = 3
"""The query itself included."""
MAX_WORDS = 10
ENOUGH_CANDIDATES = 20
MANY_CANDIDATES = 100
MAX_CHARACTERS = 4096
"""A variant is a query like any other."""

# Either names the error category of what is looked for.
_CATEGORY_FILTERS = ("error_category", "category")
_QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]+'(?!\w)")
_WORD = re.compile(r"\w+")
# Words with only spaces or one hyphen between them.
_SIDE_BY_SIDE = re.compile(r"\w+(?:(?:\s+|[-‐‑])\w+)*")
_COMPOUND = re.compile(r"\b(?=[A-Za-z])[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Za-z]_+[A-Za-z])\w*")


class _Phrase(NamedTuple):
    """A place of a text and what may be said there, best first."""

    start: int
    end: int
    alternatives: Sequence[str]


class _Vocabulary(NamedTuple):
    """Phrases (words in lower case) with what may be said for them; an ``ordinary`` word is an acronym in capitals."""

    acronyms: Mapping[tuple[str, ...], Sequence[str]]
    synonyms: Mapping[tuple[str, ...], Sequence[str]]
    cues: Mapping[tuple[str, ...], Sequence[str]]
    categories: Mapping[str, Sequence[str]]
    ordinary: frozenset[str]
    longest: int


@cache
def _vocabulary() -> _Vocabulary:
    stored = yaml.safe_load(resources.files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
    pairs: list[tuple[str, str]] = [*stored["acronyms"].items()]
    lines: list[list[str]] = stored["synonyms"]
    keywords: dict[str, list[str]] = {name: category["keywords"] for name, category in stored["categories"].items()}
    # Each line's first word with the others; where no line starts with them, the others with the rest.
    synonyms = [(words[0], words[1:]) for words in lines]
    synonyms += [(word, [other for other in words if other != word]) for words in lines for word in words]
    cues = [(cue, keywords[name]) for name in keywords for cue in (name, *stored["categories"][name]["cues"])]
    both_ways = [(text, [other]) for text, other in (*pairs, *((long, short) for short, long in pairs))]
    # Of a phrase that comes twice the first counts.
    tables = [{_words(text): others for text, others in reversed(table)} for table in (both_ways, synonyms, cues)]
    longest = max(len(words) for table in tables for words in table)
    return _Vocabulary(tables[0], tables[1], tables[2], keywords, frozenset(stored["ordinary_words"]), longest)


def stated_category(filters: Filters) -> str | None:
    """Return the error category that is filtered by, if it is one of the vocabulary's and the only one."""
    for key in _CATEGORY_FILTERS:
        value = filters.get(key)
        names = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else []
        if len(names) == 1 and isinstance(names[0], str) and names[0].strip().upper() in _vocabulary().categories:
            return names[0].strip().upper()
    return None


def variants(text: str, *, category: str | None = None, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Put a query in other words, at most ``limit - 1`` times (the query itself counts), none over 4,096 characters.

    The first variant of each kind comes before the second of any: acronyms (one replaced at a time), the keywords of a
    category that is known, identifiers as words, synonyms (all words of a variant at once), the keywords of a category
    that the query shows. What replaces a plural stands in the singular; retrieval stems anyway.
    """
    kinds = [_acronyms(text), _identifiers(text), _synonyms(text)]
    if category:
        kinds.insert(1, _with_keywords(text, _vocabulary().categories[category]))
    # Error lines quote, and name the cause first.
    elif cue := next(_phrases(text, _vocabulary().cues, quoted=()), None):
        kinds.append(_with_keywords(text, cue.alternatives))
    return _distinct(text, (variant for turn in zip_longest(*kinds) for variant in turn if variant is not None), limit)


def acronym_variants(text: str, is_said: Callable[[str], bool], *, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Put a query with the short for the long form of an acronym, or the other way round, one in each variant.

    The two mean the same, so this is worth doing for every query; but only where the corpus says the other form at all
    (``is_said``), for otherwise it finds nothing and costs as much as the query itself. After the known ones, a name in
    capitals that the vocabulary lacks ("Web Content Accessibility Guidelines") may be called by its initials.
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


def _phrases(
    text: str,
    table: Mapping[tuple[str, ...], Sequence[str]],
    *,
    quoted: Collection[int] | None = None,
    in_capitals: frozenset[str] = frozenset(),
) -> Iterator[_Phrase]:
    """Yield the phrases of a text, the longest at each place, left to right, none over another; plurals, too."""
    protected = _quoted(text) if quoted is None else quoted
    found = list(_WORD.finditer(text))
    words = [match[0].casefold() for match in found]
    at = 0
    while at < len(words):
        for count in range(min(_vocabulary().longest, len(words) - at), 0, -1):
            *first, last = words[at : at + count]
            alternatives = table.get((*first, last)) or table.get((*first, singular(last)))
            start, end = found[at].start(), found[at + count - 1].end()
            if not alternatives or start in protected or not _SIDE_BY_SIDE.fullmatch(text, start, end):
                continue
            if first or in_capitals.isdisjoint((last, singular(last))) or found[at][0].removesuffix("s").isupper():
                yield _Phrase(start, end, alternatives)
                break
        at += count


def _acronyms(text: str, is_said: Callable[[str], bool] = bool) -> Iterator[str]:
    """Replace one acronym, wherever it stands; then the next one."""
    places: dict[str, list[_Phrase]] = {}
    for phrase in _phrases(text, _vocabulary().acronyms, in_capitals=_vocabulary().ordinary):
        places.setdefault(phrase.alternatives[0], []).append(phrase)
    return (_replaced(text, phrases) for other, phrases in places.items() if is_said(other))


def _initials(text: str, is_said: Callable[[str], bool]) -> Iterator[str]:
    """Replace a name in capitals by its initials: who writes ``WCAG`` everywhere may have spelled it out nowhere."""
    protected = _quoted(text)
    for name in capitalised_names(text):
        short = next(filter(is_said, name.initials), None)
        if short and name.start not in protected:
            yield _replaced(text, [_Phrase(name.start, name.end, [short])])


def _identifiers(text: str) -> Iterator[str]:
    """Write ``handlePaymentError`` and ``handle_payment_error`` as words."""
    protected = _quoted(text)
    places = [match for match in _COMPOUND.finditer(text) if match.start() not in protected]
    yield _replaced(text, [_Phrase(*match.span(), [" ".join(words_of(match[0]))]) for match in places])


def _synonyms(text: str) -> Iterator[str]:
    """Replace every word that has synonyms by its first, then by its second, and so on."""
    phrases = list(_phrases(text, _vocabulary().synonyms))
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


def _replaced(text: str, phrases: Sequence[_Phrase], turn: int = 0) -> str:
    """Return the text with the alternatives of this turn in these places (the last ones where there are fewer)."""
    pieces: list[str] = []
    done = 0
    for start, end, alternatives in phrases:
        pieces += [text[done:start], alternatives[: turn + 1][-1]]
        done = end
    return "".join([*pieces, text[done:]])
