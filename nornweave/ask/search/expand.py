"""Other ways to put a query: acronyms, identifiers as words, synonyms, keywords of an error category.

Phrases are found by whole words and never inside quotation marks or back-quotes: what is quoted is meant as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import zip_longest

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
_COMPOUND = re.compile(r"\b(?=[A-Za-z])[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Za-z]_+[A-Za-z])\w*")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a text, by characters, and what it may be replaced by, best first."""

    start: int
    end: int
    alternatives: tuple[str, ...]


class Phrases:
    """Phrases with their alternatives, found by whole words: over hyphens, in the plural, in any case."""

    def __init__(self, entries: Iterable[tuple[str, tuple[str, ...]]], *, in_capitals: frozenset[str]) -> None:
        """Index phrases; of one that comes twice the first counts.

        Args:
            entries: phrases with their alternatives.
            in_capitals: words in lower case; a phrase that is one of them is found in capitals only.
        """
        self._alternatives: dict[tuple[str, ...], tuple[str, ...]] = {}
        for text, alternatives in entries:
            self._alternatives.setdefault(_words(text), alternatives)
        self._longest = max(map(len, self._alternatives))
        self._in_capitals = in_capitals

    def find(self, text: str, *, quoted: bool = False) -> Iterator[Phrase]:
        """Yield the phrases of a text, the longest at each place, left to right, none over another.

        Args:
            text: of a query.
            quoted: look between quotation marks, too.
        """
        protected = [] if quoted else _quotations(text)
        words = list(_WORD.finditer(text))
        at = 0
        while at < len(words):
            for count in range(min(self._longest, len(words) - at), 0, -1):
                alternatives = self._alternatives_of(text, words[at : at + count])
                if alternatives and not _within(words[at].start(), protected):
                    yield Phrase(words[at].start(), words[at + count - 1].end(), alternatives)
                    break
            at += count

    def _alternatives_of(self, text: str, words: Sequence[re.Match[str]]) -> tuple[str, ...] | None:
        *first, last = (word[0].casefold() for word in words)
        alternatives = self._alternatives.get((*first, last)) or self._alternatives.get((*first, singular(last)))
        if not alternatives or not _are_side_by_side(text, words):
            return None
        needs_capitals = not first and not self._in_capitals.isdisjoint((last, singular(last)))
        return alternatives if words[0][0].removesuffix("s").isupper() or not needs_capitals else None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the field (``vocabulary.yaml``).

    Attributes:
        acronyms: short forms with their long forms, and the other way round.
        synonyms: words that are said for each other.
        cues: words that show an error category, with its keywords.
        categories: error category → its keywords.
    """

    acronyms: Phrases
    synonyms: Phrases
    cues: Phrases
    categories: Mapping[str, tuple[str, ...]]


@cache
def vocabulary() -> Vocabulary:
    """Return the words of the field, read once."""
    stored = yaml.safe_load(resources.files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8"))
    acronyms: Mapping[str, str] = stored["acronyms"]
    lines: Sequence[Sequence[str]] = stored["synonyms"]
    ordinary = frozenset(stored["ordinary_words"])
    both_ways = [*acronyms.items(), *((long, short) for short, long in acronyms.items())]
    # Each line's first word with the others; where no line starts with them, the others with the rest.
    synonyms = [(words[0], tuple(words[1:])) for words in lines]
    synonyms += [(word, tuple(other for other in words if other != word)) for words in lines for word in words]
    categories = {name: tuple(category["keywords"]) for name, category in stored["categories"].items()}
    cues = [(cue, words) for name, words in categories.items() for cue in (name, *stored["categories"][name]["cues"])]
    return Vocabulary(
        acronyms=Phrases(((text, (other,)) for text, other in both_ways), in_capitals=ordinary),
        synonyms=Phrases(synonyms, in_capitals=frozenset()),
        cues=Phrases(cues, in_capitals=frozenset()),
        categories=categories,
    )


def stated_category(filters: Filters) -> str | None:
    """Return the error category that is filtered by, if it is one of the vocabulary's and the only one."""
    for key in _CATEGORY_FILTERS:
        value = filters.get(key)
        names = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else []
        if len(names) == 1 and isinstance(names[0], str) and names[0].strip().upper() in vocabulary().categories:
            return names[0].strip().upper()
    return None


