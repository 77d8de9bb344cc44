"""Other words for a query (FUSIONRAG, "Query Expansion"): acronyms, identifiers, synonyms, error categories.

Everything is matched by whole words and never inside quotation marks or back-quotes: what is quoted is meant as
written. Turning words into identifiers (``handle payment error`` → ``handle_payment_error``) is left out on purpose:
the analyzer already splits the identifiers of the corpus, so that plain words find them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, zip_longest
from typing import get_args

from nornweave.errors import QueryError
from nornweave.recall.initials import capitalised_names
from nornweave.recall.phrases import Match, arrow, find_phrases, quoted_spans, replace, within
from nornweave.recall.records import Switch
from nornweave.recall.vocabulary import WORD, Vocabulary, field_vocabulary, phrase

# FUSIONRAG: "Return up to 3 variations", the original among them; when and when not to expand.
MAX_VARIANTS = 3
MAX_WORDS = 10
ENOUGH_CANDIDATES = 20
MANY_CANDIDATES = 100
# A variant is a query like any other.
MAX_CHARACTERS = 4096


class VariantKind(StrEnum):
    """How a variant of a query came about."""

    ORIGINAL = "original"
    ACRONYM = "acronym"
    IDENTIFIER = "identifier"
    SYNONYM = "synonym"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to put a query; ``detail`` says what was replaced by what, for people."""

    text: str
    kind: VariantKind
    detail: str = ""


def expand(
    text: str, vocabulary: Vocabulary | None = None, *, category: str | None = None, limit: int = MAX_VARIANTS
) -> tuple[str, ...]:
    """Return the query and other ways to put it; see ``variants``."""
    return tuple(variant.text for variant in variants(text, vocabulary, category=category, limit=limit))


def variants(
    text: str, vocabulary: Vocabulary | None = None, *, category: str | None = None, limit: int = MAX_VARIANTS
) -> tuple[Variant, ...]:
    """Put a query in other words.

    The first variant of each kind comes before the second of any: acronyms (one replaced at a time), the category asked
    for, identifiers as words, synonyms (all words of a variant at once), a category that shows by itself. What replaces
    a plural stands in the singular; retrieval stems anyway.

    Args:
        text: the query, as asked.
        vocabulary: ``None`` is the vocabulary of the field.
        category: an error category (``CODE_ERROR``), whose keywords are added; in any case.
        limit: how many to return, the original included.

    Returns:
        The original first, then at most ``limit - 1`` others, distinct but for case and spaces, none longer than 4,096
        characters. Deterministic.

    Raises:
        ValueError: ``limit`` is below 1.
        QueryError: the vocabulary has no such category.
    """
    if limit < 1:
        raise ValueError(f"limit: {limit}, allowed are 1 and above")
    known = vocabulary or field_vocabulary()
    wanted = _category_named(category, known)
    original = Variant(text, VariantKind.ORIGINAL)
    return tuple(islice(_distinct([original, *_by_turns(_strategies(text, known, wanted))]), limit))


def acronym_variants(
    text: str, is_said: Callable[[str], bool], vocabulary: Vocabulary | None = None, *, limit: int = MAX_VARIANTS
) -> tuple[Variant, ...]:
    """Put a query with the short for the long form of an acronym, or the other way round.

    The two mean the same, so this is worth doing for every query; but only where the other form is said at all, for
    otherwise it finds nothing and costs as much as the query itself. A name in capitals that the vocabulary does not
    know ("Web Content Accessibility Guidelines") may be called by its initials.

    Args:
        text: the query, as asked.
        is_said: whether the corpus says something.
        vocabulary: ``None`` is the vocabulary of the field.
        limit: variants at most, the original included, though it is not returned.

    Returns:
        At most ``limit - 1``, one acronym replaced in each: known ones first, in the order of the query.
    """
    known = _acronyms(text, vocabulary or field_vocabulary(), is_said)
    distinct = _distinct([Variant(text, VariantKind.ORIGINAL), *known, *_initials(text, is_said)])
    return tuple(islice(distinct, 1, limit))


def should_expand(
    text: str, *, candidates: Mapping[str, int], switch: Switch = "auto", latency_sensitive: bool = False
) -> bool:
    """Say whether a query is worth expanding (FUSIONRAG, "Query Expansion Strategy").

    ``on`` and ``off`` decide alone. ``auto`` expands when a source found fewer than 20 candidates, and not when the
    request is latency-sensitive, has more than 10 words, or a source found more than 100.

    Args:
        text: the query.
        candidates: retrieval source → how many it found; empty before the first retrieval, which counts as few.
        switch: what the request says.
        latency_sensitive: the asker would rather have less, sooner.

    Raises:
        QueryError: ``switch`` is none of the three.
    """
    if switch not in get_args(Switch):
        raise QueryError("expand", f"{switch!r}; allowed are {', '.join(get_args(Switch))}")
    if switch != "auto":
        return switch == "on"
    if latency_sensitive or len(text.split()) > MAX_WORDS:
        return False
    counts = candidates.values()
    return max(counts, default=0) <= MANY_CANDIDATES and min(counts, default=0) < ENOUGH_CANDIDATES


def _strategies(text: str, vocabulary: Vocabulary, category: str | None) -> Sequence[Iterator[Variant]]:
    shown = None if category else _category_shown(text, vocabulary)
    return (
        _acronyms(text, vocabulary),
        _category(text, vocabulary, category),
        _identifiers(text, vocabulary),
        _synonyms(text, vocabulary),
        _category(text, vocabulary, shown),
    )


def _by_turns(strategies: Sequence[Iterator[Variant]]) -> Iterator[Variant]:
    for turn in zip_longest(*strategies):
        yield from (variant for variant in turn if variant is not None)


