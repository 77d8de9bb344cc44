"""Analyze text into search terms and word pairs, the same at index and at query time.

Identifiers are kept whole *and* split (``handlePaymentError`` → ``handlepaymenterror handl payment error``), so that a
pasted identifier and a question in words both find them. Words are stemmed (Snowball English); versions and decimals
stay whole (``v2.1``, ``0.85``). Terms are lower case.

A *word pair* is two terms that stand next to each other, whatever blank space or punctuation lies between: what a
phrase, an error message or a log line is made of.
"""

from __future__ import annotations

import re
import threading
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise

import Stemmer

from nornweave.core.text.function_words import FUNCTION_WORDS

VERSION = "analysis-4"

# A term longer than this is a blob (base64, minified code), which nobody types.
MAX_TERM_LENGTH = 64
# The vocabulary of code and prose is Zipfian: this many words cover nearly every occurrence.
CACHED_WORDS = 1 << 16

_WORD = re.compile(r"v?\d+(?:\.\d+)+|\w+")
# An acronym with its plural s is one part: "SDKs" is neither "SD" nor "Ks".
_ASCII_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_PART = re.compile(r"[^\W\d_]+|\d+")

# Spellings without special letters: for letters that NFKD does not split, and for umlauts.
_BARE = str.maketrans({"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ı": "i", "þ": "th"})
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"})


class _Stemmers(threading.local):
    """One stemmer per thread, because a PyStemmer object keeps state while it works."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)


_stemmers = _Stemmers()


def analyze(text: str) -> Counter[str]:
    """Count the terms of ``text``."""
    counts: Counter[str] = Counter()
    for word, occurrences in Counter(_WORD.findall(text)).items():
        for term in (*_terms_of(word), *_folded_forms(word)):
            counts[term] += occurrences
    return counts


def distinct_terms(text: str) -> set[str]:
    """Return the distinct terms of ``text``."""
    words = {*_WORD.findall(text)}
    terms = {*chain.from_iterable(map(_terms_of, words))}
    return terms if text.isascii() else terms.union(*map(_folded_forms, words))


def occurrences(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each term of ``text`` with its start and end. An identifier is yielded before its parts."""
    for word in _WORD.finditer(text):
        for term, start, end in _spans(word[0]):
            if len(term) <= MAX_TERM_LENGTH:
                yield term, word.start() + start, word.start() + end


def sequence(text: str) -> list[str]:
    """Return the terms of ``text`` in order. An identifier is replaced by its parts."""
    return [term for word in _WORD.findall(text) for term in _parts_of(word)]


def word_pairs(terms: Sequence[str]) -> set[tuple[str, str]]:
    """Return the distinct pairs of neighbouring terms. Pairs of two function words ("of the") are left out."""
    return {pair for pair in pairwise(terms) if not (pair[0] in FUNCTION_TERMS and pair[1] in FUNCTION_TERMS)}


def pair_key(pair: tuple[str, str]) -> int:
    """Return the 32-bit key of a word pair in the index.

    Keys can collide: with ten million distinct pairs, one query in 400 finds a wrong pair. So pairs may add to a score
    but never filter.
    """
    return zlib.crc32(f"{pair[0]} {pair[1]}".encode())


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a query, sorted."""
    return sorted(distinct_terms(text))


@lru_cache(maxsize=CACHED_WORDS)
def _terms_of(word: str) -> tuple[str, ...]:
    return tuple(term for term, _, _ in _spans(word) if len(term) <= MAX_TERM_LENGTH)


def _folded_forms(word: str) -> tuple[str, ...]:
    """Return the terms of a word without its accents: ``müller`` gives ``muller`` and ``mueller``."""
    return () if word.isascii() else _folded(word)


@lru_cache(maxsize=CACHED_WORDS)
def _folded(word: str) -> tuple[str, ...]:
    lowered = word.lower()
    plain = "".join(letter for letter in unicodedata.normalize("NFD", lowered) if not unicodedata.combining(letter))
    forms = dict.fromkeys((plain.translate(_BARE), lowered.translate(_SPELLED_OUT)))
    return tuple(_stemmers.english.stemWord(form) for form in forms if form.isascii() and len(form) <= MAX_TERM_LENGTH)


@lru_cache(maxsize=CACHED_WORDS)
def _parts_of(word: str) -> tuple[str, ...]:
    terms = _terms_of(word)
    return terms[1:] if len(terms) > 1 else terms


def _spans(word: str) -> Iterator[tuple[str, int, int]]:
    """Yield the terms of one word, each with its start and end in the word."""
    lowered = word.lower()
    if "." in word:  # a version or a decimal
        yield lowered, 0, len(word)
        return
    parts = [(part[0], part.start(), part.end()) for part in (_ASCII_PART if word.isascii() else _PART).finditer(word)]
    if len(parts) > 1:
        yield lowered, 0, len(word)
    for part, start, end in parts or [(word, 0, len(word))]:
        yield _stemmers.english.stemWord((part[:-1] if _is_acronym_plural(part) else part).lower()), start, end


def _is_acronym_plural(part: str) -> bool:
    """Tell whether a word is the plural of an acronym (``SDKs``), which stemming leaves unchanged."""
    return len(part) > 2 and part[-1] == "s" and part[:-1].isupper()


FUNCTION_TERMS = frozenset(term for word in FUNCTION_WORDS for term in _terms_of(word))