def variants(text: str, *, category: str | None = None, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Put a query in other words.

    The first variant of each kind comes before the second of any: acronyms (one replaced at a time), identifiers as
    words, synonyms (all words of a variant at once), the keywords of an error category that the query shows. What
    replaces a plural stands in the singular; retrieval stems anyway.

    Args:
        text: the query.
        category: an error category that is known beside the query; its keywords come right after the acronyms.
        limit: variants at most, the query itself included, though it is not returned.

    Returns:
        At most ``limit - 1`` variants, distinct but for case and spaces, none longer than 4,096 characters.
    """
    stated = _with_keywords(text, vocabulary().categories[category]) if category else ()
    shown = () if category else _keywords(text)
    turns = zip_longest(_acronyms(text), stated, _identifiers(text), _synonyms(text), shown)
    return _distinct(text, (variant for turn in turns for variant in turn if variant is not None), limit)


def acronym_variants(text: str, is_said: Callable[[str], bool], *, limit: int = MAX_VARIANTS) -> tuple[str, ...]:
    """Put a query with the short for the long form of an acronym, or the other way round.

    The two mean the same, so this is worth doing for every query; but only where the corpus says the other form at all,
    for otherwise it finds nothing and costs as much as the query itself. A name in capitals that the vocabulary does
    not know ("Web Content Accessibility Guidelines") may be called by its initials.

    Args:
        text: the query, as asked.
        is_said: whether the corpus says something.
        limit: variants at most, the query itself included, though it is not returned.

    Returns:
        At most ``limit - 1``, one acronym replaced in each: known ones first, in the order of the query.
    """
    return _distinct(text, (*_acronyms(text, is_said), *_initials(text, is_said)), limit)


def should_expand(text: str, *, candidates: Mapping[str, int], switch: Switch = "auto") -> bool:
    """Say whether a query is worth putting in other words.

    ``on`` and ``off`` decide alone. ``auto`` expands when a source found fewer than 20 candidates, and not when the
    query has more than 10 words or a source found more than 100.

    Args:
        text: the query.
        candidates: retrieval source → how many it found; empty before the first retrieval, which counts as few.
        switch: what the request says.
    """
    if switch != "auto":
        return switch == "on"
    counts = candidates.values()
    few = min(counts, default=0) < ENOUGH_CANDIDATES and max(counts, default=0) <= MANY_CANDIDATES
    return few and len(text.split()) <= MAX_WORDS


def _acronyms(text: str, is_said: Callable[[str], bool] = bool) -> Iterator[str]:
    """Replace one acronym, wherever it stands; then the next one."""
    places: dict[str, list[Phrase]] = {}
    for phrase in vocabulary().acronyms.find(text):
        places.setdefault(phrase.alternatives[0], []).append(phrase)
    for other, phrases in places.items():
        if is_said(other):
            yield _replaced(text, [(phrase, other) for phrase in phrases])


def _initials(text: str, is_said: Callable[[str], bool]) -> Iterator[str]:
    """Replace a name in capitals by its initials: who writes ``WCAG`` everywhere may have spelled it out nowhere."""
    protected = _quotations(text)
    for name in capitalised_names(text):
        short = next(filter(is_said, name.initials), None)
        if short and not _within(name.start, protected):
            yield f"{text[: name.start]}{short}{text[name.end :]}"


def _identifiers(text: str) -> Iterator[str]:
    """Write ``handlePaymentError`` and ``handle_payment_error`` as words."""
    protected = _quotations(text)
    compounds = [match for match in _COMPOUND.finditer(text) if not _within(match.start(), protected)]
    words = [(Phrase(*match.span(), ()), " ".join(words_of(match[0]))) for match in compounds]
    if words:
        yield _replaced(text, words)


def _synonyms(text: str) -> Iterator[str]:
    """Replace every word that has synonyms by its first, then by its second, and so on."""
    phrases = list(vocabulary().synonyms.find(text))
    for turn in range(max((len(phrase.alternatives) for phrase in phrases), default=0)):
        yield _replaced(text, [(phrase, phrase.alternatives[: turn + 1][-1]) for phrase in phrases])


def _keywords(text: str) -> Iterator[str]:
    """Add the keywords of the error category of the first cue; error lines name the cause first."""
    cue = next(vocabulary().cues.find(text, quoted=True), None)
    return _with_keywords(text, cue.alternatives if cue else ())


def _with_keywords(text: str, keywords: Sequence[str]) -> Iterator[str]:
    """Add one keyword that the query does not have; then the next one."""
    words = set(_words(text))
    for keyword in keywords:
        if not words.issuperset(_words(keyword)):
            yield f"{text.rstrip()} {keyword}"


def _distinct(text: str, others: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the first variants that differ from the query and from each other."""
    distinct = {_folded(text): text}
    for other in others:
        if len(distinct) >= limit:
            break
        if len(other) <= MAX_CHARACTERS:
            distinct.setdefault(_folded(other), other)
    return tuple(distinct.values())[1:]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(text))


def _are_side_by_side(text: str, words: Sequence[re.Match[str]]) -> bool:
    """Tell whether only spaces or one hyphen stand between words."""
    gaps = [text[first.end() : second.start()] for first, second in zip(words, words[1:], strict=False)]
    return all(not gap.strip() or gap in "-‐‑" for gap in gaps)


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return where text stands between quotation marks or back-quotes."""
    return [match.span() for match in _QUOTED.finditer(text)]


def _within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _replaced(text: str, replacements: Sequence[tuple[Phrase, str]]) -> str:
    """Return the text with other words in these places, which come from left to right."""
    pieces: list[str] = []
    done = 0
    for phrase, replacement in replacements:
        pieces += [text[done : phrase.start], replacement]
        done = phrase.end
    return "".join([*pieces, text[done:]])