def _distinct(found: Sequence[Variant] | Iterator[Variant]) -> Iterator[Variant]:
    seen: set[str] = set()
    for variant in found:
        key = " ".join(variant.text.casefold().split())
        original = variant.kind is VariantKind.ORIGINAL
        if original or (key not in seen and len(variant.text) <= MAX_CHARACTERS):
            seen.add(key)
            yield variant


def _everything(_: str) -> bool:
    return True


def _acronyms(text: str, vocabulary: Vocabulary, is_said: Callable[[str], bool] = _everything) -> Iterator[Variant]:
    """Replace one acronym, wherever it stands; then the next one."""
    places: dict[int, list[Match]] = {}
    for match in find_phrases(text, vocabulary.acronym_index):
        places.setdefault(id(match.entry), []).append(match)
    for matches in places.values():
        replacement = matches[0].entry.alternatives[0]
        if is_said(replacement):
            replaced = replace(text, [(match, replacement) for match in matches])
            yield Variant(replaced, VariantKind.ACRONYM, arrow(text, matches[0], replacement))


def _initials(text: str, is_said: Callable[[str], bool]) -> Iterator[Variant]:
    """Replace a name in capitals by its initials: who writes ``WCAG`` everywhere may have spelled it out nowhere."""
    protected = quoted_spans(text)
    for name in capitalised_names(text):
        short = next(filter(is_said, name.initials), None)
        if short and not within(name.start, protected):
            replaced = f"{text[: name.start]}{short}{text[name.end :]}"
            yield Variant(replaced, VariantKind.ACRONYM, f"{text[name.start : name.end]} → {short}")


def _synonyms(text: str, vocabulary: Vocabulary) -> Iterator[Variant]:
    """Replace every word that has synonyms by its first, then by its second, …; identifiers are spelled out before."""
    plain, _ = _spell_out(text, vocabulary)
    matches = list(find_phrases(plain, vocabulary.synonym_index))
    for turn in range(max((len(match.entry.alternatives) for match in matches), default=0)):
        replaced = [
            (match, match.entry.alternatives[min(turn, len(match.entry.alternatives) - 1)]) for match in matches
        ]
        detail = ", ".join(arrow(plain, match, replacement) for match, replacement in replaced)
        yield Variant(replace(plain, replaced), VariantKind.SYNONYM, detail)


def _identifiers(text: str, vocabulary: Vocabulary) -> Iterator[Variant]:
    plain, changes = _spell_out(text, vocabulary)
    if changes:
        yield Variant(plain, VariantKind.IDENTIFIER, ", ".join(changes))


def _category(text: str, vocabulary: Vocabulary, category: str | None) -> Iterator[Variant]:
    if category is None:
        return
    have = set(phrase(text))
    for keyword in vocabulary.categories[category].keywords:
        if not have.issuperset(phrase(keyword)):
            yield Variant(f"{text.rstrip()} {keyword}", VariantKind.CATEGORY, f"{category}: + {keyword}")


def _category_named(category: str | None, vocabulary: Vocabulary) -> str | None:
    if category is None:
        return None
    for name in vocabulary.categories:
        if name.casefold() == category.casefold():
            return name
    allowed = ", ".join(sorted(vocabulary.categories)) or "none: the vocabulary has no categories"
    raise QueryError("category", f"unknown {category!r}; allowed are {allowed}")


def _category_shown(text: str, vocabulary: Vocabulary) -> str | None:
    """Return the category of the first cue; error lines name the cause first."""
    match = next(find_phrases(text, vocabulary.cue_index, quoted=True), None)
    return match.entry.alternatives[0] if match else None


# An identifier or a chain of them: handlePaymentError, payments.auth.verify_token(), Ledger::postEntry.
_CHAIN = re.compile(r"\w+(?:(?:\.|::|->|#)\w+)*(?:\(\))?")
_HUMPS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")


_VOWELS = frozenset("aeiouy")


def _spell_out(text: str, vocabulary: Vocabulary) -> tuple[str, list[str]]:
    """Write the identifiers of a text as words; also what was changed."""
    protected = quoted_spans(text)
    pieces: list[str] = []
    changes: list[str] = []
    done = 0
    for match in _CHAIN.finditer(text):
        if _is_identifier(match[0], vocabulary.names) and not within(match.start(), protected):
            words = " ".join(_as_words(word, vocabulary.names) for word in WORD.findall(match[0]))
            pieces += [text[done : match.start()], words]
            changes.append(f"{match[0]} → {words}")
            done = match.end()
    return "".join([*pieces, text[done:]]), changes


def _as_words(word: str, names: frozenset[str]) -> str:
    return word if word.casefold() in names else " ".join(part.lower() for part in _HUMPS.findall(word))


def _is_identifier(chain: str, names: frozenset[str]) -> bool:
    return any(_is_compound(word) for word in WORD.findall(chain) if word.casefold() not in names)


def _is_compound(word: str) -> bool:
    """Whether a word is made of several, as ``snake_case`` and ``camelCase`` are; ``GPUs`` and ``miRNA`` are not."""
    if "_" in word:
        return sum(part[0].isalpha() for part in word.split("_") if part) > 1
    humps = [hump for hump in _HUMPS.findall(word) if hump.isalpha() and len(hump) > 2]
    return len(humps) > 1 and any(_reads_as_word(hump) for hump in humps)


def _reads_as_word(hump: str) -> bool:
    """Whether letters are a word rather than an abbreviation; ``lncRNAs`` and ``siRNA`` have none."""
    return (hump.islower() or hump[1:].islower()) and not _VOWELS.isdisjoint(hump.lower())
