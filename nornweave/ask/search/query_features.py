"""Find identifiers, file paths and heading words in a query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text import analyzer

# ``CamelCase`` and ``snake_case`` words. The lookbehind changes no match, it keeps the search linear.
_IDENTIFIER = re.compile(r"[A-Z][a-zA-Z0-9]+|(?<![a-z])[a-z]+_[a-z_]+")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[^\s\"'`´‘’“”()<>\[\]{},;|]+")
# A name with an extension, which begins with a letter: "3.5" and "wait..." are none.
_FILE = re.compile(r"[^/]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}")
# The place inside a file that compilers and tracebacks add: ``:42``, ``:42:7``, ``#L42-L51``.
_PLACE = re.compile(r"(?:(?::\d{1,9}){1,2}|#L\d{1,9}(?:-L?\d{1,9})?)$")
_STARTS, _ENDS = ",:!?*=&", ".,:!?*=&"
LONGEST_SYMBOL = 128
"""Characters of a word that may name something; what is longer is a blob."""
# Words that stand in any question and any heading; stems, as the analyzer makes them, are added below.
_FUNCTION_WORDS = (
    "a about above after all also am an and any are as at be because been before being below between both but by can "
    "could did do does doing done for from had has have having he her here him his how i if in into is it its just me "
    "more most my no nor not now of off on once one only or other our out over own same she should so some such than "
    "that the their them then there these they this those through to too under until up us very was we were what when "
    "where which while who whom why will with would you your s t d re ve ll"
)
CACHED_HEADINGS = 1 << 14


@dataclass(frozen=True, slots=True)
class Cues:
    """The features of a query that heuristics look for in candidates.

    Attributes:
        identifiers: as written, each also as the whole word around it (``handlePayment`` has ``Payment``).
        paths: components of each file path, in lower case.
        terms: the analyzer's, without words that any heading may have.
    """

    identifiers: frozenset[str]
    paths: frozenset[tuple[str, ...]]
    terms: frozenset[str]


def cues_of(query: str) -> Cues:
    """Return the features of a query."""
    return Cues(
        identifiers=frozenset(_identifiers(query)),
        paths=frozenset(_paths(query)),
        terms=frozenset(analyzer.query_terms(query)) - _function_terms(),
    )


def path_parts(path: str) -> tuple[str, ...]:
    """Return the components of a path in lower case, without those that say nothing (``.``, ``..``, a root)."""
    return tuple(part for part in path.replace("\\", "/").lower().split("/") if part not in {"", ".", "..", "~"})


@lru_cache(maxsize=CACHED_HEADINGS)
def heading_terms(heading: str) -> frozenset[str]:
    """Return the terms of a heading; headings come back with every query."""
    return frozenset(analyzer.query_terms(heading))


@lru_cache(maxsize=1)
def _function_terms() -> frozenset[str]:
    return frozenset((*_FUNCTION_WORDS.split(), *analyzer.query_terms(_FUNCTION_WORDS)))


def _identifiers(query: str) -> Iterator[str]:
    for word in _WORD.findall(query):
        if len(word) <= LONGEST_SYMBOL and (found := _IDENTIFIER.findall(word)):
            yield word
            yield from found


def _paths(query: str) -> Iterator[tuple[str, ...]]:
    for token in _TOKEN.findall(query):
        if "://" in token:
            continue
        path = _PLACE.sub("", token.lstrip(_STARTS).rstrip(_ENDS))
        parts = path_parts(path)
        if len(parts) > 1 or (parts and _FILE.fullmatch(parts[-1])):
            yield parts
