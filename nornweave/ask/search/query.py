"""Analyze a query into what the retrieval sources need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.errors import QueryError
from nornweave.core.text import analyzer
from nornweave.core.text.index_fields import asked_keys

MAX_CHARACTERS = 4096
MAX_TOP_K = 100

_QUOTED = re.compile(r'"([^"\n]{1,512})"|`([^`\n]{1,512})`|“([^”\n]{1,512})”')


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, analyzed once for all domains.

    Attributes:
        text: as asked.
        terms: distinct terms of the analyzer.
        pairs: distinct neighbours among them.
        phrases: what stands in quotation marks or backticks.
        keys: what it may mean by name (``fields``).
    """

    text: str
    terms: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    phrases: tuple[str, ...]
    keys: tuple[str, ...]


@lru_cache(maxsize=256)
def read_query(text: str) -> Query:
    """Analyze a query, once for all domains that are asked."""
    phrases = tuple(phrase for found in _QUOTED.findall(text) if (phrase := "".join(found).strip()))
    return Query(
        text=text,
        terms=tuple(analyzer.query_terms(text)),
        pairs=tuple(sorted(analyzer.word_pairs(analyzer.sequence(text)))),
        phrases=phrases,
        keys=tuple(sorted(asked_keys(text))),
    )


def check_query(text: str, top_k: int) -> None:
    """Refuse a query that cannot be searched.

    Raises:
        QueryError: the query is blank, too long or no text, or ``top_k`` is out of range.
    """
    if not text.strip():
        raise QueryError("query", "blank; ask something, 1 to 4,096 characters")
    if len(text) > MAX_CHARACTERS:
        raise QueryError("query", f"{len(text):,} characters; allowed are 1 to {MAX_CHARACTERS:,}")
    if "\0" in text or any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise QueryError("query", "holds a NUL or half a surrogate pair; expected Unicode text")
    if not 1 <= top_k <= MAX_TOP_K:
        raise QueryError("top_k", f"{top_k}; allowed are 1 to {MAX_TOP_K}")
