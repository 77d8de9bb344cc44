"""Text → search terms, the same at index and at query time.

Identifiers are kept whole *and* split (``handlePaymentError`` → ``handlepaymenterror handl payment error``), so that a
pasted identifier and a question in words both find them. Words are stemmed (Snowball English); versions and decimals
stay whole (``v2.1``, ``0.85``). Terms are lower case.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import Stemmer

VERSION = "analysis-1"

# A term longer than this is a blob (base64, minified code), which nobody types.
MAX_TERM_LENGTH = 64
# The vocabulary of code and prose is Zipfian: this many words cover nearly every occurrence.
CACHED_WORDS = 1 << 16

_WORD = re.compile(r"v?\d+(?:\.\d+)+|\w+")
_ASCII_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_PART = re.compile(r"[^\W\d_]+|\d+")


class _Stemmers(threading.local):
    """One stemmer per thread: a PyStemmer object keeps state while it works."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)


_stemmers = _Stemmers()


def analyze(text: str) -> Counter[str]:
    """Count the terms of ``text``."""
    counts: Counter[str] = Counter()
    for word, occurrences in Counter(_WORD.findall(text)).items():
        for term in _terms_of(word):
            counts[term] += occurrences
    return counts


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a query, sorted."""
    return sorted(analyze(text))


@lru_cache(maxsize=CACHED_WORDS)
def _terms_of(word: str) -> tuple[str, ...]:
    return tuple(term for term in _expand(word) if len(term) <= MAX_TERM_LENGTH)


def _expand(word: str) -> Iterator[str]:
    lowered = word.lower()
    if "." in word:  # a version or a decimal
        yield lowered
        return
    parts = (_ASCII_PART if word.isascii() else _PART).findall(word)
    if len(parts) > 1:
        yield lowered
    for part in parts or [word]:
        yield _stemmers.english.stemWord(part.lower())
